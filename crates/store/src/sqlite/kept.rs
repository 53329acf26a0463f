//! Records of units that were committed a moment ago, kept for the task that works through them next: mostly it is
//! claimed before long, and then the book need not be read.
//!
//! Why a kept record never differs from the book's: a unit is kept on the writer's thread, when the COMMIT that made
//! it visible is through and before the next transaction begins. A committed unit stays as it is until its job, which
//! has ended then, is pruned; a prune first drops all that is kept, whether it is committed or not, so that none is
//! left when the id of a unit comes again. No other process writes. Whatever is not here is read from the book:
//! units that were staged, that did not fit, or of an earlier process, and those of tasks that are claimed once more.

use std::collections::HashMap;
use std::sync::Arc;

use domesday_model::{ListedObject, ObjectKey, TaskPayload, UnitId, UnitRange, UnitRecord};
use parking_lot::Mutex;

use crate::decide::tasks::{CONTAINERS, RecordKinds};

/// Bytes of all records that are kept, at most. Units beyond that are not kept, rather than older ones dropped, for
/// tasks are claimed in the order in which their units were committed.
const KEPT_BYTES_MAX: usize = 8 << 20;

/// A unit as it was committed.
pub(super) struct Committed {
    pub unit: UnitId,
    pub key: ObjectKey,
    pub records: Vec<UnitRecord>,
}

impl Committed {
    /// What it takes in memory, about.
    fn bytes(&self) -> usize {
        let of_record = |record: &UnitRecord| {
            size_of::<UnitRecord>()
                + record.name.len()
                + record.metadata.as_ref().map_or(0, |text| text.len())
        };
        self.key.0.len() + self.records.iter().map(of_record).sum::<usize>()
    }

    /// Those of a range that are of these kinds, as `packet_records` would read them; `None` where the range is not of
    /// this unit.
    fn of_range(&self, range: &UnitRange, kinds: RecordKinds) -> Option<impl Iterator<Item = ListedObject>> {
        let (from, to) = (usize::try_from(range.from).ok()?, usize::try_from(range.to).ok()?);
        let records = self.records.get(from..to)?.iter().filter(move |record| kinds.contains(&record.kind));
        Some(records.map(|record| ListedObject::in_container(&self.key, record)))
    }
}

#[derive(Default)]
pub(super) struct Kept(Mutex<Units>);

#[derive(Default)]
struct Units {
    by_id: HashMap<UnitId, Waiting>,
    bytes: usize,
}

/// A unit of which something was not asked for yet.
struct Waiting {
    unit: Arc<Committed>,
    bytes: usize,
    /// How much of its sequence no task asked for yet: for its containers, and for its objects.
    containers: i64,
    objects: i64,
}

impl Kept {
    /// To be called on the writer's thread, after the COMMIT of these units and before the next transaction.
    pub fn add(&self, committed: Vec<Committed>) {
        let mut units = self.0.lock();
        for unit in committed {
            let bytes = unit.bytes();
            if units.bytes + bytes > KEPT_BYTES_MAX {
                continue;
            }
            let len = unit.records.len() as i64;
            let any = |is: fn(&UnitRecord) -> bool| if unit.records.iter().any(is) { len } else { 0 };
            let containers = any(|record| record.kind.is_container());
            let objects = any(|record| record.kind.is_object());
            if containers + objects > 0 {
                units.bytes += bytes;
                let id = unit.unit;
                units.by_id.insert(id, Waiting { unit: Arc::new(unit), bytes, containers, objects });
            }
        }
    }

    /// To be called on the writer's thread, before units are removed.
    pub fn clear(&self) {
        *self.0.lock() = Units::default();
    }

    /// The records of these kinds that a payload's ranges cover, if all of them are here. What is asked for once is
    /// not kept for a second time.
    pub fn take(&self, payload: &TaskPayload, kinds: RecordKinds) -> Option<Vec<ListedObject>> {
        let TaskPayload::UnitRanges(ranges) = payload else { return None };
        let units: Vec<Option<Arc<Committed>>> = {
            let mut units = self.0.lock();
            ranges.iter().map(|range| units.take(range, kinds)).collect()
        };
        let mut objects = Vec::new();
        for (unit, range) in units.iter().zip(ranges) {
            objects.extend(unit.as_ref()?.of_range(range, kinds)?);
        }
        Some(objects)
    }
}

