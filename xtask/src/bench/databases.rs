//! `bench databases`: a table of millions of rows read whole by the binary with two threads, beside the
//! server's own way of handing the same table out, and what either asks of the server.
//!
//! Both are measured in the same run, one after the other, on a table that was read once before.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use domesday_testkit::{mariadb, postgres, wait};
use serde_json::Value;

use super::{Rows, Setup};

/// Threads of the scan.
const THREADS: &str = "2";
/// How often a server's connections are counted.
const LOOK: Duration = Duration::from_millis(500);
/// PostgreSQL tells of what a session did up to this much later.
const STATISTICS_LATENCY: Duration = Duration::from_secs(2);
/// In what the kernel counts a process's time, per second.
const TICKS_PER_SECOND: f64 = 100.0;
const COPY_BUFFER: usize = 1 << 20;

/// The columns that tables of customers have, of row number `n`; all values are made up.
const POSTGRES_COLUMNS: &str = "n AS id, 'Name ' || substr(md5(n::text), 1, 12) AS name,
    'user' || n || '@corp-mail.org' AS email, '+49 30 ' || (1000000 + n % 9000000) AS phone,
    (ARRAY['Berlin', 'Paris', 'Oslo', 'Porto', 'Ghent'])[1 + n % 5] AS city, (n % 100000) / 100.0 AS amount,
    timestamp '2020-01-01' + n * interval '7 seconds' AS created_at,
    'order ' || n || ' was sent to the harbour by ' || substr(md5('note' || n), 1, 20) AS note,
    md5(n::text)::uuid AS uuid, (ARRAY['new', 'paid', 'sent', 'done'])[1 + n % 4] AS status, n % 2 = 0 AS is_active";
const MARIADB_COLUMNS: &str = "seq AS id, concat('Name ', left(md5(seq), 12)) AS name,
    concat('user', seq, '@corp-mail.org') AS email, concat('+49 30 ', 1000000 + seq % 9000000) AS phone,
    elt(1 + seq % 5, 'Berlin', 'Paris', 'Oslo', 'Porto', 'Ghent') AS city, (seq % 100000) / 100.0 AS amount,
    timestamp '2020-01-01 00:00:00' + interval seq * 7 second AS created_at,
    concat('order ', seq, ' was sent to the harbour by ', left(md5(concat('note', seq)), 20)) AS note,
    md5(seq) AS uuid, elt(1 + seq % 4, 'new', 'paid', 'sent', 'done') AS status, seq % 2 = 0 AS is_active";

const POSTGRES_COUNTERS: &str = "SELECT blks_hit + blks_read, blks_read, tup_returned, xact_commit
    FROM pg_stat_database WHERE datname = current_database()";

pub const ABOUT: &str = "A table read whole by `domesday scan <address>?mode=full --jobs 2`, beside `COPY … TO STDOUT` of \
    PostgreSQL and `SELECT *` of MariaDB, each on a local server of its own.";

pub fn run(setup: &Setup, rows: &mut Rows) -> Result<()> {
    let bench =
        Bench { binary: setup.binary()?.to_owned(), folder: setup.folder.clone(), rows: setup.options.rows };
    rows.add("rows", bench.rows as f64, "rows");
    bench.postgres(rows)?;
    bench.mariadb(rows)
}

struct Bench {
    binary: PathBuf,
    folder: PathBuf,
    rows: u64,
}

/// What one way of reading the table took.
struct Measured {
    took: Duration,
    bytes: u64,
    /// Of the server's processes.
    cpu_seconds: f64,
    connections: u64,
}

impl Measured {
    fn tell(&self, name: &str, count: u64, rows: &mut Rows) {
        let per_second = |amount: u64| amount as f64 / self.took.as_secs_f64();
        rows.add(name, self.took.as_secs_f64(), "s");
        rows.add(format!("{name}, rows"), per_second(count), "rows/s");
        rows.add(format!("{name}, bytes"), per_second(self.bytes) / 1e6, "MB/s");
        rows.add(format!("{name}, server's time on processors"), self.cpu_seconds, "s");
        rows.add(format!("{name}, connections"), self.connections as f64, "connections");
    }
}

