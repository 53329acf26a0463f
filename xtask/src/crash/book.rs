//! A look into the book with SQL of its own, so that a mistake of the store cannot hide itself.
//!
//! It only reads. What it says about a finished book must hold however often the scan was killed.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

/// Broken invariants shown of each kind.
const SHOWN_MAX: usize = 5;

/// Statements that count what must not be in a finished book, with what it means.
const NEVER: &[(&str, &str)] = &[
    (
        "jobs that did not end",
        "SELECT count(*) FROM jobs WHERE status NOT IN ('COMPLETED', 'PARTIALLY_COMPLETED')",
    ),
    ("tasks that are open", "SELECT count(*) FROM tasks WHERE status IN ('PENDING', 'RUNNING')"),
    ("tasks that failed", "SELECT count(*) FROM tasks WHERE status = 'FAILED'"),
    ("units that are staging or failed", "SELECT count(*) FROM task_units WHERE status <> 'COMMITTED'"),
    ("units that were not fanned out", "SELECT count(*) FROM task_units WHERE fanned_out <> 3"),
    (
        "containers with a page twice in a session",
        "SELECT count(*) FROM (SELECT 1 FROM task_units GROUP BY session_id, key, page HAVING count(*) > 1)",
    ),
    (
        "containers of which a page is missing, or that did not end",
        "SELECT count(*) FROM (
             SELECT 1 FROM task_units GROUP BY session_id, key
             HAVING count(*) <> max(page) + 1 OR sum(resume_point IS NULL) <> 1)",
    ),
    (
        "entries listed twice in a container",
        "SELECT count(*) FROM (
             SELECT 1 FROM task_output_records r JOIN task_units u ON u.id = r.unit_id
             GROUP BY u.session_id, u.key, r.name, r.kind HAVING count(*) > 1)",
    ),
    (
        "units whose totals are not those of their records",
        "SELECT count(*) FROM task_units u WHERE (u.records, u.objects, u.containers) <> (
             SELECT count(*), coalesce(sum(kind IN (0, 4, 7, 9)), 0), coalesce(sum(kind IN (1, 5, 6, 8)), 0)
             FROM task_output_records r WHERE r.unit_id = u.id)",
    ),
    (
        "records of no unit",
        "SELECT count(*) FROM task_output_records WHERE unit_id NOT IN (SELECT id FROM task_units)",
    ),
    (
        "sessions that have not one unit for their root and one for each folder",
        "SELECT count(*) FROM enumeration_sessions s
         WHERE (SELECT count(DISTINCT u.key) FROM task_units u WHERE u.session_id = s.id)
            <> 1 + (SELECT coalesce(sum(u.containers), 0) FROM task_units u WHERE u.session_id = s.id)",
    ),
    ("results that are still staged", "SELECT count(*) FROM staged_results"),
    (
        "occurrences in the book twice",
        "SELECT count(*) FROM (SELECT 1 FROM finding_occurrences
         GROUP BY job_id, finding_id, span_start, span_end, row_key HAVING count(*) > 1)",
    ),
    (
        "tables, or ranges of their rows, that were observed twice",
        "SELECT count(*) FROM (SELECT 1 FROM table_observations
         GROUP BY job_id, datasource_id, object_key, nested_path, part_key HAVING count(*) > 1)",
    ),
    (
        "occurrences of tasks that did not complete",
        "SELECT count(*) FROM finding_occurrences WHERE task_id NOT IN (SELECT id FROM tasks WHERE status = 'COMPLETED')",
    ),
    (
        "objects given up because they ended their worker",
        "SELECT count(*) FROM object_scans WHERE reason = 'poisoned'",
    ),
];

/// Where a killed scan stood.
pub struct Standing {
    pub phase: &'static str,
    /// The most abandonments of a task that is open, this kill included.
    pub abandonments: u64,
}

fn open(state: &Path) -> Result<Connection> {
    let path = state.join("book.sqlite");
    // Reading leaves the log as the killed process left it: recovery is for the binary to do.
    Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .with_context(|| format!("cannot open {}", path.display()))
}

