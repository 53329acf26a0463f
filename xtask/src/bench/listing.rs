//! `bench listing`: a bucket of a million keys, listed by the binary into its book; once undisturbed,
//! and once killed in the middle, several times.
//!
//! Nothing is read: a pattern leaves every object out, so that what is measured is the listing.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use domesday_testkit::s3::{ACCESS_KEY_ID, BUCKET, Generated, SECRET_ACCESS_KEY, Server};
use domesday_testkit::wait;

use super::{Rows, Setup};

const KEYS: u64 = 1_000_000;
/// Kills of the disturbed listing, evenly spread.
const KILLS: u64 = 4;
const LOOK: Duration = Duration::from_millis(5);
/// What a scan that found nothing ends with.
const EXIT_CLEAN: i32 = 0;

pub const ABOUT: &str = "A bucket of a million keys on a local S3 server, listed into the embedded book; killed in the \
    middle several times, too. Nothing is read: `domesday scan s3://<bucket> --set 'include=[\"nothing\"]'`.";

pub fn run(setup: &Setup, rows: &mut Rows) -> Result<()> {
    let key = |number: u64| format!("events/2024/{number:09}.json");
    let server = Server::start(Arc::new(Generated { count: KEYS, key }));
    let listing = Listing { binary: setup.binary()?.to_owned(), server };
    let state = setup.folder.join("state");
    let whole = listing.run(&state, 0)?;
    rows.add("keys", KEYS as f64, "keys");
    rows.add("pages", whole.pages as f64, "pages");
    rows.add("time", whole.took.as_secs_f64(), "s");
    rows.add("rate", KEYS as f64 / whole.took.as_secs_f64(), "keys/s");
    rows.add("memory", whole.memory_kib as f64 / 1024.0, "MiB");
    rows.add("book", whole.book_bytes as f64 / KEYS as f64, "bytes/key");
    let disturbed = listing.run(&state, KILLS)?;
    rows.add("killed", KILLS as f64, "times");
    rows.add("killed, listed again", disturbed.pages.saturating_sub(whole.pages) as f64, "pages");
    rows.add("killed, memory", disturbed.memory_kib as f64 / 1024.0, "MiB");
    Ok(())
}

struct Listing {
    binary: PathBuf,
    server: Server,
}

struct Measured {
    pages: u64,
    took: Duration,
    memory_kib: u64,
    book_bytes: u64,
}

impl Listing {
    /// Lists the bucket into a new book, and kills the process so often on the way.
    fn run(&self, state: &Path, kills: u64) -> Result<Measured> {
        if state.exists() {
            std::fs::remove_dir_all(state).with_context(|| format!("cannot remove {}", state.display()))?;
        }
        let (before, begun, mut memory_kib) = (self.server.counts().pages, Instant::now(), 0);
        let pages = || self.server.counts().pages - before;
        for kill in 1..=kills + 1 {
            let at = (kill <= kills).then(|| KEYS / 1_000 * kill / (kills + 1));
            let mut child = self.start(state)?;
            let ended = loop {
                memory_kib = memory_kib.max(peak_kib(&child).unwrap_or(0));
                if let Some(status) = child.try_wait()? {
                    break Some(status);
                }
                if at.is_some_and(|at| pages() >= at) {
                    child.kill()?;
                    child.wait()?;
                    break None;
                }
                wait::pause(LOOK);
            };
            match (ended, at) {
                (None, _) => {}
                (Some(status), None) if status.code() == Some(EXIT_CLEAN) => {}
                (Some(status), _) => bail!("the listing ended with {status}"),
            }
        }
        let book_bytes = std::fs::metadata(state.join("book.sqlite"))?.len();
        Ok(Measured { pages: pages(), took: begun.elapsed(), memory_kib, book_bytes })
    }

    fn start(&self, state: &Path) -> Result<Child> {
        let endpoint = format!("endpoint={}", self.server.endpoint());
        Command::new(&self.binary)
            .args(["scan", &format!("s3://{BUCKET}"), "--quiet", "--format", "jsonl", "--state"])
            .arg(state)
            .args(["--set", &endpoint, "--set", "allow_http=true", "--set", "region=us-east-1"])
            .args(["--set", "include=[\"nothing\"]"])
            .env("AWS_ACCESS_KEY_ID", ACCESS_KEY_ID)
            .env("AWS_SECRET_ACCESS_KEY", SECRET_ACCESS_KEY)
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start the binary")
    }
}

/// The most memory a process has had so far, in KiB.
fn peak_kib(child: &Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    peak.trim().trim_end_matches(" kB").parse().ok()
}
