//! What can go wrong with the book, and whether trying again can help.

use domesday_model::{IllegalTransition, JobId, TaskId};

#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The claim is gone: reaped, cancelled, or completed by someone else. Nothing was written; stop
    /// working on the task.
    #[error("task {0} is no longer claimed by this worker; its results were refused")]
    LostClaim(TaskId),
    /// The job has another owner or status than the lease says. Nothing was written.
    #[error("job {0} is no longer owned by this orchestrator; the change was refused")]
    LostLease(JobId),
    /// The answer to COMMIT was lost: it may or may not have happened. Read back before going on.
    #[error("the answer to a commit was lost ({0}): run the same command again; what was committed is kept")]
    CommitUnknown(String),
    /// A batch that does not follow what is staged: one before it never arrived. Nothing was written.
    #[error(
        "task {task}: a batch begins at {found}, where {expected} comes next; nothing of it was written: give the task back"
    )]
    Gap { task: TaskId, expected: i64, found: i64 },
    /// Completing it would leave a container that nobody lists to its end. Nothing was written.
    #[error(
        "task {0} has a container that is listed in part: commit it, or give the task back; nothing was written"
    )]
    OpenUnit(TaskId),
    #[error(
        "the state folder {0} is in use by another process (pid {1}); wait for it, or use another --state"
    )]
    Locked(String, String),
    #[error(
        "the disk that holds the state folder is full: free some space and run the same command again; nothing committed is lost"
    )]
    DiskFull,
    #[error("the state folder {0} is a file: use another --state")]
    NoFolder(String),
    #[error("the state folder cannot be written ({0}): make it writable, or use another --state")]
    ReadOnly(String),
    #[error(
        "the book was written by a newer version (schema {found}, this version knows {known}): use that version, or another --state or --store"
    )]
    NewerSchema { found: i64, known: i64 },
    #[error(
        "migration {version} of the book differs from the one this version has ({name}): the book was made by a changed build; use another --state or --store"
    )]
    ChangedMigration { version: i64, name: String },
    #[error(
        "the database has schema {found}, and this version needs {known}: run `domesday db migrate` as its owner"
    )]
    OlderSchema { found: i64, known: i64 },
    #[error("there is no book in {0}: run a scan with this --state first")]
    NoBook(String),
    #[error("there is already a {kind} `{name}`: use another name, or edit that one")]
    Exists { kind: &'static str, name: String },
    #[error("there is no {kind} `{name}`")]
    Missing { kind: &'static str, name: String },
    #[error("the {kind} `{name}` is in use: {by}")]
    InUse { kind: &'static str, name: String, by: String },
    #[error(transparent)]
    Illegal(#[from] IllegalTransition),
    #[error("the book is damaged: {0}")]
    Damaged(String),
    /// The database will not do this however often it is asked: a login, a right, a setting, a value.
    #[error("the database refused: {0}")]
    Refused(String),
    #[error("the store has stopped")]
    Stopped,
    #[error("the store failed: {0}")]
    Backend(String),
}

impl StoreError {
    /// Whether the same call may succeed later without anyone doing anything.
    pub fn is_retryable(&self) -> bool {
        matches!(self, StoreError::CommitUnknown(_) | StoreError::Backend(_))
    }

    /// The caller lost the right to write; no error of the store itself.
    pub fn is_lost(&self) -> bool {
        matches!(self, StoreError::LostClaim(_) | StoreError::LostLease(_))
    }
}
