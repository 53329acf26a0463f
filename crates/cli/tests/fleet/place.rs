//! A book of its own for each test, trees to scan, and the processes of a fleet.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use domesday_testkit::fleet::{Fleet, KEY_VARIABLE, Process};
use domesday_testkit::postgres::Server;
use domesday_testkit::wait;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::KEY;

/// Everything a fleet does here is done long before this.
pub const PATIENCE: Duration = Duration::from_secs(90);
/// The lease of its processes; they renew it three times as often.
pub const LEASE: Duration = Duration::from_secs(3);
/// A poor key, and therefore only for tests.
pub const FINGERPRINT_KEY: &str = "c0ffee00c0ffee00c0ffee00c0ffee00";
/// Not asked for by the server, and not to be seen anywhere.
pub const PASSWORD: &str = "hunter2-correct-horse";
/// Files of a tree that takes a while, in several tasks a folder: some four seconds for two workers that have a processor
/// each, where a command reaches them within one heartbeat.
const SLOW_FOLDERS: usize = 12;
const SLOW_FILES: usize = 64;
const SLOW_FILE_BYTES: usize = 128 << 10;
/// What its text is made of: words that many rules look for. Text that repeats itself would not be searched again.
const SLOW_WORDS: [&str; 12] = [
    "the", "service", "token", "took", "value", "password", "key", "secret", "user", "account", "card",
    "phone",
];

/// How every process here logs.
const LOGGING: &[&str] = &["--log", "info"];

pub struct Place {
    pub fleet: Fleet,
    folder: Option<TempDir>,
    database: String,
}

impl Place {
    /// An empty book that knows the fleet's fingerprint key.
    pub fn new() -> Place {
        let folder = tempfile::Builder::new().prefix("domesday-fleet-").tempdir().unwrap();
        let url = Server::shared().create_database();
        let database = url.rsplit('/').next().unwrap().split('?').next().unwrap().to_owned();
        let url = url.replace("postgres@", &format!("postgres:{PASSWORD}@"));
        let binary = Path::new(env!("CARGO_BIN_EXE_domesday"));
        let fleet = Fleet::new(binary, &folder.path().join("logs"), &url, FINGERPRINT_KEY, LEASE);
        let place = Place { fleet, folder: Some(folder), database };
        let key = format!("env:{KEY_VARIABLE}");
        place.run(&["db", "migrate", "--fingerprint-key", &key]);
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.as_ref().unwrap().path().join(name)
    }

