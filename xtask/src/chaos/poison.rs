//! A file that ends its worker every time it is read: it must end as one named failure, and everything
//! beside it must be scanned.

use std::fs;
use std::time::Instant;

use anyhow::{Result, bail};
use domesday_testkit::fleet::KEY_VARIABLE;
use domesday_testkit::wait::{LOOK_EVERY, pause};

use super::{Chaos, HANG, run_all};
use crate::crash::content::{COUNTED_RULE, Contents};

const GROUP: &str = "poison";
/// Files beside the one.
const NEIGHBOURS: usize = 100;
/// The name that ends a worker built with failpoints.
const ABORTS: &str = "aborts.txt";
const WORKERS: usize = 2;

pub fn check(chaos: &mut Chaos<'_>) -> Result<()> {
    let begun = Instant::now();
    let root = chaos.direct.folder().join(GROUP);
    fs::create_dir_all(&root)?;
    let mut contents = Contents::new(1);
    for number in 0..NEIGHBOURS {
        fs::write(root.join(format!("{number}.txt")), contents.planted())?;
    }
    fs::write(root.join(ABORTS), contents.prose(3))?;
    let set = format!("root={}", root.display());
    let master = chaos.planner.job();
    run_all(
        chaos.direct,
        &[
            &["datasource", "add", GROUP, "--kind", "filesystem", "--node-group", GROUP, "--set", &set],
            &["template", "add", GROUP, "--datasource", GROUP],
            &["job", "start", GROUP, "--id", &master],
        ],
    )?;
    let fleet = chaos.direct;
    let _orchestrator = fleet.orchestrator("poison-orchestrator", GROUP, &[]);
    let worker = |number: usize| {
        let key = format!("env:{KEY_VARIABLE}");
        let mut command = fleet.command(["worker", "--node-group", GROUP, "--slots", "1", "--lease", "3s"]);
        command.args(["--fingerprint-key", &key]).env("DOMESDAY_ABORT_ON", ABORTS);
        fleet.start(&format!("poison-worker-{number}"), command)
    };
    let mut workers: Vec<_> = (0..WORKERS).map(worker).collect();
    let mut aborts = 0;
    while !chaos.book.sample(&master).is_ok_and(|sample| sample.is_over()) {
        for (number, process) in workers.iter_mut().enumerate() {
            if process.ended().is_some() {
                aborts += 1;
                *process = worker(number);
            }
        }
        if begun.elapsed() > HANG {
            bail!("a file that ends its worker keeps its job from ending (job {master})");
        }
        pause(LOOK_EVERY);
    }
    let found = chaos.book.lines(
        "SELECT count(*) FROM finding_occurrences o JOIN findings f ON f.id = o.finding_id
         WHERE o.job_id IN (OWN) AND f.rule_id = 'RULE'"
            .replace("RULE", COUNTED_RULE)
            .as_str(),
        &master,
    )?;
    let named = chaos.book.lines(
        "SELECT convert_from(object_key, 'UTF8'), status, reason FROM object_scans
         WHERE job_id IN (OWN) AND status <> 'SCANNED' AND (status = 'FAILED' OR reason IS NOT NULL)",
        &master,
    )?;
    println!(
        "chaos: a file that ended its worker {aborts} times is one named failure after {:.1} s: {named:?}",
        begun.elapsed().as_secs_f64()
    );
    if found != [NEIGHBOURS.to_string()] || named.len() != 1 || !named[0].starts_with(ABORTS) || aborts == 0 {
        bail!(
            "{found:?} of {NEIGHBOURS} neighbours were scanned after {aborts} aborts; named failures: {named:?}"
        );
    }
    Ok(())
}