impl Units {
    fn take(&mut self, range: &UnitRange, kinds: RecordKinds) -> Option<Arc<Committed>> {
        let waiting = self.by_id.get_mut(&range.unit)?;
        let left = if kinds == CONTAINERS { &mut waiting.containers } else { &mut waiting.objects };
        *left -= range.to - range.from;
        if waiting.containers > 0 || waiting.objects > 0 {
            return Some(Arc::clone(&waiting.unit));
        }
        let ended = self.by_id.remove(&range.unit)?;
        self.bytes -= ended.bytes;
        Some(ended.unit)
    }
}

#[cfg(test)]
mod tests {
    use domesday_model::RecordKind;

    use super::*;
    use crate::decide::tasks::OBJECTS;
    use crate::testing::files;

    fn unit(id: i64, objects: usize, containers: usize) -> Committed {
        let mut records = files("f", objects);
        let folders = files("d", containers).into_iter();
        records.extend(folders.map(|folder| UnitRecord { kind: RecordKind::Directory, ..folder }));
        Committed { unit: UnitId(id), key: ObjectKey::new(*b"at"), records }
    }

    fn ranges(ranges: &[(i64, i64, i64)]) -> TaskPayload {
        let range = |&(unit, from, to)| UnitRange { unit: UnitId(unit), from, to };
        TaskPayload::UnitRanges(ranges.iter().map(range).collect())
    }

    fn taken(kept: &Kept, of: &[(i64, i64, i64)], kinds: RecordKinds) -> Option<Vec<String>> {
        let taken = kept.take(&ranges(of), kinds)?;
        Some(taken.into_iter().map(|object| object.key.to_string()).collect())
    }

    #[test]
    fn each_part_of_a_unit_is_given_out_once() {
        let kept = Kept::default();
        kept.add(vec![unit(1, 3, 1), unit(2, 1, 0)]);
        assert_eq!(taken(&kept, &[(1, 0, 4)], CONTAINERS).unwrap(), ["at/d0"]);
        assert_eq!(taken(&kept, &[(1, 0, 2), (2, 0, 1)], OBJECTS).unwrap(), ["at/f0", "at/f1", "at/f0"]);
        assert_eq!(taken(&kept, &[(2, 0, 1)], OBJECTS), None, "all of it was given out");
        assert_eq!(taken(&kept, &[(1, 2, 4)], OBJECTS).unwrap(), ["at/f2"]);
        assert_eq!(taken(&kept, &[(1, 2, 4)], OBJECTS), None);
        let units = kept.0.lock();
        assert_eq!((units.by_id.len(), units.bytes), (0, 0));
    }

    #[test]
    fn what_is_not_here_as_a_whole_is_left_to_the_book() {
        let kept = Kept::default();
        kept.add(vec![unit(1, 2, 0), unit(3, 0, 0)]);
        assert_eq!(kept.0.lock().by_id.len(), 1, "nobody asks for a unit with nothing in it");
        assert_eq!(taken(&kept, &[(1, 0, 2), (2, 0, 2)], OBJECTS), None);
        assert_eq!(kept.0.lock().bytes, 0, "what is read from the book need not be kept");
        kept.add(vec![unit(1, 2, 0)]);
        assert_eq!(taken(&kept, &[(1, 0, 3)], OBJECTS), None, "more than there is");
        assert_eq!(kept.take(&TaskPayload::UntracedObjects, OBJECTS), None);
        kept.add(vec![unit(4, 2, 0)]);
        kept.clear();
        assert_eq!(taken(&kept, &[(4, 0, 2)], OBJECTS), None);
    }

    #[test]
    fn beyond_the_limit_nothing_is_kept_until_there_is_room_again() {
        let kept = Kept::default();
        let bytes = unit(0, 1_000, 0).bytes();
        let fit = KEPT_BYTES_MAX / bytes;
        kept.add((0..=fit as i64).map(|id| unit(id, 1_000, 0)).collect());
        assert_eq!(kept.0.lock().by_id.len(), fit);
        assert_eq!(kept.0.lock().bytes, fit * bytes);
        assert_eq!(taken(&kept, &[(fit as i64, 0, 1_000)], OBJECTS), None);
        assert!(taken(&kept, &[(0, 0, 1_000)], OBJECTS).is_some());
        kept.add(vec![unit(7_000, 1_000, 0)]);
        assert!(taken(&kept, &[(7_000, 0, 1_000)], OBJECTS).is_some());
    }
}
