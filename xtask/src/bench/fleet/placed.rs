//! The fleet that is measured: an orchestrator beside the database, workers by way of the proxy, and one job
//! at a time.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use domesday_testkit::fleet::{Fleet, KEY_VARIABLE, Process};
use domesday_testkit::postgres::Server;
use domesday_testkit::proxy::Proxy;
use domesday_testkit::wait;

/// Options of a worker that scans with one thread.
pub const ONE_SLOT: &[&str] = &["--slots", "1"];
const KEY: &str = "0123456789abcdef0123456789abcdef";
const GROUP: &str = "bench";
/// Who may do what in the book's database.
const ROLES: &str = include_str!("../../../../docs/fleet/roles.sql");
/// Logins that are bound to [`GROUP`], and the user of the book's address, who owns everything.
const WORKER: &str = "bench_worker";
const ORCHESTRATOR: &str = "bench_orchestrator";
const OWNER: &str = "postgres";
/// The template of a job that scans the tree once.
pub const ONCE: &str = "once";
/// And of one that scans it [`LONG`] times, as so many sources.
pub const OFTEN: &str = "often";
/// So that the job is longer than the time until the first objects are listed, which is one of depth.
const LONG: usize = 6;
/// Long enough that nothing expires while a machine is busy.
const LEASE: Duration = Duration::from_secs(15);
/// A job that takes longer is stuck.
const HANG: Duration = Duration::from_secs(600);
/// PostgreSQL tells of a transaction's rows up to this much later.
const STATISTICS_LATENCY: Duration = Duration::from_secs(2);

const COUNTERS: &str = "SELECT sum(n_tup_ins), sum(n_tup_upd), sum(n_tup_del),
    pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0'), pg_database_size(current_database()),
    (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database())
    FROM pg_stat_user_tables";

pub struct Bench<'s> {
    server: &'s Server,
    proxy: Proxy,
    direct: Fleet,
    proxied: Fleet,
    bound_orchestrator: Fleet,
    bound_worker: Fleet,
    database: String,
    folder: PathBuf,
    tree: PathBuf,
}

/// As whom the processes of a fleet are in the book's database.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Logins {
    /// No policy holds for whoever owns the tables.
    Owner,
    /// Each as its role, bound to its node group.
    Bound,
}

/// Processes that are ready for jobs.
pub struct Placed<'b> {
    bench: &'b Bench<'b>,
    _processes: Vec<Process>,
}

/// What one job took and wrote.
pub struct Measured {
    pub wall: Duration,
    pub objects: u64,
    pub bytes: u64,
    pub round_trips: u64,
    pub rows: Written,
}

#[derive(Clone, Copy, Default)]
pub struct Written {
    pub inserted: u64,
    pub updated: u64,
    pub deleted: u64,
    /// Of the write-ahead log.
    pub log_bytes: u64,
    /// What the database grew by.
    pub book_bytes: u64,
    pub commits: u64,
}

impl<'s> Bench<'s> {
    pub fn new(server: &'s Server, binary: &Path, folder: &Path, tree: &Path) -> Result<Bench<'s>> {
        let url = server.create_database();
        let proxy = Proxy::start(server.port());
        let name = url.rsplit('/').next().and_then(|rest| rest.split('?').next()).unwrap_or_default();
        let logs = folder.join("logs");
        let fleet = |url: &str| Fleet::new(binary, &logs, url, KEY, LEASE);
        let far = proxy.through(&url);
        let bench = Bench {
            direct: fleet(&url),
            bound_orchestrator: fleet(&as_login(&url, ORCHESTRATOR)?),
            bound_worker: fleet(&as_login(&far, WORKER)?),
            proxied: fleet(&far),
            database: name.to_owned(),
            folder: folder.to_owned(),
            tree: tree.to_owned(),
            server,
            proxy,
        };
        let (key, root) = (format!("env:{KEY_VARIABLE}"), format!("root={}", tree.display()));
        bench.command(&["db", "migrate", "--fingerprint-key", &key])?;
        server.try_psql(&bench.database, ROLES).map_err(|error| anyhow!(error))?;
        for (login, role) in [(WORKER, "worker"), (ORCHESTRATOR, "orchestrator")] {
            bench.command(&["db", "grant", login, "--as", role, "--node-group", GROUP])?;
        }
        for number in 0..LONG {
            let name = format!("tree-{number}");
            let kind = ["--kind", "filesystem", "--node-group", GROUP, "--set", &root];
            bench.command(&[&["datasource", "add", &name][..], &kind].concat())?;
        }
        bench.command(&["template", "add", ONCE, "--datasource", "tree-0"])?;
        bench.command(&["template", "add", OFTEN, "--datasource", "tree-*"])?;
        Ok(bench)
    }

    fn command(&self, arguments: &[&str]) -> Result<()> {
        let answer = self.direct.run(arguments);
        match answer.code {
            Some(0) => Ok(()),
            _ => bail!("`domesday {}` failed: {answer:?}", arguments.join(" ")),
        }
    }

    /// Starts an orchestrator and these workers, so far from the database, and waits until they are there.
    pub fn start(&self, logins: Logins, workers: &[&[&str]], distance: Duration) -> Result<Placed<'_>> {
        let (of_orchestrator, of_workers) = match logins {
            Logins::Owner => (&self.direct, &self.proxied),
            Logins::Bound => (&self.bound_orchestrator, &self.bound_worker),
        };
        self.proxy.set_round_trip(distance);
        let before = self.number("SELECT count(*) FROM worker_sessions")?;
        let mut processes = vec![of_orchestrator.orchestrator("orchestrator", GROUP, &[])];
        for (number, options) in workers.iter().enumerate() {
            processes.push(of_workers.worker(&format!("worker-{number}"), GROUP, options));
        }
        let expected = before + workers.len() as u64;
        let there = || {
            let workers = self.number("SELECT count(*) FROM worker_sessions").ok()?;
            (workers == expected).then_some(())
        };
        wait::until(HANG, there).context("the workers do not register")?;
        Ok(Placed { bench: self, _processes: processes })
    }

