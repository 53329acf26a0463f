//! Jobs that were started: shown, commanded, watched; tasks; the fleet; the book's database.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use common::book::Book;
use common::{Place, Ran, run, text};
use domesday_model::{JobStatus, ObjectKey, ProcessId, Reason, TargetDraft, TaskType};
use domesday_store::postgres::{Options, PostgresStore};
use domesday_store::{
    GiveBack, LeaseStore, OrchestratorStore, OwnedJob, Process, Role, UnitListing, WorkerStore,
};
use domesday_testkit::postgres::Server;
use serde_json::{Value, json};

const LEASE: Duration = Duration::from_secs(600);
const ID: &str = "0102030405060708090a0b0c0d0e0f10";

/// A template of two groups.
fn composed(book: &Book) {
    book.source("one", "eu");
    book.source("two", "us");
    book.run(&["template", "add", "all", "--datasource", "*"]).exits(0);
}

/// An orchestrator that does what a test says.
struct Orchestrator {
    runtime: tokio::runtime::Runtime,
    store: PostgresStore,
    id: ProcessId,
    group: &'static str,
}

impl Orchestrator {
    fn new(book: &Book, group: &'static str) -> Orchestrator {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let url = book.url.clone().unwrap();
        let id = ProcessId(*blake3::hash(group.as_bytes()).as_bytes().first_chunk().unwrap());
        let store = runtime.block_on(PostgresStore::connect(&url, Options::default())).unwrap();
        runtime.block_on(store.register(&Process::new(id, Role::Orchestrator, group), LEASE)).unwrap();
        Orchestrator { runtime, store, id, group }
    }

    fn claim(&self) -> OwnedJob {
        self.runtime.block_on(self.store.claim_job(self.id, self.group, LEASE)).unwrap().unwrap()
    }

    /// Executes what is pending, of the owned job and of those without an owner, until it is settled.
    fn execute(&self, job: &OwnedJob) -> JobStatus {
        self.runtime.block_on(async {
            let job = self.store.execute_commands(&job.lease).await.unwrap().unwrap();
            self.store.settle_job(&job.lease).await.unwrap().unwrap_or(job.status)
        })
    }

    fn execute_unowned(&self) {
        self.runtime.block_on(self.store.execute_unowned_commands(self.group)).unwrap();
    }
}

fn groups(shown: &Value, field: &str) -> Vec<String> {
    shown["jobs"].as_array().unwrap().iter().map(|job| text(&job[field])).collect()
}

#[test]
fn a_job_is_started_once_under_its_id() {
    Book::each(|book| {
        composed(book);
        book.run(&["job", "start", "nothing"])
            .fails_saying(&["there is no template `nothing`", "template list"]);
        let started = book.run(&["job", "start", "all", "--id", ID, "--priority", "7"]).exits(0);
        assert_eq!(started.json()["id"], ID);
        assert_eq!(started.json()["new"], true);
        assert_eq!(started.json()["node_groups"], json!(["eu", "us"]));
        for warning in ["no orchestrator runs for node group eu", "no worker runs for node group us"] {
            assert!(started.err.contains(warning), "{}", started.err);
        }
        let uuid = "01020304-0506-0708-090a-0b0c0d0e0f10";
        assert_eq!(book.json(&["job", "start", "all", "--id", uuid])["new"], false);
        assert_eq!(book.json(&["jobs"]).as_array().unwrap().len(), 1);
        assert_eq!(book.json(&["job", "list"]), book.json(&["jobs"]));
        let shown = book.json(&["job", "show", "0102"]);
        assert_eq!(groups(&shown, "node_group"), ["eu", "us"]);
        assert_eq!(groups(&shown, "status"), ["QUEUED", "QUEUED"]);
        assert_eq!(shown["jobs"][0]["pending_commands"], json!(["START"]));
        assert_eq!(shown, book.json(&["job", "show"]));
        book.run(&["job", "show", "ffff"]).fails_saying(&["there is no job ffff"]);
        // Another one; now a beginning may be that of both.
        let other = text(&book.json(&["job", "start", "all"])["id"]);
        assert_eq!(other.len(), 32);
        book.run(&["job", "show", ""]).fails_saying(&["2 jobs begin with"]);
        book.run(&["job", "start", "all", "--id", "xyz"]).fails_saying(&["`xyz` is not an id"]);
        // What an open job reads stays.
        book.run(&["template", "remove", "all"]).exits(0);
        book.run(&["datasource", "remove", "one"]).fails_saying(&["one", "in use"]);
    });
}

