//! Tasks: what a worker claims, runs and completes, and the table of their kinds. Stored names never change.

use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};

use crate::ids::UnitId;
use crate::key::ObjectKey;

/// What the book must know of a kind of task. How its tasks are run is the handler's business.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskFacts {
    /// Its stable name, as stored.
    pub name: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// Its label in metrics.
    pub label: &'static str,
    pub takes: Takes,
    pub leaves: Leaves,
}

/// Which records of committed units the tasks of a kind cover. The pipeliner packs these records into tasks, so at
/// most one kind takes each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takes {
    /// What can be listed. A failed task that is tried again lists its containers anew.
    Containers,
    /// What can be scanned. Those of a task that is given up count as objects of the job.
    Objects,
    /// None: the payload says what a task covers, and whoever has such work inserts the tasks.
    Nothing,
}

/// What a task leaves that failed for good, or that was given up because it ended its workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leaves {
    /// Each of its records that is not done becomes a failure by name.
    Records,
    /// One failure of the source as a whole, whose detail begins with these words.
    Source(&'static str),
}

macro_rules! task_types {
    ($($(#[doc = $doc:literal])+ $variant:ident = $facts:expr;)*) => {
        /// A kind of task.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum TaskType { $($(#[doc = $doc])+ $variant,)* }

        impl TaskType {
            pub const ALL: &'static [TaskType] = &[$(TaskType::$variant,)*];

            pub fn facts(self) -> &'static TaskFacts {
                const FACTS: &[TaskFacts] = &[$($facts,)*];
                &FACTS[self as usize]
            }
        }
    };
}

task_types! {
    /// Lists containers, one level deep.
    DiscoveryEnumerate = TaskFacts {
        name: "DISCOVERY_ENUMERATE",
        title: "enumeration",
        label: "enumerate",
        takes: Takes::Containers,
        leaves: Leaves::Records,
    };
    /// Scans objects.
    Classification = TaskFacts {
        name: "CLASSIFICATION",
        title: "classification",
        label: "classify",
        takes: Takes::Objects,
        leaves: Leaves::Records,
    };
    /// Looks up where objects with findings came from. The objects were scanned: what a failed task leaves is
    /// missing of the source as a whole.
    Tracing = TaskFacts {
        name: "TRACING",
        title: "tracing",
        label: "trace",
        takes: Takes::Nothing,
        leaves: Leaves::Source("where findings came from could not be looked up"),
    };
}

impl TaskType {
    /// Of the task that a session begins with.
    pub const ROOT: TaskType = TaskType::DiscoveryEnumerate;

    pub fn as_str(self) -> &'static str {
        self.facts().name
    }

    pub fn parse(text: &str) -> Option<TaskType> {
        TaskType::ALL.iter().copied().find(|kind| kind.as_str() == text)
    }
}

/// A value for each kind of task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ByTaskType<T>([T; TaskType::ALL.len()]);

impl<T> ByTaskType<T> {
    pub fn iter(&self) -> impl Iterator<Item = (TaskType, &T)> {
        TaskType::ALL.iter().copied().zip(&self.0)
    }
}

impl<T> Index<TaskType> for ByTaskType<T> {
    type Output = T;

    fn index(&self, task_type: TaskType) -> &T {
        &self.0[task_type as usize]
    }
}

impl<T> IndexMut<TaskType> for ByTaskType<T> {
    fn index_mut(&mut self, task_type: TaskType) -> &mut T {
        &mut self.0[task_type as usize]
    }
}

/// Records `from..to` (by sequence) of a committed unit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct UnitRange {
    pub unit: UnitId,
    pub from: i64,
    pub to: i64,
}

/// What a task covers. Ranges keep tasks small however long the names are, and let the pipeliner pack
/// without reading records.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskPayload {
    /// Containers by key: how a root task begins.
    PathsToScan(Vec<ObjectKey>),
    /// The directories (enumeration) or files (classification) among these records.
    UnitRanges(Vec<UnitRange>),
    /// The objects of the session whose origin nobody has looked up (tracing).
    UntracedObjects,
}