/// How far a scan had come when it was killed. A book that cannot be read yet has not begun.
pub fn standing(state: &Path) -> Standing {
    let read = || -> Result<Standing> {
        let book = open(state)?;
        let number = |sql: &str| -> Result<u64> {
            Ok(book.query_row(sql, [], |row| row.get::<_, i64>(0))?.cast_unsigned())
        };
        let open = "SELECT count(*) FROM tasks WHERE status IN ('PENDING', 'RUNNING')";
        let listing = number(&format!("{open} AND type = 'DISCOVERY_ENUMERATE'"))?;
        let classifying = number(&format!("{open} AND type = 'CLASSIFICATION'"))?;
        let unfinished = number("SELECT count(*) FROM jobs WHERE finished_at IS NULL")?;
        let staging = number("SELECT count(*) FROM task_units WHERE status = 'STAGING'")?;
        Ok(Standing {
            phase: match (unfinished, listing, classifying) {
                (0, ..) if number("SELECT count(*) FROM jobs")? == 0 => "before the job",
                (0, ..) => "job done",
                (_, 0, 0) => "between tasks",
                (_, 0, _) => "classifying",
                _ if staging > 0 => "listing, a unit staged in part",
                (_, _, 0) => "listing",
                _ => "listing and classifying",
            },
            abandonments: number(
                "SELECT coalesce(max(abandonments + (status = 'RUNNING')), 0) FROM tasks
                 WHERE status IN ('PENDING', 'RUNNING')",
            )?,
        })
    };
    read().unwrap_or(Standing { phase: "before the job", abandonments: 0 })
}

/// Every invariant of a finished book that does not hold.
pub fn offences(state: &Path) -> Result<Vec<String>> {
    let book = open(state)?;
    let mut offences = Vec::new();
    for (what, sql) in NEVER {
        let count: i64 =
            book.query_row(sql, [], |row| row.get(0)).with_context(|| format!("cannot count {what}"))?;
        if count > 0 {
            offences.push(format!("book: {count} {what}"));
        }
    }
    let whole: String = book.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if whole != "ok" {
        offences.push(format!("book: damaged: {whole}"));
    }
    let mut uncovered = coverage(&book)?;
    uncovered.truncate(SHOWN_MAX);
    offences.extend(uncovered);
    Ok(offences)
}

/// Whether the ranges of the completed classification tasks cover each unit that has objects from its
/// first record to its last, without gap and without overlap: then each object was classified once.
fn coverage(book: &Connection) -> Result<Vec<String>> {
    let mut ranges: BTreeMap<i64, Vec<(i64, i64)>> = BTreeMap::new();
    let mut tasks =
        book.prepare("SELECT payload FROM tasks WHERE type = 'CLASSIFICATION' AND status = 'COMPLETED'")?;
    let mut rows = tasks.query([])?;
    while let Some(row) = rows.next()? {
        let payload: Value =
            serde_json::from_str(&row.get::<_, String>(0)?).context("a payload is not JSON")?;
        for range in payload["unit_ranges"].as_array().context("a payload without ranges")? {
            let number = |key: &str| range[key].as_i64().with_context(|| format!("a range without `{key}`"));
            ranges.entry(number("unit")?).or_default().push((number("from")?, number("to")?));
        }
    }
    let mut offences = Vec::new();
    let mut units = book.prepare("SELECT id, records FROM task_units WHERE objects > 0")?;
    let mut rows = units.query([])?;
    while let Some(row) = rows.next()? {
        let (unit, records): (i64, i64) = (row.get(0)?, row.get(1)?);
        if !tiles(ranges.remove(&unit).unwrap_or_default(), records) {
            offences.push(format!("book: the objects of unit {unit} were not classified exactly once"));
        }
    }
    offences
        .extend(ranges.keys().map(|unit| format!("book: unit {unit} has no objects, and was classified")));
    Ok(offences)
}

fn tiles(mut ranges: Vec<(i64, i64)>, records: i64) -> bool {
    ranges.sort_unstable();
    let end = ranges.iter().try_fold(0, |end, &(from, to)| (from == end && to > from).then_some(to));
    end == Some(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_must_meet_exactly() {
        for (ranges, records, expect) in [
            (vec![(0, 5)], 5, true),
            (vec![(3, 5), (0, 3)], 5, true),
            (vec![(0, 3), (4, 5)], 5, false),
            (vec![(0, 4), (3, 5)], 5, false),
            (vec![(0, 5), (0, 5)], 5, false),
            (vec![(0, 4)], 5, false),
            (vec![], 5, false),
        ] {
            assert_eq!(tiles(ranges.clone(), records), expect, "{ranges:?} of {records}");
        }
    }
}
