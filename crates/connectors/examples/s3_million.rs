//! Lists a bucket of a million keys in a process that is killed in the middle, and resumes it: prints how many pages
//! were listed twice, and how much memory the listing process took.
//!
//! `cargo run --release -p domesday-connectors --example s3_million [keys]`

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use domesday_connector::{ConnectorFactory, Surroundings};
use domesday_connectors::objects::{Kind, ObjectsFactory};
use domesday_model::{ObjectKey, RecordKind};
use domesday_testkit::s3::{BUCKET, Generated, Server};
use serde_json::{Value, json};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const KEYS: u64 = 1_000_000;
const PAGE: usize = 1_000;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["list", endpoint, state] => list(endpoint, Path::new(state)),
        [keys] => measure(keys.parse()?),
        _ => measure(KEYS),
    }
}

fn measure(count: u64) -> Outcome<()> {
    let flat: fn(u64) -> String = |n| format!("data/{n:012}");
    let split: fn(u64) -> String =
        |n| format!("logs/{:04}/{:02}/{:06}", n / 40_000, n / 10_000 % 4, n % 10_000);
    let tiny: fn(u64) -> String = |n| format!("{:09}/{}", n / 5, n % 5);
    for (name, key) in [("one folder", flat), ("folders of 10,000", split), ("folders of 5", tiny)] {
        // Undisturbed, then killed three times.
        let calm = run(count, key, &[])?;
        let rough = run(count, key, &[1, count / 3_000, count / 1_500])?;
        println!(
            "{name}: {count} keys, {} pages, {:.1} s, peak memory {}; killed 3 times: {} pages, {} listed twice, peak \
             memory {}",
            calm.pages,
            calm.seconds,
            calm.memory,
            rough.pages,
            rough.pages - calm.pages,
            rough.memory
        );
        assert_eq!((calm.keys, rough.keys), (count, count), "every key is listed once");
        assert!(
            rough.pages - calm.pages <= 3 * 2,
            "at most the page under way is listed again, and a first look"
        );
    }
    Ok(())
}

struct Run {
    keys: u64,
    pages: u64,
    memory: String,
    seconds: f64,
}

/// Lists a bucket in processes of which each but the last is killed after some pages.
fn run(count: u64, key: fn(u64) -> String, kills: &[u64]) -> Outcome<Run> {
    let server = Server::start_public(Arc::new(Generated { count, key }));
    let folder = tempfile::tempdir()?;
    let state = folder.path().join("state");
    let begun = Instant::now();
    for kill_after in kills.iter().copied().map(Some).chain([None]) {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("list")
            .arg(server.endpoint())
            .arg(&state)
            .stdout(Stdio::piped())
            .spawn()?;
        let output = child.stdout.take().ok_or("no output")?;
        let mut pages = 0;
        for line in BufReader::new(output).lines() {
            let line = line?;
            if let Some(memory) = line.strip_prefix("done ") {
                child.wait()?;
                let keys = load(&state)?["keys"].as_u64().unwrap_or_default();
                let seconds = begun.elapsed().as_secs_f64();
                return Ok(Run { keys, pages: server.counts().pages, memory: memory.to_owned(), seconds });
            }
            pages += 1;
            if Some(pages) == kill_after {
                child.kill()?;
                child.wait()?;
                break;
            }
        }
    }
    Err("the listing ended early".into())
}

fn load(path: &Path) -> Outcome<Value> {
    Ok(match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)?,
        Err(_) => json!({ "keys": 0, "containers": [""], "resume_point": null }),
    })
}

/// Lists from where the state says, and writes it anew after every page, as the book does.
#[tokio::main]
async fn list(endpoint: &str, path: &Path) -> Outcome<()> {
    let configuration = json!({
        "bucket": BUCKET, "endpoint": endpoint, "allow_http": true, "authentication": "unauthenticated",
    });
    let connector = ObjectsFactory(Kind::S3).create(&configuration, &Surroundings::default())?;
    let state = load(path)?;
    let mut containers: VecDeque<ObjectKey> = serde_json::from_value(state["containers"].clone())?;
    let mut resume_point = state["resume_point"].as_str().map(str::to_owned);
    let mut keys = state["keys"].as_u64().unwrap_or_default();
    let mut out = std::io::stdout();
    while let Some(container) = containers.front().cloned() {
        let mut listing = connector.list(&container, resume_point.as_deref()).await?;
        loop {
            for record in listing.next_batch(PAGE).await? {
                match record.kind {
                    RecordKind::Directory => containers.push_back(container.join(&record.name)),
                    _ => keys += 1,
                }
            }
            resume_point = listing.resume_point();
            if resume_point.is_none() {
                containers.pop_front();
            }
            let state = json!({ "keys": keys, "containers": containers, "resume_point": resume_point });
            std::fs::write(path.with_extension("new"), state.to_string())?;
            std::fs::rename(path.with_extension("new"), path)?;
            writeln!(out, "page")?;
            if resume_point.is_none() {
                break;
            }
        }
    }
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    writeln!(out, "done {}", peak.trim())?;
    Ok(())
}