impl TaskPayload {
    /// Two halves that together cover the same, or `None` when there is only one record to cover.
    /// A task that keeps killing its worker is halved until the object that does it is alone.
    pub fn split(&self) -> Option<(TaskPayload, TaskPayload)> {
        match self {
            TaskPayload::UntracedObjects => None,
            TaskPayload::PathsToScan(paths) => {
                let (a, b) = paths.split_at(paths.len() / 2);
                (!a.is_empty())
                    .then(|| (TaskPayload::PathsToScan(a.to_vec()), TaskPayload::PathsToScan(b.to_vec())))
            }
            TaskPayload::UnitRanges(ranges) => {
                let total: i64 = ranges.iter().map(|range| range.to - range.from).sum();
                let (mut a, mut b, mut room) = (Vec::new(), Vec::new(), total / 2);
                for &range in ranges {
                    let cut = range.from + (range.to - range.from).min(room);
                    room -= cut - range.from;
                    if cut > range.from {
                        a.push(UnitRange { to: cut, ..range });
                    }
                    if cut < range.to {
                        b.push(UnitRange { from: cut, ..range });
                    }
                }
                (!a.is_empty() && !b.is_empty())
                    .then_some((TaskPayload::UnitRanges(a), TaskPayload::UnitRanges(b)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sequences(payload: &TaskPayload) -> Vec<(UnitId, i64)> {
        let TaskPayload::UnitRanges(ranges) = payload else { panic!("ranges expected") };
        ranges.iter().flat_map(|r| (r.from..r.to).map(|seq| (r.unit, seq))).collect()
    }

    proptest! {
        #[test]
        fn halves_cover_exactly_the_whole(lens in proptest::collection::vec(0i64..20, 0..6)) {
            let ranges = lens.iter().enumerate()
                .map(|(i, &len)| UnitRange { unit: UnitId(i as i64), from: 3, to: 3 + len }).collect();
            let whole = TaskPayload::UnitRanges(ranges);
            let total: i64 = lens.iter().sum();
            match whole.split() {
                None => prop_assert!(total <= 1),
                Some((a, b)) => {
                    let mut both = sequences(&a);
                    prop_assert!(!both.is_empty() && !sequences(&b).is_empty());
                    both.extend(sequences(&b));
                    prop_assert_eq!(both, sequences(&whole));
                }
            }
        }
    }

    /// Of a unit there is one bit for its containers, and one for its objects.
    #[test]
    fn kinds_have_names_of_their_own_and_share_no_records() {
        for (at, kind) in TaskType::ALL.iter().enumerate() {
            let facts = kind.facts();
            assert_eq!(TaskType::parse(facts.name), Some(*kind));
            for other in TaskType::ALL[..at].iter().map(|other| other.facts()) {
                assert!(facts.name != other.name && facts.title != other.title && facts.label != other.label);
                assert!(facts.takes == Takes::Nothing || facts.takes != other.takes, "{kind:?}");
            }
        }
    }

    #[test]
    fn payloads_are_readable_json() {
        let untraced = serde_json::to_string(&TaskPayload::UntracedObjects).unwrap();
        assert_eq!(untraced, r#""untraced_objects""#);
        assert_eq!(serde_json::from_str::<TaskPayload>(&untraced).unwrap().split(), None);
        let payload = TaskPayload::PathsToScan(vec![ObjectKey::default(), ObjectKey::new(*b"a/\xff")]);
        let json = serde_json::to_string(&payload).unwrap();
        assert_eq!(json, r#"{"paths_to_scan":["",{"hex":"612fff"}]}"#);
        assert_eq!(serde_json::from_str::<TaskPayload>(&json).unwrap(), payload);
        assert!(payload.split().is_some());
        assert!(TaskPayload::PathsToScan(vec![ObjectKey::default()]).split().is_none());
    }
}
