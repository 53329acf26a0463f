//! How the pipeliner packs committed units into tasks: pure, and the same for every backend.
//!
//! It looks at the units' totals, never at their records. Containers and objects are packed apart, each
//! into tasks of about equal cost, as ranges of a unit's sequence; a large unit is cut into even ranges.

use domesday_model::{TaskPayload, UnitId, UnitRange};

/// Containers in one enumeration task, at most.
pub(crate) const PACK_CONTAINERS_MAX: i64 = 256;
/// Objects in one classification task, at most.
pub(crate) const PACK_OBJECTS_MAX: i64 = 1_024;
/// Bytes in one classification task; a single larger object is a task of its own.
pub(crate) const PACK_BYTES_MAX: i64 = 16 << 20;

/// The totals of one unit, as far as one kind of pack is concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnitTotals {
    pub unit: UnitId,
    /// Length of the unit's sequence: ranges are cut from `0..records`.
    pub records: i64,
    /// Containers, or objects, among the records.
    pub items: i64,
    /// Bytes of the objects; 0 for containers.
    pub bytes: i64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct PackLimits {
    pub items: i64,
    pub bytes: i64,
}

pub(crate) const CONTAINERS: PackLimits = PackLimits { items: PACK_CONTAINERS_MAX, bytes: i64::MAX };
pub(crate) const OBJECTS: PackLimits = PackLimits { items: PACK_OBJECTS_MAX, bytes: PACK_BYTES_MAX };

/// Payloads for `units` in order, and how many of the units they cover. Units beyond that count did not
/// fill a pack and wait for more, unless `flush`.
pub(crate) fn pack(units: &[UnitTotals], limits: PackLimits, flush: bool) -> (Vec<TaskPayload>, usize) {
    let mut payloads = Vec::new();
    let (mut ranges, mut items, mut bytes): (Vec<UnitRange>, i64, i64) = (Vec::new(), 0, 0);
    let mut covered = 0;
    for (index, unit) in units.iter().enumerate() {
        let over = items + unit.items > limits.items || bytes.saturating_add(unit.bytes) > limits.bytes;
        if over && !ranges.is_empty() {
            payloads.push(TaskPayload::UnitRanges(std::mem::take(&mut ranges)));
            (items, bytes, covered) = (0, 0, index);
        }
        let pieces = div_ceil(unit.items, limits.items)
            .max(div_ceil(unit.bytes, limits.bytes))
            .clamp(1, unit.items.max(1));
        if pieces > 1 {
            // Too large for one pack: it stands alone, cut evenly. Sizes are not known one by one, so
            // the pieces are equal in count, and in bytes only as far as sizes are spread evenly.
            payloads.extend((0..pieces).map(|i| {
                let (from, to) = (unit.records * i / pieces, unit.records * (i + 1) / pieces);
                TaskPayload::UnitRanges(vec![UnitRange { unit: unit.unit, from, to }])
            }));
            covered = index + 1;
            continue;
        }
        ranges.push(UnitRange { unit: unit.unit, from: 0, to: unit.records });
        items += unit.items;
        bytes += unit.bytes;
    }
    if flush && !ranges.is_empty() {
        payloads.push(TaskPayload::UnitRanges(ranges));
        covered = units.len();
    }
    (payloads, covered)
}

fn div_ceil(total: i64, part: i64) -> i64 {
    total / part + i64::from(total % part != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: PackLimits = PackLimits { items: 10, bytes: 1_000 };

    fn unit(id: i64, items: i64, bytes: i64) -> UnitTotals {
        UnitTotals { unit: UnitId(id), records: items, items, bytes }
    }

    /// Payloads as `unit:from-to+…`, and the units covered.
    fn packed(units: &[UnitTotals], flush: bool) -> (Vec<String>, usize) {
        let (payloads, covered) = pack(units, LIMITS, flush);
        let shown = payloads
            .iter()
            .map(|payload| {
                let TaskPayload::UnitRanges(ranges) = payload else { panic!("ranges expected") };
                ranges.iter().map(|r| format!("{}:{}-{}", r.unit, r.from, r.to)).collect::<Vec<_>>().join("+")
            })
            .collect();
        (shown, covered)
    }

    #[test]
    fn small_units_share_a_pack_and_the_unfilled_one_waits() {
        let units = [unit(1, 4, 10), unit(2, 4, 10), unit(3, 4, 10)];
        assert_eq!(packed(&units, false), (vec!["1:0-4+2:0-4".into()], 2));
        assert_eq!(packed(&units, true), (vec!["1:0-4+2:0-4".into(), "3:0-4".into()], 3));
    }

    #[test]
    fn a_large_unit_is_cut_evenly() {
        assert_eq!(
            packed(&[unit(1, 25, 10)], false),
            (vec!["1:0-8".into(), "1:8-16".into(), "1:16-25".into()], 1)
        );
        assert_eq!(packed(&[unit(1, 2, 5_000)], false), (vec!["1:0-1".into(), "1:1-2".into()], 1));
    }

    #[test]
    fn bytes_close_a_pack_too() {
        assert_eq!(packed(&[unit(1, 1, 900), unit(2, 1, 200)], false), (vec!["1:0-1".into()], 1));
        assert_eq!(
            packed(&[unit(1, 1, 9_000)], false),
            (vec![], 0),
            "one object is never cut, and waits for a flush"
        );
        assert_eq!(packed(&[unit(1, 1, 9_000), unit(2, 1, 1)], false), (vec!["1:0-1".into()], 1));
    }

    #[test]
    fn a_large_unit_behind_an_open_pack_keeps_it_covered() {
        let units = [unit(1, 4, 10), unit(2, 25, 10), unit(3, 4, 10)];
        let (payloads, covered) = packed(&units, false);
        assert_eq!((payloads.len(), covered), (4, 2), "the pack of 1, three pieces of 2, and 3 waits");
    }
}
