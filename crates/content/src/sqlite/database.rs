//! An SQLite file, opened so that nothing is changed, created, run or filled by it.
//!
//! The file is read as it lies there (`immutable`): without locks, and without the files that SQLite keeps beside
//! one. Where there is no file, only bytes, these are the database. A file may be hostile: its schema is not
//! trusted, what it may ask of the library is limited, and a watch ends statements that do not get on. What
//! bounds the rows of a table is the file itself: damaged pages can point at one another, and then there are more
//! rows than the file has room for.

use std::ffi::OsString;
use std::io::{Cursor, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags};

use super::error::SqliteError;

/// The length of a file's header.
const HEADER_LEN: usize = 100;
/// Where the header says how the file is written and read, and what it says without a log.
const HEADER_MODES: std::ops::Range<usize> = 18..20;
const MODE_WITHOUT_LOG: u8 = 1;
/// What a rollback journal begins with that has not been rolled back.
const HOT_JOURNAL: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

/// Bytes of one value that is loaded, and of the text of one schema entry.
pub(super) const LENGTH_MAX: i32 = 1 << 20;
/// The same where a value's beginning cannot be read by itself.
pub(super) const WHOLE_LENGTH_MAX: i32 = 16 << 20;
/// And where values are computed: some functions take as long as the product of two lengths, and nothing ends them.
/// A little more than is kept of a value.
pub(super) const COMPUTED_LENGTH_MAX: i32 = (256 << 10) + 64;
/// Bytes of pages kept in memory per connection, in KiB.
const CACHE_KIB: i32 = 2_048;
/// Instructions between two looks at the watch.
const INSTRUCTIONS_BETWEEN: i32 = 10_000;
/// Looks at the watch that a view is worth: two billion instructions.
pub(super) const VIEW_LOOKS_MAX: u64 = 200_000;
/// A row of a table takes so many bytes of the file, at least: a cell, and the pointer to it.
const ROW_LEN_MIN: u64 = 4;

