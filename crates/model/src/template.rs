//! Scan templates: what to scan, with which rules, and when. A job is composed from one.

use serde::{Deserialize, Serialize};

use crate::job::ScanOptions;

/// A stored recipe for master jobs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ScanTemplate {
    pub name: String,
    /// Names of data sources; `*` stands for any run of characters.
    pub datasources: Vec<String>,
    /// The user's own rule files, by name and text: whoever starts the job need not have the files.
    #[serde(default)]
    pub rules: Vec<TemplateRules>,
    #[serde(default)]
    pub options: ScanOptions,
    /// Jobs of a higher priority are claimed first.
    #[serde(default)]
    pub priority: i64,
    #[serde(default)]
    pub schedule: Option<Schedule>,
}

/// A rule file that travels with its template.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TemplateRules {
    pub name: String,
    pub text: String,
}

/// When a template starts jobs by itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Schedule {
    /// Minute, hour, day of month, month, day of week.
    pub cron: String,
    /// A name of the time zone database, such as `Europe/Berlin`.
    pub time_zone: String,
    #[serde(default)]
    pub missed: MissedFirings,
}

/// What becomes of firings that no orchestrator was there for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissedFirings {
    /// One job for all of them, as soon as an orchestrator is back.
    #[default]
    RunOnce,
    /// None: the next firing is the next job.
    Skip,
}