impl Bench {
    fn postgres(&self, table: &mut Rows) -> Result<()> {
        let server = postgres::Server::start(None);
        let url = server.create_database();
        let database = url.rsplit('/').next().and_then(|rest| rest.split('?').next()).unwrap_or_default();
        let ask = |sql: &str| server.try_psql(database, sql).map_err(|error| anyhow!(error));
        let rows = self.rows;
        ask(&format!(
            "CREATE TABLE customers AS SELECT {POSTGRES_COLUMNS} FROM generate_series(1, {rows}) AS n"
        ))?;
        ask("ALTER TABLE customers ADD PRIMARY KEY (id)")?;
        ask("VACUUM (ANALYZE) customers")?;
        let file = server.folder().join("data/postmaster.pid");
        let postmaster = std::fs::read_to_string(file)?.lines().next().unwrap_or_default().parse()?;
        let counters = || -> Result<Vec<u64>> {
            wait::pause(STATISTICS_LATENCY);
            Ok(ask(POSTGRES_COUNTERS)?.split('|').map(|number| number.parse().unwrap_or(0)).collect())
        };
        let connections = || {
            let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name IN ('domesday', 'bare')";
            ask(sql).ok().and_then(|count| count.parse().ok()).unwrap_or(0)
        };
        let copy = || {
            let mut client = server.client("psql");
            client.args(["-X", "-q", "-d", database, "-c", "COPY (SELECT * FROM customers) TO STDOUT"]);
            client.env("PGAPPNAME", "bare");
            client
        };
        let load = Load { server: postmaster, connections: &connections };
        // The first one warms the caches.
        load.measure_output(copy())?;
        let before = counters()?;
        let bare = load.measure_output(copy())?;
        let between = counters()?;
        let address =
            format!("postgres://postgres@localhost:{}/{database}?tls=disable&mode=full", server.port());
        let scan = self.scan(&load, &address)?;
        let after = counters()?;
        bare.tell("postgres copy", rows, table);
        scan.tell("postgres scan", rows, table);
        let rate = bare.took.as_secs_f64() / scan.took.as_secs_f64();
        table.add("postgres scan, of the copy's rate", rate, "times");
        for (name, earlier, later) in [("copy", &before, &between), ("scan", &between, &after)] {
            let since: Vec<u64> = later.iter().zip(earlier).map(|(l, e)| l.saturating_sub(*e)).collect();
            let [blocks, read, tuples, commits] = since[..] else { bail!("the counters are {later:?}") };
            table.add(format!("postgres {name}, blocks"), blocks as f64, "blocks");
            table.add(format!("postgres {name}, not in the server's memory"), read as f64, "blocks");
            table.add(format!("postgres {name}, tuples per row"), tuples as f64 / rows as f64, "tuples");
            table.add(format!("postgres {name}, transactions"), commits as f64, "transactions");
        }
        Ok(())
    }

    fn mariadb(&self, table: &mut Rows) -> Result<()> {
        let server = mariadb::Server::start(None);
        let database = server.create_database();
        let ask = |sql: &str| server.try_sql(&database, sql).map_err(|error| anyhow!(error));
        let rows = self.rows;
        ask("SET GLOBAL innodb_buffer_pool_size = 536870912")?;
        ask(&format!(
            "CREATE TABLE customers (PRIMARY KEY (id)) AS SELECT {MARIADB_COLUMNS} FROM seq_1_to_{rows};
             ANALYZE TABLE customers"
        ))?;
        let file = ask("SELECT @@pid_file")?;
        let file = Path::new(&file);
        let file = if file.is_absolute() { file.to_owned() } else { server.folder().join("data").join(file) };
        let process = std::fs::read_to_string(file)?.trim().parse()?;
        let connections = || {
            let sql = "SELECT count(*) FROM information_schema.processlist WHERE id <> connection_id() AND db IS NOT NULL";
            ask(sql).ok().and_then(|count| count.parse().ok()).unwrap_or(0)
        };
        let select = || {
            let mut client = Command::new("mariadb");
            client.arg("--no-defaults").arg(format!("--socket={}/socket", server.folder().display()));
            client.args(["--user", mariadb::USER, "--quick", "--batch", "--database", &database]);
            client.args(["--execute", "SELECT * FROM customers"]);
            client
        };
        let load = Load { server: process, connections: &connections };
        load.measure_output(select())?;
        let bare = load.measure_output(select())?;
        let user = mariadb::USER;
        let address = format!("mysql://{user}@127.0.0.1:{}/{database}?tls=disable&mode=full", server.port());
        let scan = self.scan(&load, &address)?;
        bare.tell("mariadb select", rows, table);
        scan.tell("mariadb scan", rows, table);
        let rate = bare.took.as_secs_f64() / scan.took.as_secs_f64();
        table.add("mariadb scan, of the select's rate", rate, "times");
        Ok(())
    }