    /// `domesday scan` of the tree on an embedded store of its own; how long it took.
    pub fn scan(&self) -> Result<Duration> {
        let state = self.folder.join("state");
        if state.exists() {
            std::fs::remove_dir_all(&state)?;
        }
        let mut scan = self.direct.command(["scan", "--quiet", "--format", "jsonl", "--output", "/dev/null"]);
        scan.arg("--state").arg(&state).arg(&self.tree).env_remove("DOMESDAY_STORE");
        let begun = Instant::now();
        let status = scan.status().context("cannot run the scan")?;
        let took = begun.elapsed();
        std::fs::remove_dir_all(&state)?;
        match status.code() {
            Some(0 | 1 | 3) => Ok(took),
            _ => bail!("the scan on the embedded store ended with {status}"),
        }
    }

    fn number(&self, sql: &str) -> Result<u64> {
        let answer = self.server.try_psql(&self.database, sql).map_err(|error| anyhow!(error))?;
        answer.parse().with_context(|| format!("`{answer}` is no number"))
    }

    fn counters(&self) -> Result<Written> {
        wait::pause(STATISTICS_LATENCY);
        let answer = self.server.try_psql(&self.database, COUNTERS).map_err(|error| anyhow!(error))?;
        let numbers: Vec<u64> = answer.split('|').map(|number| number.parse().unwrap_or(0)).collect();
        let [inserted, updated, deleted, log_bytes, book_bytes, commits] = numbers[..] else {
            bail!("the database's counters are `{answer}`")
        };
        Ok(Written { inserted, updated, deleted, log_bytes, book_bytes, commits })
    }
}

/// A book's address for another login.
fn as_login(url: &str, login: &str) -> Result<String> {
    let (scheme, rest) = url.split_once("://").context("the book has an address")?;
    let (user, rest) = rest.split_once('@').context("the book's address has a user")?;
    if !user.starts_with(OWNER) {
        bail!("the book's address has the user `{OWNER}`");
    }
    Ok(format!("{scheme}://{login}@{rest}"))
}

impl Placed<'_> {
    /// One job, from the moment it is asked for until it is done.
    pub fn job(&self, template: &str) -> Result<Measured> {
        let bench = self.bench;
        let before = bench.counters()?;
        let round_trips = bench.proxy.counts().round_trips;
        let begun = Instant::now();
        // All of it each time, whatever was read before.
        bench.command(&["job", "start", template, "--rescan"])?;
        let ended = || {
            let open = "SELECT count(*) FROM jobs WHERE finished_at IS NULL";
            (bench.number(open).ok()? == 0).then(|| begun.elapsed())
        };
        let (_, wall) = wait::until(HANG, ended).context("the job does not end")?;
        let round_trips = bench.proxy.counts().round_trips - round_trips;
        let after = bench.counters()?;
        let of_last = |column: &str| {
            bench.number(&format!(
                "SELECT coalesce(sum({column}), 0) FROM tasks WHERE type = 'CLASSIFICATION' AND status = 'COMPLETED'
                 AND job_id = (SELECT max(id) FROM jobs)"
            ))
        };
        Ok(Measured {
            wall,
            objects: of_last("objects")?,
            bytes: of_last("bytes")?,
            round_trips,
            rows: after.since(before),
        })
    }
}

impl Written {
    fn since(self, before: Written) -> Written {
        Written {
            inserted: self.inserted.saturating_sub(before.inserted),
            updated: self.updated.saturating_sub(before.updated),
            deleted: self.deleted.saturating_sub(before.deleted),
            log_bytes: self.log_bytes.saturating_sub(before.log_bytes),
            book_bytes: self.book_bytes.saturating_sub(before.book_bytes),
            commits: self.commits.saturating_sub(before.commits),
        }
    }
}