const LIMITS: &[(Limit, i32)] = &[
    (Limit::SQLITE_LIMIT_LENGTH, LENGTH_MAX),
    (Limit::SQLITE_LIMIT_SQL_LENGTH, LENGTH_MAX),
    (Limit::SQLITE_LIMIT_EXPR_DEPTH, 100),
    (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 50),
    (Limit::SQLITE_LIMIT_VDBE_OP, 250_000),
    (Limit::SQLITE_LIMIT_FUNCTION_ARG, 32),
    (Limit::SQLITE_LIMIT_ATTACHED, 0),
    (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50),
    (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
    (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    (Limit::SQLITE_LIMIT_SCHEMA, 100_000),
];

const CONFIGURATION: &[(DbConfig, bool)] = &[
    (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
    (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
    (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
    (DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, false),
];

/// Nothing goes to disk: what would have to is refused before it is read, see the catalogue.
const PRAGMAS: &str = "PRAGMA query_only = ON; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0;
    PRAGMA temp_store = MEMORY; PRAGMA automatic_index = OFF;";

/// Left as they are in the path of a URI.
const PATH_BYTES: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.');

/// An open file, for one reader at a time.
pub struct Database {
    pub(super) connection: Connection,
    pub(super) watch: Arc<Watch>,
    /// The size of the file.
    pub(super) bytes: u64,
}

impl Database {
    /// Opens a file where it lies. The path must not pass through a link.
    pub fn open(path: &Path, patience: Duration) -> Result<Database, SqliteError> {
        let metadata = std::fs::metadata(path)?;
        if !metadata.is_file() {
            return Err(SqliteError::NotADatabase);
        }
        // SQLite says that a file cannot be opened, and not why.
        drop(std::fs::File::open(path)?);
        let mut uri = String::from("file:");
        uri.extend(percent_encode(path.as_os_str().as_bytes(), PATH_BYTES));
        uri.push_str("?immutable=1&mode=ro");
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        Database::guarded(Connection::open_with_flags(uri, flags)?, metadata.len(), patience)
    }

    /// A database that is somewhere else, in memory.
    pub(super) fn read(
        mut reader: impl Read,
        bytes: u64,
        patience: Duration,
    ) -> Result<Database, SqliteError> {
        let mut header = [0; HEADER_LEN];
        reader.read_exact(&mut header).map_err(|_| SqliteError::NotADatabase)?;
        // There is no log in memory: a database that had one says that it has none.
        header[HEADER_MODES].fill(MODE_WITHOUT_LOG);
        let mut connection = Connection::open_in_memory()?;
        let whole = Cursor::new(header).chain(reader);
        connection.deserialize_read_exact(MAIN_DB, whole, bytes as usize, true)?;
        Database::guarded(connection, bytes, patience)
    }

    fn guarded(mut connection: Connection, bytes: u64, patience: Duration) -> Result<Database, SqliteError> {
        for &(limit, value) in LIMITS {
            connection.set_limit(limit, value)?;
        }
        for &(setting, value) in CONFIGURATION {
            connection.set_db_config(setting, value)?;
        }
        let watch = Arc::new(Watch::default());
        connection.progress_handler(INSTRUCTIONS_BETWEEN, Some(Watch::handler(&watch, patience)))?;
        let database = Database { connection, watch, bytes };
        let pragmas = format!("{PRAGMAS} PRAGMA cache_size = -{CACHE_KIB};");
        database.connection.execute_batch(&pragmas).map_err(|error| database.error(error))?;
        Ok(database)
    }

    /// More rows than any table of this file can have.
    pub fn rows_max(&self) -> u64 {
        self.bytes / ROW_LEN_MIN
    }

    /// What went wrong, also when it was the watch.
    pub(super) fn error(&self, error: rusqlite::Error) -> SqliteError {
        match error.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => SqliteError::Stopped(self.watch.why()),
            _ => error.into(),
        }
    }
}

/// Ends statements that do not get on.
#[derive(Default)]
pub(super) struct Watch {
    /// Rises with every row.
    steps: AtomicU64,
    /// Looks that are left before a statement has done enough; none are counted when it is zero.
    looks: AtomicU64,
    /// The first of [`Watch::WHY`] that holds, from one.
    why: AtomicU8,
}

impl Watch {
    const WHY: [&str; 2] = ["a row took too long", "the view takes too much to compute"];

    /// Notes that a row has come, or that a statement begins.
    pub fn step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    /// Allows so many looks from here on; zero allows any number.
    pub fn allow(&self, looks: u64) {
        self.looks.store(looks, Ordering::Relaxed);
        self.step();
    }

    fn why(&self) -> &'static str {
        let why = usize::from(self.why.load(Ordering::Relaxed)).saturating_sub(1);
        Watch::WHY.get(why).copied().unwrap_or(Watch::WHY[0])
    }

    fn handler(watch: &Arc<Watch>, patience: Duration) -> impl FnMut() -> bool + Send + use<> {
        let watch = Arc::clone(watch);
        let mut last = (0, Instant::now());
        move || {
            let steps = watch.steps.load(Ordering::Relaxed);
            if steps != last.0 {
                last = (steps, Instant::now());
            }
            let looks = watch.looks.load(Ordering::Relaxed);
            watch.looks.store(looks.saturating_sub(1), Ordering::Relaxed);
            let holds = [last.1.elapsed() > patience, looks == 1];
            let why = holds.iter().position(|holds| *holds);
            watch.why.store(why.map_or(0, |why| why as u8 + 1), Ordering::Relaxed);
            why.is_some()
        }
    }
}

/// The file beside a database that holds changes which are not in it yet: they are not read.
pub fn unread_log(path: &Path) -> Option<String> {
    let beside = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        name
    };
    let (log, journal) = (beside("-wal"), beside("-journal"));
    let has_content =
        |path: &OsString| std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() > 0);
    let is_hot = || {
        let mut magic = [0; HOT_JOURNAL.len()];
        let file = std::fs::File::open(&journal).and_then(|mut file| file.read_exact(&mut magic));
        file.is_ok() && magic == HOT_JOURNAL
    };
    let found =
        if has_content(&log) { Some(log) } else { (has_content(&journal) && is_hot()).then_some(journal) };
    found.and_then(|path| Some(Path::new(&path).file_name()?.to_string_lossy().into_owned()))
}