    /// The binary reads the table whole. That it has read every row is checked.
    fn scan(&self, load: &Load<'_>, address: &str) -> Result<Measured> {
        let (state, report) = (self.folder.join("state"), self.folder.join("report.json"));
        if state.exists() {
            std::fs::remove_dir_all(&state)?;
        }
        let mut scan = Command::new(&self.binary);
        scan.args(["scan", address, "--quiet", "--jobs", THREADS, "--format", "json", "--output"]);
        scan.arg(&report).arg("--state").arg(&state);
        let mut measured =
            load.measure(scan.stdout(Stdio::null()).spawn().context("cannot start the binary")?)?;
        let catalog = Command::new(&self.binary)
            .args(["catalog", "--all", "--format", "json", "--state"])
            .arg(&state)
            .output()
            .context("cannot run the catalogue")?;
        let columns: Value = serde_json::from_slice(&catalog.stdout).context("the catalogue is not JSON")?;
        let read = columns[0]["rows"].as_u64().unwrap_or(0);
        if read != self.rows {
            bail!("the scan read {read} rows of {}", self.rows);
        }
        let report: Value =
            serde_json::from_slice(&std::fs::read(&report)?).context("the report is not JSON")?;
        measured.bytes = report["summary"]["bytes"]["read"].as_u64().unwrap_or(0);
        std::fs::remove_dir_all(&state)?;
        Ok(measured)
    }
}

/// What is asked of a server.
struct Load<'a> {
    /// Its process, whose children are its too.
    server: u32,
    connections: &'a dyn Fn() -> u64,
}

impl Load<'_> {
    /// A client whose output is counted and thrown away.
    fn measure_output(&self, mut client: Command) -> Result<Measured> {
        let mut child =
            client.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot run {client:?}"))?;
        let mut output = child.stdout.take().context("its output is piped")?;
        let reader = std::thread::spawn(move || -> std::io::Result<u64> {
            let (mut buffer, mut bytes) = (vec![0; COPY_BUFFER], 0);
            loop {
                match output.read(&mut buffer)? {
                    0 => return Ok(bytes),
                    count => bytes += count as u64,
                }
            }
        });
        let mut measured = self.measure(child)?;
        measured.bytes = reader.join().map_err(|_| anyhow!("the reader panicked"))??;
        Ok(measured)
    }

    /// From now until a process ends.
    fn measure(&self, mut child: Child) -> Result<Measured> {
        let (begun, before) = (Instant::now(), cpu_seconds(self.server)?);
        let (mut connections, mut looked) = (0, begun);
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if looked.elapsed() >= LOOK {
                connections = connections.max((self.connections)());
                looked = Instant::now();
            }
            wait::pause(Duration::from_millis(5));
        };
        let took = begun.elapsed();
        // With findings a scan ends with another code than without.
        if !matches!(status.code(), Some(0 | 1)) {
            bail!("a client ended with {status}");
        }
        Ok(Measured { took, bytes: 0, cpu_seconds: cpu_seconds(self.server)? - before, connections })
    }
}

/// The time that a process and all its children, those that ended included, were on a processor.
fn cpu_seconds(process: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).context("the server is gone")?;
    let mut ticks: u64 = times(&stat)?.iter().sum();
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"))?;
    for child in children.split_whitespace() {
        // One that has just ended is its parent's now.
        if let Ok(stat) = std::fs::read_to_string(format!("/proc/{child}/stat")) {
            ticks += times(&stat)?.iter().sum::<u64>();
        }
    }
    Ok(ticks as f64 / TICKS_PER_SECOND)
}

/// Its own time in programs and in the kernel, and that of children it has waited for.
fn times(stat: &str) -> Result<[u64; 4]> {
    // The name before may have anything in it, but what follows its last bracket has not.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let field = |at: usize| -> Result<u64> { Ok(fields.get(at).context("a line without times")?.parse()?) };
    Ok([field(11)?, field(12)?, field(13)?, field(14)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_whatever_the_process_is_called() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 5";
        assert_eq!(times(stat).unwrap(), [10, 20, 30, 40]);
        assert!(times("7 (x) S 1").is_err());
        assert!(cpu_seconds(std::process::id()).unwrap() >= 0.0);
    }
}
