//! The statements, by subject: those that both backends share (`store/src/queries/`), and SQLite's own.

/// The text of both files.
macro_rules! queries_of {
    ($subject:literal) => {
        concat!(
            include_str!(concat!("../queries/", $subject, ".sql")),
            include_str!(concat!("queries/", $subject, ".sql"))
        )
    };
}

crate::queries::subjects!(queries_of);
