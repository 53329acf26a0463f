//! SQL lives in `.sql` files, several statements a file, each under a `-- name: …` line. They are cut
//! out at compile time, so that a statement that does not exist is a compile error.
//!
//! The files of this folder have what is the same for both backends, with SQLite's parameters (`?1`); PostgreSQL's
//! (`$1`) are put in their place at compile time. What differs is in the backend's own folder, in a file of the same
//! name. A statement that is shared is plain SQL: `CAST(… AS bigint)`, no `::bigint`, no hint for one planner.

/// The statement called `name` in `file`. Panics (at compile time, when used in a constant) if there is
/// none.
pub(crate) const fn statement(file: &'static str, name: &str) -> &'static str {
    let bytes = file.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if is_header(bytes, at, name.as_bytes()) {
            let start = line_end(bytes, at);
            let mut end = start;
            while end < bytes.len() && !starts_with(bytes, end, HEADER) {
                end = line_end(bytes, end);
            }
            return file.split_at(end).0.split_at(start).1;
        }
        at = line_end(bytes, at);
    }
    panic!("no statement of that name in the file")
}

/// A backend's files, by subject. `$queries_of` gives the text of one.
macro_rules! subjects {
    ($queries_of:ident) => {
        pub(super) const BASE: &str = $queries_of!("base");
        pub(super) const DATASOURCES: &str = $queries_of!("datasources");
        pub(super) const ENUMERATION: &str = $queries_of!("enumeration");
        pub(super) const JOBS: &str = $queries_of!("jobs");
        pub(super) const OPERATIONS: &str = $queries_of!("operations");
        pub(super) const ORIGINS: &str = $queries_of!("origins");
        pub(super) const PRUNE: &str = $queries_of!("prune");
        pub(super) const RESULTS: &str = $queries_of!("results");
        pub(super) const SESSIONS: &str = $queries_of!("sessions");
        pub(super) const TABLES: &str = include_str!("queries/tables.sql");
        pub(super) const TARGETS: &str = $queries_of!("targets");
        pub(super) const TASKS: &str = $queries_of!("tasks");
        pub(super) const TEMPLATES: &str = $queries_of!("templates");

        /// For the tests that go through all of them.
        #[cfg(test)]
        pub(super) const ALL: [&str; 13] = [
            BASE,
            DATASOURCES,
            ENUMERATION,
            JOBS,
            OPERATIONS,
            ORIGINS,
            PRUNE,
            RESULTS,
            SESSIONS,
            TABLES,
            TARGETS,
            TASKS,
            TEMPLATES,
        ];
    };
}
pub(crate) use subjects;

/// The same text with PostgreSQL's parameters: `$1` for `?1`.
pub(crate) const fn dollars<const N: usize>(text: &str) -> [u8; N] {
    let bytes = text.as_bytes();
    let mut out = [0; N];
    let mut at = 0;
    while at < N {
        let is_parameter = bytes[at] == b'?' && at + 1 < N && bytes[at + 1].is_ascii_digit();
        out[at] = if is_parameter { b'$' } else { bytes[at] };
        at += 1;
    }
    out
}

const HEADER: &[u8] = b"-- name: ";

const fn is_header(bytes: &[u8], at: usize, name: &[u8]) -> bool {
    let end = at + HEADER.len() + name.len();
    starts_with(bytes, at, HEADER)
        && starts_with(bytes, at + HEADER.len(), name)
        && (end == bytes.len() || bytes[end] == b'\n')
}

const fn starts_with(bytes: &[u8], at: usize, prefix: &[u8]) -> bool {
    let mut i = 0;
    while i < prefix.len() {
        if at + i >= bytes.len() || bytes[at + i] != prefix[i] {
            return false;
        }
        i += 1;
    }
    true
}

/// Just past the newline that ends the line at `at`.
const fn line_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at;
    while end < bytes.len() && bytes[end] != b'\n' {
        end += 1;
    }
    if end < bytes.len() { end + 1 } else { end }
}

/// Every statement of a file, by name: for the test that prepares them all.
#[cfg(test)]
pub(crate) fn statements(file: &'static str) -> Vec<(&'static str, &'static str)> {
    file.lines()
        .filter_map(|line| line.strip_prefix("-- name: "))
        .map(|name| (name, statement(file, name)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "-- about\n-- name: one\nSELECT 1;\n\n-- name: one_more\nSELECT 2\n  FROM x;\n";

    #[test]
    fn statements_are_cut_at_their_headers() {
        const ONE: &str = statement(FILE, "one");
        assert_eq!(ONE.trim(), "SELECT 1;");
        assert_eq!(statement(FILE, "one_more").trim(), "SELECT 2\n  FROM x;");
        assert_eq!(statements(FILE).len(), 2);
    }

    #[test]
    fn parameters_become_postgres_ones() {
        const TEXT: &str = "SELECT ?1, ?12 ? '?'";
        const DOLLARS: [u8; TEXT.len()] = dollars(TEXT);
        assert_eq!(str::from_utf8(&DOLLARS), Ok("SELECT $1, $12 ? '?'"));
    }

    #[test]
    #[should_panic(expected = "no statement")]
    fn a_missing_statement_panics() {
        statement(FILE, "on");
    }
}
