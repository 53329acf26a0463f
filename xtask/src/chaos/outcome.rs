//! What a job left in the book, line by line, and what differs between two of them.
//!
//! The same lines come from the fleet's book and from the embedded one: a scan must not depend on where it
//! runs.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use rusqlite::{Connection, OpenFlags};

use super::book::Book;

/// Differences shown of one outcome; all are counted.
const SHOWN_MAX: usize = 10;

/// Findings, problems and totals, and how often each is there.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outcome(BTreeMap<String, u64>);

#[derive(Default)]
pub struct Difference {
    pub lost: u64,
    pub duplicated: u64,
    pub lines: Vec<String>,
}

/// How the two kinds of book say the same.
struct Dialect {
    group: &'static str,
    own: &'static str,
    hex: fn(&str) -> String,
    column: &'static str,
}

const POSTGRES: Dialect = Dialect {
    group: "j.node_group",
    own: "j.id IN (OWN)",
    hex: |bytes| format!("encode({bytes}, 'hex')"),
    column: "column_number",
};
const SQLITE: Dialect =
    Dialect { group: "?1", own: "true", hex: |bytes| format!("lower(hex({bytes}))"), column: "column" };

impl Dialect {
    fn statement(&self) -> String {
        let Dialect { group, own, hex, column } = self;
        let (key, nested, fingerprint) = (hex("f.object_key"), hex("f.nested_path"), hex("f.fingerprint"));
        let (object, inner, unit) = (hex("s.object_key"), hex("s.nested_path"), hex("u.key"));
        format!(
            "SELECT concat_ws('|', 'finding', {group}, {key}, {nested}, f.rule_id, {fingerprint}, f.category, o.score,
                 o.span_start, o.span_end, o.line, o.{column}, o.decoding, o.reasons)
             FROM finding_occurrences o JOIN findings f ON f.id = o.finding_id JOIN jobs j ON j.id = o.job_id
             WHERE {own}
             UNION ALL
             SELECT concat_ws('|', 'problem', {group}, {object}, {inner}, s.status, s.reason, s.overflow)
             FROM object_scans s JOIN jobs j ON j.id = s.job_id WHERE {own}
             UNION ALL
             SELECT concat_ws('|', 'problem', {group}, {unit}, u.reason)
             FROM task_units u JOIN jobs j ON j.id = u.job_id WHERE {own} AND u.status <> 'COMMITTED'
             UNION ALL
             SELECT concat_ws('|', 'total', {group}, 'listed', count(*), sum(u.records), sum(u.objects),
                 sum(u.containers), sum(u.skipped), sum(u.bytes))
             FROM task_units u JOIN jobs j ON j.id = u.job_id WHERE {own} GROUP BY j.node_group
             UNION ALL
             SELECT concat_ws('|', 'total', {group}, 'skipped', k.reason, sum(k.count))
             FROM task_unit_skips k JOIN task_units u ON u.id = k.unit_id JOIN jobs j ON j.id = u.job_id
             WHERE {own} GROUP BY j.node_group, k.reason
             UNION ALL
             SELECT concat_ws('|', 'total', {group}, 'scanned', sum(t.objects), sum(t.nested), sum(t.bytes))
             FROM tasks t JOIN jobs j ON j.id = t.job_id
             WHERE {own} AND t.type = 'CLASSIFICATION' AND t.status = 'COMPLETED' GROUP BY j.node_group
             UNION ALL
             SELECT concat_ws('|', 'total', {group}, 'status', j.status) FROM jobs j WHERE {own}"
        )
    }
}

impl Outcome {
    /// Of one master job in the fleet's book.
    pub fn of_fleet(book: &Book<'_>, master: &str) -> Result<Outcome> {
        Ok(book.lines(&POSTGRES.statement(), master)?.into_iter().collect())
    }

    /// Of the one job in an embedded book, as if it were this node group's.
    pub fn of_embedded(state: &Path, group: &str) -> Result<Outcome> {
        let path = state.join("book.sqlite");
        let book = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)
            .with_context(|| format!("cannot open {}", path.display()))?;
        let mut statement = book.prepare(&SQLITE.statement())?;
        let lines = statement.query_map([group], |row| row.get::<_, String>(0))?;
        lines.map(|line| Ok(line?)).collect()
    }

    pub fn and(mut self, other: Outcome) -> Outcome {
        for (line, count) in other.0 {
            *self.0.entry(line).or_default() += count;
        }
        self
    }

    /// How many of a kind: `finding`, `problem`.
    pub fn count(&self, kind: &str) -> u64 {
        let of_kind = self.0.iter().filter(|(line, _)| line.split('|').next() == Some(kind));
        of_kind.map(|(_, count)| count).sum()
    }

    /// How many findings of a rule.
    pub fn count_of_rule(&self, rule: &str) -> u64 {
        let named = format!("|{rule}|");
        let of_rule = self.0.iter().filter(|(line, _)| line.starts_with("finding|") && line.contains(&named));
        of_rule.map(|(_, count)| count).sum()
    }

    /// The totals, for people.
    pub fn totals(&self) -> impl Iterator<Item = &str> {
        self.0.keys().filter_map(|line| line.strip_prefix("total|"))
    }

    pub fn difference(&self, expected: &Outcome) -> Difference {
        let mut difference = Difference::default();
        let mut shown = Vec::new();
        for (line, &count) in &self.0 {
            let wanted = expected.0.get(line).copied().unwrap_or(0);
            if count > wanted {
                difference.duplicated += count - wanted;
                shown.push(format!("{count} instead of {wanted} times: {line}"));
            }
        }
        for (line, &wanted) in &expected.0 {
            let count = self.0.get(line).copied().unwrap_or(0);
            if count < wanted {
                difference.lost += wanted - count;
                shown.push(format!("lost: {line}"));
            }
        }
        let beyond = shown.len().saturating_sub(SHOWN_MAX);
        difference.lines.extend(shown.into_iter().take(SHOWN_MAX));
        if beyond > 0 {
            difference.lines.push(format!("and {beyond} more lines that differ"));
        }
        difference
    }
}

impl FromIterator<String> for Outcome {
    fn from_iter<I: IntoIterator<Item = String>>(lines: I) -> Outcome {
        let mut outcome = Outcome::default();
        for line in lines {
            *outcome.0.entry(line).or_default() += 1;
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(lines: &[&str]) -> Outcome {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    #[test]
    fn equal_outcomes_do_not_differ() {
        let (a, b) = (outcome(&["finding|x", "total|y"]), outcome(&["total|y", "finding|x"]));
        assert!(a.difference(&b).lines.is_empty());
        assert_eq!(a.count("finding"), 1);
    }

    #[test]
    fn what_is_lost_and_what_is_twice_are_counted_apart() {
        let difference = outcome(&["a", "a", "c"]).difference(&outcome(&["a", "b"]));
        assert_eq!((difference.lost, difference.duplicated), (1, 2));
        assert_eq!(difference.lines.len(), 3);
    }

    #[test]
    fn outcomes_add_up() {
        let both = outcome(&["finding|eu|k|r|"]).and(outcome(&["finding|us|k|r|", "finding|eu|k|r|"]));
        assert_eq!((both.count("finding"), both.count_of_rule("r")), (3, 3));
    }
}
