//! State machines. Each transition is a function that refuses an illegal one; a store verb asks here
//! before it writes, and repeats the state it started from in its predicate.

use std::fmt;

/// A change of state that the machine does not have.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("a {machine} cannot go from {from} to {to}")]
pub struct IllegalTransition {
    pub machine: &'static str,
    pub from: &'static str,
    pub to: &'static str,
}

macro_rules! machine {
    (
        $(#[doc = $doc:literal])+
        $name:ident ($label:literal) {
            $($variant:ident = $text:literal => [$($next:ident),*];)*
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $name { $($variant,)* }

        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The name as stored.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }

            /// The state of that name, if there is one.
            pub fn parse(text: &str) -> Option<$name> {
                match text { $($text => Some($name::$variant),)* _ => None }
            }

            /// The states that may follow this one.
            pub fn successors(self) -> &'static [$name] {
                match self { $($name::$variant => &[$($name::$next,)*],)* }
            }

            /// `to`, if the machine allows it.
            pub fn transition(self, to: $name) -> Result<$name, IllegalTransition> {
                if self.successors().contains(&to) {
                    Ok(to)
                } else {
                    Err(IllegalTransition { machine: $label, from: self.as_str(), to: to.as_str() })
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

machine! {
    /// A child job. PAUSING and CANCELLING are the times in which workers let go of its tasks. An ended job
    /// is queued again only by `job retry` and `task retry`.
    JobStatus ("job") {
        Queued = "QUEUED" => [Running, Cancelling];
        Running = "RUNNING" => [Completed, PartiallyCompleted, Failed, Pausing, Cancelling];
        Pausing = "PAUSING" => [Paused, Cancelling];
        Paused = "PAUSED" => [Queued, Cancelling];
        Cancelling = "CANCELLING" => [Cancelled];
        Cancelled = "CANCELLED" => [];
        Completed = "COMPLETED" => [];
        PartiallyCompleted = "PARTIALLY_COMPLETED" => [Queued];
        Failed = "FAILED" => [Queued];
    }
}

machine! {
    /// A task. RUNNING → PENDING is a retry, a return or the reaper; FAILED → PENDING is `task retry`. What a completed
    /// task could not list or read is tried again by a new one.
    TaskStatus ("task") {
        Pending = "PENDING" => [Running, Cancelled];
        Running = "RUNNING" => [Completed, Failed, Pending, Cancelled];
        Completed = "COMPLETED" => [];
        Failed = "FAILED" => [Pending];
        Cancelled = "CANCELLED" => [];
    }
}

machine! {
    /// The enumeration of one data source within one job.
    SessionStatus ("session") {
        Initialized = "INITIALIZED" => [InProgress];
        InProgress = "IN_PROGRESS" => [Completed, PartiallyCompleted, Failed, Stalled];
        Completed = "COMPLETED" => [];
        PartiallyCompleted = "PARTIALLY_COMPLETED" => [InProgress];
        Failed = "FAILED" => [InProgress];
        Stalled = "STALLED" => [InProgress];
    }
}

machine! {
    /// One commit of an enumeration session.
    BatchStatus ("batch") {
        InProgress = "IN_PROGRESS" => [Succeeded, PartiallyCompleted, Failed];
        Succeeded = "SUCCEEDED" => [];
        PartiallyCompleted = "PARTIALLY_COMPLETED" => [];
        Failed = "FAILED" => [];
    }
}

machine! {
    /// One listed container. Rows of a staging unit are invisible to every reader.
    UnitStatus ("unit") {
        Staging = "STAGING" => [Committed, Failed];
        Committed = "COMMITTED" => [];
        Failed = "FAILED" => [];
    }
}

impl JobStatus {
    /// Nothing more will happen to this job of itself.
    pub fn is_final(self) -> bool {
        use JobStatus::{Cancelled, Completed, Failed, PartiallyCompleted};
        matches!(self, Cancelled | Completed | PartiallyCompleted | Failed)
    }

    /// The status of a master job one of whose child jobs has this status, and another `other`: open
    /// while either is, and otherwise the worse of the two.
    pub fn combine(self, other: JobStatus) -> JobStatus {
        const ORDER: [JobStatus; 9] = [
            JobStatus::Running,
            JobStatus::Queued,
            JobStatus::Cancelling,
            JobStatus::Pausing,
            JobStatus::Paused,
            JobStatus::Cancelled,
            JobStatus::Failed,
            JobStatus::PartiallyCompleted,
            JobStatus::Completed,
        ];
        match (self, other) {
            // Some of it could not be done, and some could.
            (JobStatus::Failed, JobStatus::Completed) | (JobStatus::Completed, JobStatus::Failed) => {
                JobStatus::PartiallyCompleted
            }
            _ => ORDER.into_iter().find(|&status| status == self || status == other).unwrap_or(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_is_legal_exactly_when_listed() {
        for &from in JobStatus::ALL {
            for &to in JobStatus::ALL {
                assert_eq!(from.transition(to).is_ok(), from.successors().contains(&to));
            }
            assert_eq!(JobStatus::parse(from.as_str()), Some(from));
        }
    }

    #[test]
    fn a_master_job_is_as_open_or_as_bad_as_its_worst_child() {
        use JobStatus::*;
        assert_eq!(Completed.combine(Running), Running);
        assert_eq!(Completed.combine(Completed), Completed);
        assert_eq!(Completed.combine(Failed), PartiallyCompleted);
        assert_eq!(Paused.combine(Completed), Paused);
        for &a in JobStatus::ALL {
            for &b in JobStatus::ALL {
                assert_eq!(a.combine(b), b.combine(a));
            }
        }
    }

    #[test]
    fn a_refusal_names_both_states() {
        let refused = TaskStatus::Completed.transition(TaskStatus::Running).unwrap_err();
        assert_eq!(refused.to_string(), "a task cannot go from COMPLETED to RUNNING");
        assert!(JobStatus::Cancelled.is_final() && !JobStatus::Paused.is_final());
        assert!(BatchStatus::InProgress.transition(BatchStatus::Failed).is_ok());
        assert!(SessionStatus::Completed.transition(SessionStatus::InProgress).is_err());
        assert!(UnitStatus::Committed.transition(UnitStatus::Staging).is_err());
    }
}