    /// A tree with one finding in each of so many files.
    pub fn tree(&self, name: &str, files: usize) -> PathBuf {
        let tree = self.path(name);
        for number in 0..files {
            let folder = tree.join((number % 10).to_string());
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(format!("{number}.txt")), format!("{KEY}\n")).unwrap();
        }
        tree
    }

    /// A tree of many tasks that takes a while: one file under many names, with a finding in each. How many.
    pub fn slow_tree(&self, name: &str) -> (PathBuf, usize) {
        let tree = self.path(name);
        let text = slow_text();
        let first = tree.join("0/0.txt");
        for folder in 0..SLOW_FOLDERS {
            let folder = tree.join(folder.to_string());
            fs::create_dir_all(&folder).unwrap();
            for number in 0..SLOW_FILES {
                let path = folder.join(format!("{number}.txt"));
                match first.exists() {
                    true => fs::hard_link(&first, &path).unwrap(),
                    false => fs::write(&path, &text).unwrap(),
                }
            }
        }
        (tree, SLOW_FOLDERS * SLOW_FILES)
    }

    /// A data source of this tree, with more flags.
    pub fn source(&self, name: &str, group: &str, tree: &Path, more: &[&str]) {
        let root = format!("root={}", tree.display());
        let fixed =
            ["datasource", "add", name, "--kind", "filesystem", "--node-group", group, "--set", &root];
        self.run(&[&fixed[..], more].concat());
    }

    pub fn template(&self, name: &str, sources: &[&str]) {
        let sources = sources.iter().flat_map(|source| ["--datasource", source]);
        self.run(&["template", "add", name].into_iter().chain(sources).collect::<Vec<_>>());
    }

    /// Starts a job; its id.
    pub fn job(&self, template: &str) -> String {
        let answer = self.run(&["job", "start", template, "--json"]);
        let answer: Value = serde_json::from_str(&answer).unwrap();
        answer["id"].as_str().unwrap().to_owned()
    }

    /// A command that must succeed; what it said.
    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> String {
        self.fleet.run(arguments).ok()
    }

    /// A report as JSON, with findings or without.
    #[track_caller]
    pub fn report(&self, arguments: &[&str]) -> Value {
        let answer = self.fleet.run(arguments);
        assert!(matches!(answer.code, Some(0 | 1)), "{}", answer.err);
        serde_json::from_str(&answer.out).unwrap()
    }

    /// A command, however it ends; what it said.
    pub fn run_any(&self, arguments: &[&str]) -> String {
        let ran = self.fleet.command(arguments).output().unwrap();
        String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned()
    }

    pub fn orchestrator(&self, name: &str, group: &str) -> Process {
        self.fleet.orchestrator(name, group, LOGGING)
    }

    /// A worker that scans with one thread, with more flags.
    pub fn worker(&self, name: &str, group: &str, more: &[&str]) -> Process {
        self.fleet.worker(name, group, &[&["--slots", "1"], LOGGING, more].concat())
    }

    /// The name of the book's database.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// Where the book is, with a password in it.
    pub fn url(&self) -> String {
        Server::shared().url(&self.database).replace("postgres@", &format!("postgres:{PASSWORD}@"))
    }

    pub fn sql(&self, sql: &str) -> String {
        Server::shared().psql(&self.database, sql)
    }

    pub fn number(&self, sql: &str) -> u64 {
        self.sql(sql).parse().unwrap()
    }

    /// Everything that is in the book.
    pub fn dump(&self) -> String {
        Server::shared().dump(&self.database)
    }

    /// The statuses of a job's child jobs, in the order of their groups.
    pub fn statuses(&self, job: &str) -> Vec<String> {
        let of = format!(
            "SELECT status FROM jobs WHERE master_job_id = decode('{job}', 'hex') ORDER BY node_group"
        );
        self.sql(&of).lines().map(str::to_owned).collect()
    }

    /// Waits until all child jobs have this status.
    #[track_caller]
    pub fn wait_for_status(&self, job: &str, status: &str) {
        self.wait(status, || self.statuses(job).iter().all(|found| found == status));
    }

    /// Waits until so many tasks of classification are done, while others are not.
    #[track_caller]
    pub fn wait_for_progress(&self, tasks: u64) {
        self.wait("progress", || self.tasks("COMPLETED") >= tasks);
        assert!(self.open_tasks() > 0, "the job was over too early");
    }

    #[track_caller]
    pub fn wait(&self, what: &str, mut has_happened: impl FnMut() -> bool) {
        let happened = wait::until(PATIENCE, || has_happened().then_some(()));
        assert!(happened.is_some(), "not within {PATIENCE:?}: {what}\n{}", self.state());
    }

    /// Waits until every process has renewed its lease so often.
    #[track_caller]
    pub fn wait_for_heartbeats(&self, count: usize) {
        let leases = || {
            let rows = self.sql(
                "SELECT encode(id, 'hex'), lease_expiry FROM worker_sessions WHERE lease_expiry > now_ms() UNION ALL
                 SELECT encode(id, 'hex'), lease_expiry FROM orchestrators WHERE lease_expiry > now_ms()",
            );
            rows.lines().map(str::to_owned).collect::<HashSet<_>>()
        };
        for _ in 0..count {
            let before = leases();
            self.wait("a heartbeat of every process", || leases().is_disjoint(&before));
        }
    }

    /// Tasks of classification that have this status.
    pub fn tasks(&self, status: &str) -> u64 {
        self.number(&format!(
            "SELECT count(*) FROM tasks WHERE type = 'CLASSIFICATION' AND status = '{status}'"
        ))
    }

    pub fn open_tasks(&self) -> u64 {
        self.number("SELECT count(*) FROM tasks WHERE status IN ('PENDING', 'RUNNING')")
    }

    pub fn running(&self) -> u64 {
        self.number("SELECT count(*) FROM tasks WHERE status = 'RUNNING'")
    }

    /// Files with a finding, and findings: the same when nothing is there twice.
    pub fn found(&self) -> (u64, u64) {
        let files = "SELECT count(DISTINCT (datasource_id, object_key)) FROM findings f
            JOIN finding_occurrences o ON o.finding_id = f.id";
        (self.number(files), self.number("SELECT count(*) FROM finding_occurrences"))
    }

    /// How everything stands, for a message.
    pub fn state(&self) -> String {
        let jobs = self.sql("SELECT id, node_group, status, version, master_pending_commands FROM jobs");
        let tasks = self.sql("SELECT type, status, count(*), max(last_error) FROM tasks GROUP BY 1, 2");
        format!("jobs:\n{jobs}\ntasks:\n{tasks}")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(folder) = self.folder.take()
        {
            eprintln!("logs are kept for a look: {}", folder.keep().display());
        }
    }
}

/// A finding, and words after it in an order that does not repeat itself.
fn slow_text() -> String {
    let (mut text, mut random) = (format!("{KEY}\n"), 1u64);
    while text.len() < SLOW_FILE_BYTES {
        // Knuth's linear congruential generator, whose upper bits are the good ones.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push_str(SLOW_WORDS[(random >> 33) as usize % SLOW_WORDS.len()]);
        text.push(if random >> 60 == 0 { '\n' } else { ' ' });
    }
    text
}
