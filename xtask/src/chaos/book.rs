//! A look into the fleet's book with SQL of its own, so that a mistake of the store cannot hide itself.
//!
//! It only reads, by `psql`, apart from everything that is disturbed. What it cannot read, because the
//! database is down, is no offence: it is looked at again.

use anyhow::{Result, anyhow};
use domesday_testkit::postgres::Server;
use serde::Deserialize;

/// Statements that count what must not be in the book of an ended job, with what it means. `OWN` are the
/// child jobs of the master job.
const NEVER: &[(&str, &str)] = &[
    ("tasks that are open", "SELECT count(*) FROM tasks WHERE job_id IN (OWN) AND status IN ('PENDING', 'RUNNING')"),
    ("tasks that failed", "SELECT count(*) FROM tasks WHERE job_id IN (OWN) AND status = 'FAILED'"),
    (
        "units that are staging or failed",
        "SELECT count(*) FROM task_units WHERE job_id IN (OWN) AND status <> 'COMMITTED'",
    ),
    ("units that were not fanned out", "SELECT count(*) FROM task_units WHERE job_id IN (OWN) AND fanned_out <> 3"),
    (
        "containers with more than one unit in a session",
        "SELECT count(*) FROM (SELECT 1 FROM task_units WHERE job_id IN (OWN)
         GROUP BY session_id, key HAVING count(*) > 1) x",
    ),
    (
        "entries listed twice in a unit",
        "SELECT count(*) FROM (SELECT 1 FROM task_output_records r JOIN task_units u ON u.id = r.unit_id
         WHERE u.job_id IN (OWN) GROUP BY r.unit_id, r.name HAVING count(*) > 1) x",
    ),
    (
        "units whose totals are not those of their records",
        "SELECT count(*) FROM task_units u WHERE u.job_id IN (OWN) AND (u.records, u.objects, u.containers) <> (
             SELECT count(*), count(*) FILTER (WHERE kind IN (0, 4)), count(*) FILTER (WHERE kind = 1)
             FROM task_output_records r WHERE r.unit_id = u.id)",
    ),
    (
        "sessions that have not one unit for their root and one for each folder",
        "SELECT count(*) FROM enumeration_sessions s WHERE s.job_id IN (OWN)
         AND (SELECT count(*) FROM task_units u WHERE u.session_id = s.id)
            <> 1 + (SELECT coalesce(sum(u.containers), 0) FROM task_units u WHERE u.session_id = s.id)",
    ),
    (
        "ranges of completed tasks that overlap or leave a gap",
        "SELECT count(*) FROM (
             SELECT first, lag(last, 1, 0::bigint) OVER (PARTITION BY unit ORDER BY first, last) AS before
             FROM (SELECT (r ->> 'unit')::bigint AS unit, (r ->> 'from')::bigint AS first, (r ->> 'to')::bigint AS last
                   FROM tasks t, json_array_elements(t.payload::json -> 'unit_ranges') r
                   WHERE t.job_id IN (OWN) AND t.type = 'CLASSIFICATION' AND t.status = 'COMPLETED') ranges) x
         WHERE first <> before",
    ),
    (
        "units whose objects were not classified to the last",
        "SELECT count(*) FROM task_units u WHERE u.job_id IN (OWN) AND u.objects > 0 AND u.records IS DISTINCT FROM (
             SELECT max((r ->> 'to')::bigint)
             FROM tasks t, json_array_elements(t.payload::json -> 'unit_ranges') r
             WHERE t.job_id = u.job_id AND t.type = 'CLASSIFICATION' AND t.status = 'COMPLETED'
               AND (r ->> 'unit')::bigint = u.id)",
    ),
    (
        "occurrences in the book twice",
        "SELECT count(*) FROM (SELECT 1 FROM finding_occurrences WHERE job_id IN (OWN)
         GROUP BY job_id, finding_id, span_start, span_end HAVING count(*) > 1) x",
    ),
    (
        "findings in the book twice",
        "SELECT count(*) FROM (SELECT 1 FROM findings
         GROUP BY datasource_id, object_key, nested_path, rule_id, fingerprint HAVING count(*) > 1) x",
    ),
    (
        "occurrences of tasks that did not complete",
        "SELECT count(*) FROM finding_occurrences WHERE job_id IN (OWN)
         AND task_id NOT IN (SELECT id FROM tasks WHERE status = 'COMPLETED')",
    ),
    (
        "objects given up because they ended their worker",
        "SELECT count(*) FROM object_scans WHERE job_id IN (OWN) AND reason = 'poisoned'",
    ),
    (
        "tasks of a worker of another node group",
        "SELECT count(*) FROM tasks t JOIN jobs j ON j.id = t.job_id JOIN worker_sessions w ON w.id = t.worker_id
         WHERE j.id IN (OWN) AND w.node_group <> j.node_group",
    ),
    (
        "jobs of an orchestrator of another node group",
        "SELECT count(*) FROM jobs j JOIN orchestrators o ON o.id = j.orchestrator_id
         WHERE j.id IN (OWN) AND o.node_group <> j.node_group",
    ),
];

