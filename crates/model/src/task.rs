//! Tasks: what a worker claims, runs and completes.

use serde::{Deserialize, Serialize};

use crate::ids::UnitId;
use crate::key::ObjectKey;

/// What a task does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TaskType {
    DiscoveryEnumerate,
    Classification,
    /// Looks up where objects with findings came from.
    Tracing,
}

impl TaskType {
    pub const ALL: &'static [TaskType] =
        &[TaskType::DiscoveryEnumerate, TaskType::Classification, TaskType::Tracing];

    pub fn as_str(self) -> &'static str {
        match self {
            TaskType::DiscoveryEnumerate => "DISCOVERY_ENUMERATE",
            TaskType::Classification => "CLASSIFICATION",
            TaskType::Tracing => "TRACING",
        }
    }

    pub fn parse(text: &str) -> Option<TaskType> {
        TaskType::ALL.iter().copied().find(|kind| kind.as_str() == text)
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
