//! Jobs: what the user asked for, and the self-contained copy each node group works from.

use serde::{Deserialize, Serialize};

use crate::finding::{Score, UnknownWord};
use crate::state::JobStatus;

/// What a user may ask of a job that exists. Commands are executed in the order given, except that
/// CANCEL outranks the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Command {
    Start,
    Pause,
    Resume,
    Cancel,
}

impl Command {
    pub fn as_str(self) -> &'static str {
        match self {
            Command::Start => "START",
            Command::Pause => "PAUSE",
            Command::Resume => "RESUME",
            Command::Cancel => "CANCEL",
        }
    }

    /// What pending commands make of a job: its new status, and the commands that still wait. A command
    /// that has nothing to do any more is dropped; one whose time has not come stays, with all behind it.
    pub fn execute(status: JobStatus, pending: &[Command]) -> (JobStatus, Vec<Command>) {
        use JobStatus::{Cancelling, Paused, Pausing, Queued, Running};
        if status.is_final() || status == Cancelling {
            return (status, Vec::new());
        }
        if pending.contains(&Command::Cancel) {
            return (Cancelling, Vec::new());
        }
        let mut now = status;
        for (index, command) in pending.iter().enumerate() {
            now = match (command, now) {
                (Command::Start, Queued) | (Command::Pause, Queued) | (Command::Resume, Pausing) => {
                    return (now, pending[index..].to_vec());
                }
                (Command::Pause, Running) => Pausing,
                (Command::Resume, Paused) => Queued,
                _ => now,
            };
        }
        (now, Vec::new())
    }
}

/// A data source as a job carries it: configuration and name, never a secret.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DatasourceSpec {
    /// Unique in the book, such as `filesystem:/srv/share`.
    pub name: String,
    /// Which connector reads it.
    pub kind: String,
    pub node_group: String,
    /// The connector's own configuration; the connector validates it.
    pub configuration: serde_json::Value,
    /// Tasks of this source that may run at once across the fleet; `None` leaves it to the workers.
    #[serde(default)]
    pub concurrency_limit: Option<u32>,
    /// Only workers with this label (`host=nas1`) read it: a source that not every host reaches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_label: Option<String>,
    /// Where the secret is that opens it (`env:NAME`, `file:PATH`); resolved by the worker, at run time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
}

impl DatasourceSpec {
    /// A source that every worker of the group may read, as many at once as there are, and that needs no secret.
    pub fn new(
        name: impl Into<String>,
        kind: impl Into<String>,
        node_group: impl Into<String>,
        configuration: serde_json::Value,
    ) -> DatasourceSpec {
        DatasourceSpec {
            name: name.into(),
            kind: kind.into(),
            concurrency_limit: None,
            node_group: node_group.into(),
            configuration,
            worker_label: None,
            credential: None,
        }
    }
}

/// Whether what is scanned may say what is reported of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrustContent {
    Yes,
    No,
    /// A local folder or work tree may, and nothing else.
    #[default]
    Auto,
}

impl TrustContent {
    pub fn as_str(self) -> &'static str {
        match self {
            TrustContent::Yes => "yes",
            TrustContent::No => "no",
            TrustContent::Auto => "auto",
        }
    }

    /// What two say together: whoever says no is heard, then whoever says yes.
    #[must_use]
    pub fn and(self, other: TrustContent) -> TrustContent {
        use TrustContent::{Auto, No, Yes};
        match (self, other) {
            (No, _) | (_, No) => No,
            (Yes, _) | (_, Yes) => Yes,
            (Auto, Auto) => Auto,
        }
    }
}

impl std::str::FromStr for TrustContent {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        let all = [TrustContent::Yes, TrustContent::No, TrustContent::Auto];
        all.into_iter().find(|trust| trust.as_str() == word).ok_or_else(|| UnknownWord {
            word: word.to_owned(),
            kind: "word of trust",
            choices: "yes, no, auto".to_owned(),
        })
    }
}