#[test]
fn commands_are_appended_to_every_open_child_job() {
    Book::each(|book| {
        composed(book);
        book.run(&["job", "start", "all", "--id", ID]).exits(0);
        let answer = book.json(&["job", "pause", "01"]);
        assert_eq!((&answer["command"], &answer["jobs"]), (&json!("PAUSE"), &json!(2)));
        book.run(&["job", "resume", ID]).exits(0);
        book.run(&["job", "cancel", ID]).exits(0);
        let shown = book.json(&["job", "show"]);
        assert_eq!(shown["jobs"][1]["pending_commands"], json!(["START", "PAUSE", "RESUME", "CANCEL"]));
        book.run(&["job", "cancel", "ff"]).fails_saying(&["there is no job ff"]);
    });
}

#[test]
fn waiting_ends_when_it_has_happened() {
    let book = Book::fleet();
    composed(&book);
    book.run(&["job", "start", "all", "--id", ID]).exits(0);
    let (eu, us) = (Orchestrator::new(&book, "eu"), Orchestrator::new(&book, "us"));
    let owned = [eu.claim(), us.claim()];
    let waiting = |verb: &str| {
        let mut command = book.command(["job", verb, ID, "--wait"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let appended = |verb: &str| {
        while !book.run(&["job", "show"]).text().contains(verb) {
            std::thread::yield_now();
        }
    };
    let paused = waiting("pause");
    appended("PAUSE");
    assert_eq!(eu.execute(&owned[0]), JobStatus::Paused);
    assert_eq!(us.execute(&owned[1]), JobStatus::Paused);
    let ran: Ran = paused.wait_with_output().unwrap().into();
    assert_eq!(ran.exits(0).json()["status"], "PAUSED");
    let cancelled = waiting("cancel");
    appended("CANCEL");
    eu.execute_unowned();
    us.execute_unowned();
    let ran: Ran = cancelled.wait_with_output().unwrap().into();
    assert_eq!(ran.exits(0).json()["status"], "CANCELLED");
    // Nothing is open any more; asking for what it is already is no failure.
    assert_eq!(book.run(&["job", "pause", ID]).exits(3).json()["jobs"], 0);
    assert_eq!(book.run(&["job", "cancel", ID]).exits(0).json()["jobs"], 0);
}

#[test]
fn watching_tells_every_change_and_ends_with_the_job() {
    let book = Book::fleet();
    composed(&book);
    book.run(&["job", "start", "all", "--id", ID]).exits(0);
    let mut command = book.command(["job", "watch"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let first = [next(), next()];
    assert_eq!(first.each_ref().map(|line| text(&line["node_group"])), ["eu", "us"]);
    assert_eq!(first[0]["status"], "QUEUED");
    let (eu, us) = (Orchestrator::new(&book, "eu"), Orchestrator::new(&book, "us"));
    let owned = eu.claim();
    let running = next();
    assert_eq!((&running["node_group"], &running["status"]), (&json!("eu"), &json!("RUNNING")));
    assert_eq!(running["owner"]["orchestrator"], eu.id.to_string());
    book.run(&["job", "cancel", ID]).exits(0);
    us.execute_unowned();
    eu.execute(&owned);
    let last = loop {
        let line = next();
        if line.get("exit_code").is_some() {
            break line;
        }
    };
    assert_eq!((&last["status"], &last["exit_code"]), (&json!("CANCELLED"), &json!(3)));
    assert_eq!(child.wait().unwrap().code(), Some(3));
    book.run(&["job", "watch", ID]).exits(3);
}

#[test]
fn an_interrupt_stops_watching_and_not_the_job() {
    Book::each(|book| {
        composed(book);
        book.run(&["job", "start", "all", "--id", ID]).exits(0);
        let mut command = book.command(["job", "watch"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let ran: Ran = child.wait_with_output().unwrap().into();
        assert_eq!(ran.code, Some(3));
        assert!(ran.err.contains("stopped watching; the job goes on"), "{}", ran.err);
        assert_eq!(book.json(&["job", "show"])["status"], "QUEUED");
    });
}

#[test]
fn tasks_are_listed_shown_and_tried_again() {
    let book = Book::fleet();
    book.source("one", "eu");
    book.run(&["template", "add", "all", "--datasource", "*"]).exits(0);
    book.run(&["job", "start", "all", "--id", ID]).exits(0);
    assert_eq!(book.json(&["task", "list"]), json!([]));
    let eu = Orchestrator::new(&book, "eu");
    let owned = eu.claim();
    let worker = ProcessId([7; 16]);
    let key = text(&book.json(&["db", "status"])["fingerprint_key"]);
    eu.runtime.block_on(async {
        eu.store.start_sessions(&owned.lease).await.unwrap();
        let mut process = Process::new(worker, Role::Worker, "eu");
        process.profile.fingerprint_key = Some(key);
        eu.store.register(&process, LEASE).await.unwrap();
        let packets = eu.store.claim_tasks(worker, "eu", TaskType::DiscoveryEnumerate, 1).await.unwrap();
        let failed = GiveBack::Failed { error: "the disk is gone".into() };
        eu.store.give_back(&packets[0].claim, failed).await.unwrap();
    });
    let listed = book.json(&["task", "list", "--job", "01", "--status", "failed", "--type", "enumeration"]);
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(
        (&listed[0]["last_error"], &listed[0]["datasource"]),
        (&json!("the disk is gone"), &json!("one"))
    );
    assert_eq!(book.json(&["task", "list", "--status", "running"]), json!([]));
    let id = listed[0]["id"].to_string();
    assert_eq!(book.json(&["task", "show", &id])["payload"], json!({ "paths_to_scan": [""] }));
    book.run(&["task", "show", "999999"]).fails_saying(&["there is no task 999999", "task list"]);
    book.run(&["task", "list", "--status", "dead"]).fails_saying(&["`dead` is not the status of a task"]);
    assert_eq!(book.json(&["task", "retry", &id])["retried"], 1);
    assert_eq!(book.json(&["task", "list"])[0]["status"], "PENDING");
    let again = book.run(&["task", "retry", &id, "999999"]).exits(3).json();
    assert_eq!(again["retried"], 0);
    assert!(text(&again["refused"][0]).contains("is PENDING"), "{again}");
    assert_eq!(book.run(&["task", "retry", "--all", "--job", ID]).exits(3).json()["retried"], 0);
    book.run(&["task", "retry"]).fails_saying(&["<ID>"]);
    book.run(&["task", "retry", "--all"]).fails_saying(&["--job"]);
}

#[test]
fn sessions_and_targets_of_a_scan_are_listed_and_shown() {
    let book = Book::embedded();
    book.place.file("a.txt", "nothing here");
    assert_eq!(book.json(&["session", "list"]), json!([]));
    assert_eq!(book.json(&["target", "list"]), json!([]));
    book.run(&["scan", "tree"]).exits(0);
    let sessions = book.json(&["session", "list"]);
    let [session] = &sessions.as_array().unwrap()[..] else { panic!("{sessions}") };
    assert_eq!((&session["status"], &session["source_type"]), (&json!("COMPLETED"), &json!("filesystem")));
    assert_eq!((&session["items_processed"], &session["failed_batches"]), (&json!(1), &json!(0)));
    let job = text(&session["master_job"]);
    assert_eq!(book.json(&["session", "list", "--job", &job[..6]]), sessions);
    assert_eq!(book.json(&["session", "list", "--active"]), json!([]));
    assert_eq!(book.json(&["session", "list", "--status", "completed"]), sessions);
    let shown = book.json(&["session", "show", &session["id"].to_string()]);
    assert_eq!(shown["id"], session["id"]);
    assert_eq!(shown["last_batches"][0]["status"], "SUCCEEDED");
    assert_eq!(shown["last_batches"][0]["checkpoint"], shown["last_checkpoint"]);
    assert!(shown["configuration"].is_object(), "{shown}");
    let targets = book.json(&["target", "list", "--job", &job, "--type", "datasource"]);
    assert_eq!(targets[0]["name"], session["datasource"]);
    assert_eq!(targets[0]["last_scan_time"], session["completed_at"]);
    assert_eq!(book.json(&["target", "show", &text(&targets[0]["id"])]), targets[0]);
    assert_eq!(book.json(&["target", "list", "--type", "url"]), json!([]));
    book.run(&["session", "show", "99"]).fails_saying(&["there is no session 99", "session list"]);
    book.run(&["session", "list", "--status", "odd"]).fails_saying(&["`odd` is not the status of a session"]);
    book.run(&["target", "show", "https://nowhere"]).fails_saying(&["https://nowhere", "target list"]);
    book.run(&["target", "list", "--type", "odd"])
        .fails_saying(&["one of datasource, github_repository, url"]);
}

#[test]
fn a_session_under_way_tells_how_far_it_is_and_what_it_came_upon() {
    let book = Book::fleet();
    book.source("one", "eu");
    book.run(&["template", "add", "all", "--datasource", "*"]).exits(0);
    book.run(&["job", "start", "all", "--id", ID]).exits(0);
    let eu = Orchestrator::new(&book, "eu");
    let owned = eu.claim();
    let worker = ProcessId([7; 16]);
    let key = text(&book.json(&["db", "status"])["fingerprint_key"]);
    let page = |path: usize| TargetDraft::Url { url: format!("https://host/{path}"), metadata: json!({}) };
    let repository = TargetDraft::GithubRepository {
        name: "o/r\u{1b}[2J".to_owned(),
        url: "https://host/0".to_owned(),
        is_active: false,
        metadata: json!({}),
    };
    // More than are read at a time.
    let targets: Vec<_> = (0..1_200).map(page).chain([repository]).collect();
    eu.runtime.block_on(async {
        eu.store.start_sessions(&owned.lease).await.unwrap();
        let mut process = Process::new(worker, Role::Worker, "eu");
        process.profile.fingerprint_key = Some(key);
        eu.store.register(&process, LEASE).await.unwrap();
        let packets = eu.store.claim_tasks(worker, "eu", TaskType::DiscoveryEnumerate, 1).await.unwrap();
        let failed = UnitListing::failed(ObjectKey::new(*b"d"), 0, Reason::Vanished, "gone");
        let unit = UnitListing { targets, ..failed };
        eu.store.commit_units(&packets[0].claim, vec![unit]).await.unwrap();
    });
    let session = &book.json(&["session", "list", "--active", "--job", "01"])[0];
    assert_eq!((&session["status"], &session["failed_batches"]), (&json!("IN_PROGRESS"), &json!(1)));
    let shown = book.json(&["session", "show", &session["id"].to_string()]);
    assert_eq!(shown["last_batches"][0]["error_details"], "`d`: vanished: gone");
    assert_eq!(shown["last_checkpoint"]["key"], "d");
    assert_eq!(book.json(&["target", "list"]).as_array().unwrap().len(), 100);
    let all = book.json(&["target", "list", "--max", "5000", "--job", ID]);
    let mut ids: Vec<_> = all.as_array().unwrap().iter().map(|target| text(&target["id"])).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 1_202);
    let one = book.json(&["target", "show", "https://host/1"]);
    assert_eq!((&one["type"], &one["url"]), (&json!("url"), &json!("https://host/1")));
    assert_eq!(book.json(&["target", "show", "https://host/0"]).as_array().unwrap().len(), 2);
}

#[test]
fn status_shows_the_fleet_and_what_is_wrong() {
    let book = Book::fleet();
    composed(&book);
    let empty = book.json(&["status"]);
    assert_eq!((&empty["workers"], &empty["warnings"]), (&json!([]), &json!([])));
    book.run(&["job", "start", "all", "--id", ID]).exits(0);
    let _eu = Orchestrator::new(&book, "eu");
    let status = book.json(&["status"]);
    assert_eq!(status["orchestrators"][0]["node_group"], "eu");
    assert_eq!(status["orchestrators"][0]["live"], true);
    assert_eq!(status["groups"][0]["jobs"]["queued"], 1);
    assert_eq!(status["warnings"], json!(["1 open job of node group us without an orchestrator"]));
}

#[test]
fn the_database_is_made_checked_and_given_a_key() {
    let place = Place::new();
    let url = Server::shared().create_database();
    let db = |args: &[&str]| {
        run(place.command(["db"]).args(args).env("DOMESDAY_STORE", &url).env("OTHER", "ab".repeat(32)))
    };
    let before = db(&["status"]).exits(3).json();
    assert_eq!(before["version"], 0);
    assert!(!before["pending"].as_array().unwrap().is_empty());
    // Several at once.
    let spawn = || {
        let mut command = place.command(["db", "migrate"]);
        command.env("DOMESDAY_STORE", &url).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = (0..6).map(|_| spawn()).collect();
    for child in children {
        let ran: Ran = child.wait_with_output().unwrap().into();
        ran.exits(0);
    }
    let after = db(&["status"]).exits(0).json();
    assert_eq!(after["pending"], json!([]));
    assert_eq!(after["fingerprint_key"], json!(null));
    assert!(after["version"].as_u64() >= Some(4) && after["size_bytes"].as_u64() > Some(0), "{after}");
    assert!(text(&after["server"]).contains("PostgreSQL"), "{after}");
    let key = text(&db(&["migrate", "--fingerprint-key", "env:OTHER"]).exits(0).json()["fingerprint_key"]);
    assert_eq!(key.len(), 8);
    db(&["key", "env:MISSING"]).fails_saying(&["MISSING"]);
    db(&["key", "env:HOME"]).fails_saying(&["env:HOME", "64 hexadecimal digits"]);
    assert_eq!(text(&db(&["key", "env:OTHER"]).exits(0).json()["fingerprint_key"]), key);
}

#[test]
fn a_key_is_replaced_only_when_asked_and_when_nothing_is_open() {
    Book::each(|book| {
        let other = |args: &[&str]| run(book.command(args).env("OTHER", "ab".repeat(32)));
        let before = text(&book.json(&["db", "status"])["fingerprint_key"]);
        other(&["db", "key", "env:OTHER"]).fails_saying(&["--replace"]);
        other(&["db", "migrate", "--fingerprint-key", "env:OTHER"]).fails_saying(&["db key"]);
        composed(book);
        book.run(&["job", "start", "all"]).exits(0);
        other(&["db", "key", "env:OTHER", "--replace"]).fails_saying(&["in use"]);
        assert_eq!(text(&book.json(&["db", "status"])["fingerprint_key"]), before);
    });
    let book = Book::embedded();
    let replaced = run(book.command(["db", "key", "env:OTHER", "--replace"]).env("OTHER", "ab".repeat(32)));
    assert_eq!(replaced.exits(0).json()["fingerprint_key"], book.json(&["db", "status"])["fingerprint_key"]);
}

#[test]
fn pruning_removes_what_ended_long_ago() {
    Book::each(|book| {
        composed(book);
        book.run(&["job", "start", "all", "--id", ID]).exits(0);
        let pruned = book.json(&["prune", "--older-than", "0s"]);
        assert_eq!((&pruned["jobs"], &pruned["done"]), (&json!(0), &json!(true)));
        book.run(&["prune", "--older-than", "9x"]).fails_saying(&["`9x` is not a duration", "90d"]);
        book.run(&["prune"]).fails_saying(&["--older-than"]);
    });
    let book = Book::fleet();
    composed(&book);
    book.run(&["job", "start", "all", "--id", ID]).exits(0);
    book.run(&["job", "cancel", ID]).exits(0);
    for group in ["eu", "us"] {
        Orchestrator::new(&book, group).execute_unowned();
    }
    assert_eq!(book.json(&["prune", "--older-than", "1d"])["jobs"], 0);
    assert_eq!(book.json(&["prune", "--older-than", "0s", "--batch-rows", "1"])["jobs"], 1);
    assert_eq!(book.json(&["jobs"]), json!([]));
}
