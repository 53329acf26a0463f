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

crate::queries::subjects!(queries_of);

/// Logins are PostgreSQL's alone.
pub(super) const LOGINS: &str = include_str!("queries/logins.sql");
