//! The statements, by subject: those that both backends share (`store/src/queries/`), with PostgreSQL's parameters, and
//! its own.

/// The text of both files.
macro_rules! queries_of {
    ($subject:literal) => {{
        const TEXT: &str = concat!(
            include_str!(concat!("../queries/", $subject, ".sql")),
            include_str!(concat!("queries/", $subject, ".sql"))
        );
        const DOLLARS: [u8; TEXT.len()] = crate::queries::dollars(TEXT);
        match str::from_utf8(&DOLLARS) {
            Ok(text) => text,
            Err(_) => panic!("one ASCII character took the place of another"),
        }
    }};
}

pub(super) const BASE: &str = queries_of!("base");
pub(super) const DATASOURCES: &str = queries_of!("datasources");
pub(super) const ENUMERATION: &str = queries_of!("enumeration");
pub(super) const JOBS: &str = queries_of!("jobs");
pub(super) const OPERATIONS: &str = queries_of!("operations");
pub(super) const ORIGINS: &str = queries_of!("origins");
pub(super) const PRUNE: &str = queries_of!("prune");
pub(super) const RESULTS: &str = queries_of!("results");
pub(super) const SESSIONS: &str = queries_of!("sessions");
pub(super) const TABLES: &str = include_str!("queries/tables.sql");
pub(super) const TARGETS: &str = queries_of!("targets");
pub(super) const TASKS: &str = queries_of!("tasks");
pub(super) const TEMPLATES: &str = queries_of!("templates");

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