/// One look at a master job and the fleet.
const SAMPLE: &str = "SELECT json_build_object(
    'jobs', (SELECT coalesce(json_agg(json_build_object('id', id, 'status', status,
        'version', version, 'owner', encode(orchestrator_id, 'hex')) ORDER BY id), '[]') FROM jobs WHERE id IN (OWN)),
    'held', (SELECT coalesce(json_object_agg(worker, tasks), '{}') FROM (SELECT encode(worker_id, 'hex') AS worker,
        count(*) AS tasks FROM tasks WHERE job_id IN (OWN) AND status = 'RUNNING' GROUP BY worker_id) x),
    'progress', (SELECT count(*) FROM tasks WHERE job_id IN (OWN) AND status IN ('COMPLETED', 'FAILED'))
        + (SELECT coalesce(sum(records + 1), 0) FROM task_units WHERE job_id IN (OWN)),
    'claims', (SELECT coalesce(sum(hashint8(claim_id)::bigint), 0) FROM tasks WHERE job_id IN (OWN) AND status = 'RUNNING'),
    'found', (SELECT count(*) FROM finding_occurrences WHERE job_id IN (OWN)),
    'abandonments', (SELECT coalesce(max(abandonments), 0) FROM tasks
        WHERE job_id IN (OWN) AND status IN ('PENDING', 'RUNNING')),
    'crossed', (SELECT count(*) FROM tasks t JOIN jobs j ON j.id = t.job_id JOIN worker_sessions w ON w.id = t.worker_id
        WHERE j.id IN (OWN) AND w.node_group <> j.node_group),
    'processes', (SELECT coalesce(json_agg(json_build_object('id', encode(id, 'hex'), 'host', host)), '[]')
        FROM (SELECT id, host FROM worker_sessions UNION ALL SELECT id, host FROM orchestrators) x))";

/// What is open of a master job, and every process: what to look at when a job is stuck.
const OPEN: &str = "SELECT 'job ' || id || ' of ' || node_group || ': ' || status || ', version ' || version
        || ', owner ' || coalesce(encode(orchestrator_id, 'hex'), 'nobody') || ' until ' || orchestrator_lease_expiry
    FROM jobs WHERE id IN (OWN)
    UNION ALL SELECT 'task ' || id || ' of job ' || job_id || ': ' || type || ' ' || status
        || ', worker ' || coalesce(encode(worker_id, 'hex'), 'nobody') || ', not before ' || not_before
        || ', failures ' || failures || ', abandonments ' || abandonments
        || ', progress at ' || coalesce(progress_at, 0) || ', ' || left(payload, 200)
    FROM (SELECT * FROM tasks WHERE job_id IN (OWN) AND status IN ('PENDING', 'RUNNING') ORDER BY status DESC, id
        LIMIT 20) x
    UNION ALL SELECT 'unit ' || id || ' of job ' || job_id || ': ' || status || ', fanned out ' || fanned_out
    FROM (SELECT * FROM task_units WHERE job_id IN (OWN) AND (status <> 'COMMITTED' OR fanned_out <> 3) ORDER BY id
        LIMIT 20) x
    UNION ALL SELECT what || ' ' || encode(id, 'hex') || ' of ' || node_group || ', ' || host || ', lease until '
        || lease_expiry
    FROM (SELECT 'worker' AS what, id, node_group, host, lease_expiry FROM worker_sessions
        UNION ALL SELECT 'orchestrator', id, node_group, host, lease_expiry FROM orchestrators) x
    UNION ALL SELECT 'now ' || now_ms()";

/// The database of a fleet.
pub struct Book<'s> {
    server: &'s Server,
    database: String,
}

#[derive(Clone, Deserialize, Debug)]
pub struct Sample {
    pub jobs: Vec<Job>,
    /// Running tasks by worker.
    pub held: std::collections::BTreeMap<String, u64>,
    /// Grows with everything that gets done.
    pub progress: u64,
    /// Changes with every claim.
    pub claims: i64,
    pub found: u64,
    /// The most of any open task.
    pub abandonments: u64,
    pub crossed: u64,
    processes: Vec<Registered>,
}

#[derive(Clone, Deserialize, Debug)]
pub struct Job {
    pub id: i64,
    pub status: String,
    pub version: i64,
    pub owner: Option<String>,
}

#[derive(Clone, Deserialize, Debug)]
struct Registered {
    id: String,
    /// Host name and process id.
    host: String,
}

