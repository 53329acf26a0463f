//! Hooks into writes: how tests kill the process, or lose an answer, at each point of each verb.

/// A point in the life of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Before the verb's first statement.
    Begin,
    /// After its last statement, before COMMIT.
    BeforeCommit,
    /// After COMMIT, before the caller hears of it.
    AfterCommit,
}

/// What a hook makes happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    None,
    /// The caller gets `CommitUnknown`; before the commit the write is rolled back, after it it stands.
    LoseAnswer,
}

/// Called at each stage of each write, one call at a time.
pub trait WriteHook: Send {
    fn at(&mut self, verb: &'static str, stage: Stage) -> Fault;
}