/// What decides which findings a scan produces, beside the rules and the data sources.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ScanOptions {
    /// Findings below this score are not kept.
    pub min_score: Score,
    /// Occurrences kept per object and rule; the rest is counted.
    pub occurrence_cap: u32,
    /// Archives inside archives, at most.
    pub max_depth: u32,
    /// Entries per outermost object, at most.
    pub max_entries: u64,
    /// Unpacked bytes per outermost object, at most.
    pub max_unpacked_bytes: u64,
    /// Unpacked bytes per packed byte, at most (checked once the unpacked size is worth it).
    pub max_inflation: u64,
    /// Whether a job is incomplete that met formats which are recognised and not read. Changes no finding. Left out of
    /// what is stored unless it is set, so that it changes no key that is made of options without it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
    /// Whether marks and ignore files in what is scanned count.
    #[serde(default)]
    pub trust_content: TrustContent,
}

impl Default for ScanOptions {
    fn default() -> Self {
        ScanOptions {
            min_score: Score::MEDIUM,
            occurrence_cap: 1_000,
            max_depth: 8,
            max_entries: 1_000_000,
            max_unpacked_bytes: 64 << 30,
            max_inflation: 1_000,
            strict: false,
            trust_content: TrustContent::Auto,
        }
    }
}

/// The complete copy of everything a node group needs to run its share of a master job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct JobConfiguration {
    pub datasources: Vec<DatasourceSpec>,
    /// Hex of the rule set's content hash; the rules themselves are in `rule_sets`.
    pub rule_set: String,
    pub options: ScanOptions,
    /// Id of the key that all fingerprints of the job are made with; the key itself is a credential.
    pub fingerprint_key: String,
    /// Version of what scans: another one may find something else in the same bytes.
    #[serde(default)]
    pub engine_version: u32,
    /// Whether objects are left unread that are as they were when they were last scanned with all of this.
    #[serde(default)]
    pub incremental: bool,
    /// What these settings were read from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<ConfigurationUsed>,
}

/// What the settings of a job were read from, as reports say it: a file, or a template.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ConfigurationUsed {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// BLAKE3 in hexadecimal digits: of the file; or of the rules, the options and the data sources that came of a template.
    pub hash: String,
}

impl std::str::FromStr for Command {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        match word {
            "START" => Ok(Command::Start),
            "PAUSE" => Ok(Command::Pause),
            "RESUME" => Ok(Command::Resume),
            "CANCEL" => Ok(Command::Cancel),
            _ => Err(UnknownWord {
                word: word.to_owned(),
                kind: "command",
                choices: "START, PAUSE, RESUME, CANCEL".to_owned(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Command::{Cancel, Pause, Resume, Start};
    use JobStatus::{Cancelling, Completed, Paused, Pausing, Queued, Running};

    #[test]
    fn commands_are_executed_in_order_and_cancel_outranks_the_rest() {
        let check = |status, pending: &[Command], expect: (JobStatus, &[Command])| {
            let (now, left) = Command::execute(status, pending);
            assert_eq!((now, left.as_slice()), expect, "{status} {pending:?}");
        };
        check(Running, &[], (Running, &[]));
        check(Running, &[Pause], (Pausing, &[]));
        check(Running, &[Pause, Resume], (Pausing, &[Resume]));
        check(Running, &[Pause, Cancel], (Cancelling, &[]));
        check(Running, &[Resume], (Running, &[]));
        check(Paused, &[Resume], (Queued, &[]));
        check(Paused, &[Cancel], (Cancelling, &[]));
        check(Queued, &[Start], (Queued, &[Start]));
        check(Queued, &[Start, Pause], (Queued, &[Start, Pause]));
        check(Queued, &[Start, Cancel], (Cancelling, &[]));
        check(Cancelling, &[Pause], (Cancelling, &[]));
        check(Completed, &[Cancel], (Completed, &[]));
    }

    #[test]
    fn every_change_a_command_makes_is_a_legal_transition() {
        for &status in JobStatus::ALL {
            for command in [Start, Pause, Resume, Cancel] {
                let (now, _) = Command::execute(status, &[command]);
                assert!(now == status || status.transition(now).is_ok(), "{status} {command:?}");
            }
        }
    }
}