impl Job {
    pub fn is_over(&self) -> bool {
        ["COMPLETED", "PARTIALLY_COMPLETED", "FAILED", "CANCELLED"].contains(&self.status.as_str())
    }
}

impl Sample {
    pub fn is_over(&self) -> bool {
        !self.jobs.is_empty() && self.jobs.iter().all(Job::is_over)
    }

    pub fn running(&self) -> u64 {
        self.held.values().sum()
    }

    /// Whether a process that is gone still holds tasks or jobs of this master job.
    pub fn holds(&self, process: u32) -> bool {
        let ids = self.processes.iter().filter(|known| known.is_process(process)).map(|known| &known.id);
        ids.into_iter().any(|id| {
            self.held.contains_key(id)
                || self.jobs.iter().any(|job| !job.is_over() && job.owner.as_ref() == Some(id))
        })
    }

    pub fn has_registered(&self, process: u32) -> bool {
        self.processes.iter().any(|known| known.is_process(process))
    }
}

impl Registered {
    /// The last number in what it says of itself is its process id.
    fn is_process(&self, process: u32) -> bool {
        let digits = self.host.rsplit(|c: char| !c.is_ascii_digit()).find(|part| !part.is_empty());
        digits.and_then(|digits| digits.parse().ok()) == Some(process)
    }
}

impl<'s> Book<'s> {
    pub fn new(server: &'s Server, url: &str) -> Book<'s> {
        let name = url.rsplit('/').next().unwrap_or_default();
        Book { server, database: name.split('?').next().unwrap_or_default().to_owned() }
    }

    /// What a statement answers, a line a row.
    pub fn lines(&self, sql: &str, master: &str) -> Result<Vec<String>> {
        let own = format!("SELECT id FROM jobs WHERE master_job_id = decode('{master}', 'hex')");
        let answer = self.server.try_psql(&self.database, &sql.replace("OWN", &own));
        Ok(answer.map_err(|error| anyhow!(error))?.lines().map(str::to_owned).collect())
    }

    pub fn sample(&self, master: &str) -> Result<Sample> {
        Ok(serde_json::from_str(&self.lines(SAMPLE, master)?.join("\n"))?)
    }

    /// What is open of a job that is stuck.
    pub fn open(&self, master: &str) -> Vec<String> {
        self.lines(OPEN, master).unwrap_or_else(|error| vec![error.to_string()])
    }

    /// Every invariant of an ended job that does not hold.
    pub fn offences(&self, master: &str) -> Result<Vec<String>> {
        let all: Vec<String> = NEVER.iter().map(|(what, sql)| format!("SELECT '{what}', ({sql})")).collect();
        let lines = self.lines(&all.join(" UNION ALL "), master)?;
        let counted = lines.iter().filter_map(|line| line.rsplit_once('|'));
        Ok(counted
            .filter(|(_, count)| *count != "0")
            .map(|(what, count)| format!("book: {count} {what}"))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Sample {
        serde_json::from_str(
            r#"{"jobs": [{"id": 1, "status": "RUNNING", "version": 3, "owner": "aa"}],
                "held": {"bb": 2}, "progress": 5, "claims": -1, "found": 0, "abandonments": 0, "crossed": 0,
                "processes": [{"id": "aa", "host": "h2:71"}, {"id": "bb", "host": "h2:72"},
                              {"id": "cc", "host": "h2:73"}]}"#,
        )
        .unwrap()
    }

    #[test]
    fn a_process_is_known_by_its_id_and_holds_what_is_under_it() {
        let sample = sample();
        assert!(sample.holds(71) && sample.holds(72) && !sample.holds(73) && !sample.holds(2));
        assert!(sample.has_registered(73) && !sample.has_registered(74));
        assert!(!sample.is_over());
        assert_eq!(sample.running(), 2);
    }

    /// A server with the store's schema, and the URL of its database.
    pub fn empty_book() -> (Server, String) {
        let server = Server::start(None);
        let url = server.create_database();
        let folder = crate::workspace::root().join("crates/store/src/postgres/migrations");
        let mut migrations: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        migrations.sort();
        for migration in migrations {
            server.psql("test_0", &std::fs::read_to_string(migration).unwrap());
        }
        (server, url)
    }

    #[test]
    fn every_statement_is_one_of_the_schema() {
        let (server, url) = empty_book();
        let book = Book::new(&server, &url);
        let master = "00".repeat(16);
        assert_eq!(book.offences(&master).unwrap(), Vec::<String>::new());
        let sample = book.sample(&master).unwrap();
        assert!(!sample.is_over() && sample.running() == 0);
        let open = book.open(&master);
        assert!(open.len() == 1 && open[0].starts_with("now "), "{open:?}");
        let outcome = crate::chaos::outcome::Outcome::of_fleet(&book, &master).unwrap();
        assert_eq!(outcome, crate::chaos::outcome::Outcome::default());
    }
}
