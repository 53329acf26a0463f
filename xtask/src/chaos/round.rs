//! One round: a job, the disturbances that hit it, and what became of it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use domesday_testkit::wait::{LOOK_EVERY, pause};

use super::book::Sample;
use super::cast::{GROUPS, Role};
use super::outcome::Outcome;
use super::plan::{Disturbance, Step};
use super::{ALLOWANCE, Chaos, HANG, HEARTBEAT, LEASE, WAKE_UP};

/// A job is left alone for a while when one of its tasks was abandoned this often: a task that goes on
/// ending its workers is given up on purpose, and the harness must not pose as one.
const ABANDONMENTS_MAX: u64 = 2;
/// How long connections are reset.
const RESETS_FOR: Duration = Duration::from_secs(3);
/// Heartbeats for which a paused job must not move.
const STILL_FOR: u32 = 2;

pub struct Round<'c, 's> {
    chaos: &'c mut Chaos<'s>,
    master: String,
    begun: Instant,
    /// Each child job's owner by version, as seen.
    owners: BTreeMap<(i64, i64), String>,
    versions: BTreeMap<i64, i64>,
}

impl<'c, 's> Round<'c, 's> {
    /// Starts a job and disturbs it; how long it took. Steps that it did not live to see are left in `steps`.
    pub fn run(chaos: &'c mut Chaos<'s>, steps: &mut Vec<Step>) -> Result<Duration> {
        let master = chaos.planner.job();
        let (owners, versions) = Default::default();
        let mut round = Round { chaos, master, begun: Instant::now(), owners, versions };
        round.start()?;
        while let Some(step) = steps.first().copied() {
            if !round.wait_for(step)? {
                break;
            }
            round.disturb(step)?;
            steps.remove(0);
        }
        round.wait_for_the_end()?;
        let took = round.begun.elapsed();
        round.compare()?;
        Ok(took)
    }

    fn start(&mut self) -> Result<()> {
        // Every round does all the work, whatever the rounds before it read.
        let arguments = ["job", "start", super::TEMPLATE, "--rescan", "--id", self.master.as_str()];
        let answer = self.chaos.direct.run(arguments);
        if answer.code != Some(0) {
            bail!("the job did not start: {answer:?}");
        }
        Ok(())
    }

    /// Until it is time for the step; false when the job is over.
    fn wait_for(&mut self, step: Step) -> Result<bool> {
        let since = Instant::now();
        loop {
            if let Some(sample) = self.watch() {
                if sample.is_over() {
                    return Ok(false);
                }
                let is_at_work = sample.jobs.iter().any(|job| job.status == "RUNNING") && sample.progress > 0;
                let may_abandon = !matches!(step.what, Disturbance::Resets { .. } | Disturbance::Pause);
                let is_hurt = may_abandon && sample.abandonments >= ABANDONMENTS_MAX;
                if is_at_work && !is_hurt && since.elapsed() >= step.after {
                    return Ok(true);
                }
            }
            self.not_longer_than(HANG, "the job does not come to where it can be disturbed")?;
        }
    }

    fn wait_for_the_end(&mut self) -> Result<()> {
        while !self.watch().is_some_and(|sample| sample.is_over()) {
            self.not_longer_than(HANG, "the job does not end")?;
        }
        Ok(())
    }

    fn not_longer_than(&self, limit: Duration, what: &str) -> Result<()> {
        if self.begun.elapsed() > limit {
            return self.stuck(what, limit);
        }
        Ok(())
    }

    fn stuck(&self, what: &str, limit: Duration) -> Result<()> {
        let open = self.chaos.book.open(&self.master).join("\n  ");
        bail!("{what} within {} s (job {})\n  {open}", limit.as_secs(), self.master)
    }

    /// One look at the job and the fleet, with everything that must hold at any time. `None` when the
    /// database does not answer.
    fn watch(&mut self) -> Option<Sample> {
        let offences = self.chaos.cast.tend();
        self.chaos.tally.offences.extend(offences);
        pause(LOOK_EVERY);
        let sample = self.chaos.book.sample(&self.master).ok()?;
        self.chaos.tally.samples += 1;
        if sample.crossed > 0 {
            self.offence(format!("{} tasks crossed node groups", sample.crossed));
        }
        for job in &sample.jobs {
            let before = self.versions.insert(job.id, job.version).unwrap_or(0);
            if job.version < before {
                self.offence(format!("the version of job {} fell from {before} to {}", job.id, job.version));
            }
            let Some(owner) = &job.owner else { continue };
            let known = self.owners.entry((job.id, job.version)).or_insert_with(|| owner.clone());
            if known != owner {
                let message = format!("job {} has two owners in version {}", job.id, job.version);
                self.offence(message);
            }
        }
        Some(sample)
    }

    fn offence(&mut self, what: String) {
        println!("    OFFENCE: {what} (job {})", self.master);
        self.chaos.tally.offences.push(what);
    }

    fn disturb(&mut self, step: Step) -> Result<()> {
        println!(
            "chaos:   {:>5.1} s: {:?} in {}",
            self.begun.elapsed().as_secs_f64(),
            step.what,
            group(step)
        );
        match step.what {
            Disturbance::Kill { role, victims, at_once } => self.kill(step, role, victims, at_once),
            Disturbance::StopDatabase { down } => self.stop_database(down),
            Disturbance::Resets { per_mille, seed } => self.reset(per_mille, seed),
            Disturbance::Suspend { role } => self.suspend(step, role),
            Disturbance::Pause => self.pause(),
        }
    }

    /// Members of the role in the step's group, one that holds something first.
    fn victims(&mut self, step: Step, role: Role, count: usize) -> Vec<usize> {
        let mut all = self.chaos.cast.of(role, group(step));
        let first = (step.number % all.len() as u64) as usize;
        all.rotate_left(first);
        if let Some(sample) = self.watch() {
            all.sort_by_key(|at| !sample.holds(self.chaos.cast.members[*at].process.id()));
        }
        all.truncate(count);
        all
    }

    fn kill(&mut self, step: Step, role: Role, victims: usize, at_once: bool) -> Result<()> {
        let victims = self.victims(step, role, victims);
        let before = self.last_known()?;
        let gone: Vec<u32> = victims.iter().map(|at| self.chaos.cast.kill(*at)).collect();
        self.chaos.tally.kills += gone.len() as u64;
        let since = Instant::now();
        if at_once {
            victims.iter().for_each(|at| self.chaos.cast.start_again(*at));
        }
        let from = match role {
            Role::Worker => "killed workers",
            Role::Orchestrator => "killed orchestrators",
        };
        self.recover(from, since, &before, &gone)?;
        if !at_once {
            victims.iter().for_each(|at| self.chaos.cast.start_again(*at));
        }
        Ok(())
    }

    fn stop_database(&mut self, down: u32) -> Result<()> {
        let before = self.last_known()?;
        self.chaos.tally.stops += 1;
        self.chaos.server.stop_immediately();
        let until = Instant::now() + LEASE * down / 1_000;
        while Instant::now() < until {
            self.watch();
        }
        self.chaos.server.start_again();
        self.recover("a database stop", Instant::now(), &before, &[])
    }

    fn reset(&mut self, per_mille: u64, seed: u64) -> Result<()> {
        self.chaos.proxy.reset_commits(per_mille, seed);
        let until = Instant::now() + RESETS_FOR;
        let mut before = self.last_known()?;
        while Instant::now() < until {
            before = self.watch().unwrap_or(before);
        }
        self.chaos.proxy.reset_commits(0, 0);
        self.recover("reset connections", Instant::now(), &before, &[])
    }

    fn suspend(&mut self, step: Step, role: Role) -> Result<()> {
        let victims = self.victims(step, role, 1);
        let before = self.last_known()?;
        let since = Instant::now();
        let mut gone = Vec::new();
        for &at in &victims {
            self.chaos.cast.members[at].process.suspend();
            gone.push(self.chaos.cast.members[at].process.id());
            self.chaos.tally.suspensions += 1;
        }
        let from = match role {
            Role::Worker => "suspended workers",
            Role::Orchestrator => "suspended orchestrators",
        };
        let recovered = self.recover(from, since, &before, &gone);
        // Past its lease in any case: it is to wake up late, and to find its writes refused.
        while since.elapsed() < LEASE + HEARTBEAT {
            self.watch();
        }
        for at in victims {
            self.chaos.cast.members[at].process.go_on();
        }
        recovered
    }

    /// Pauses the job; restarts everything while it rests; resumes it.
    fn pause(&mut self) -> Result<()> {
        if !self.command("pause")? {
            return Ok(());
        }
        self.chaos.tally.pauses += 1;
        let since = Instant::now();
        let mut quiet_after = None;
        let rests = |sample: &Sample| sample.jobs.iter().all(|job| job.status == "PAUSED" || job.is_over());
        loop {
            if let Some(sample) = self.watch() {
                if sample.running() == 0 {
                    quiet_after.get_or_insert(since.elapsed());
                }
                if rests(&sample) {
                    break;
                }
            }
            self.not_longer_than(HANG, "the job does not pause")?;
        }
        let quiet_after = quiet_after.unwrap_or_else(|| since.elapsed());
        self.chaos.tally.slowest_pause = self.chaos.tally.slowest_pause.max(quiet_after);
        if quiet_after > HEARTBEAT + ALLOWANCE {
            self.offence(format!("tasks ran for {:.2} s after the pause", quiet_after.as_secs_f64()));
        }
        self.chaos.tally.kills += self.chaos.cast.members.len() as u64;
        self.chaos.cast.restart_all();
        let still = self.all_registered()?;
        let until = Instant::now() + HEARTBEAT * STILL_FOR;
        let mut now = still.clone();
        while Instant::now() < until {
            now = self.watch().unwrap_or(now);
        }
        let told = |sample: &Sample| (sample.running(), sample.progress, sample.found, sample.claims);
        if told(&now) != told(&still) || !rests(&now) || now.running() > 0 {
            self.offence(format!("a paused job moved: {:?} to {:?}", told(&still), told(&now)));
        }
        if now.is_over() {
            return Ok(());
        }
        if !self.command("resume")? {
            return Ok(());
        }
        self.recover("a pause", Instant::now(), &now, &[])
    }

    /// Tells the job something; false when it ended before it heard.
    fn command(&mut self, verb: &str) -> Result<bool> {
        let answer = self.chaos.direct.run(["job", verb, self.master.as_str()]);
        match answer.code {
            Some(0) => Ok(true),
            _ if self.last_known()?.is_over() => Ok(false),
            _ => bail!("`job {verb}` failed: {answer:?}"),
        }
    }

    fn all_registered(&mut self) -> Result<Sample> {
        let limit = Instant::now() + HANG;
        loop {
            if let Some(sample) = self.watch()
                && self.chaos.cast.members.iter().all(|member| sample.has_registered(member.process.id()))
            {
                return Ok(sample);
            }
            if Instant::now() > limit {
                bail!("a process does not register within {} s", HANG.as_secs());
            }
        }
    }

    fn last_known(&mut self) -> Result<Sample> {
        let limit = Instant::now() + HANG;
        loop {
            if let Some(sample) = self.watch() {
                return Ok(sample);
            }
            if Instant::now() > limit {
                bail!("the database does not answer within {} s", HANG.as_secs());
            }
        }
    }

    /// Waits until nobody who is gone holds anything and the job goes on; it must not take longer than two
    /// leases and the allowance for a slow machine.
    fn recover(&mut self, from: &'static str, since: Instant, before: &Sample, gone: &[u32]) -> Result<()> {
        loop {
            if let Some(sample) = self.watch() {
                let is_free = !gone.iter().any(|process| sample.holds(*process));
                let goes_on = sample.progress != before.progress || sample.claims != before.claims;
                if sample.is_over() || (is_free && goes_on) {
                    break;
                }
            }
            if since.elapsed() > HANG {
                return self.stuck(&format!("no recovery from {from}"), HANG);
            }
        }
        let took = since.elapsed();
        self.chaos.tally.recovered(from, took);
        if took > 2 * LEASE + ALLOWANCE {
            self.offence(format!("recovery from {from} took {:.2} s", took.as_secs_f64()));
        }
        Ok(())
    }

    fn compare(&mut self) -> Result<()> {
        let began = self
            .chaos
            .book
            .lines("SELECT max(started_at - created_at) FROM jobs WHERE id IN (OWN)", &self.master)?;
        let began = Duration::from_millis(began.concat().parse()?);
        self.chaos.tally.slowest_start = self.chaos.tally.slowest_start.max(began);
        if began > WAKE_UP + ALLOWANCE {
            self.offence(format!("the job began after {:.2} s", began.as_secs_f64()));
        }
        let outcome = Outcome::of_fleet(&self.chaos.book, &self.master)?;
        let difference = outcome.difference(&self.chaos.expected);
        for line in &difference.lines {
            println!("    {line}");
        }
        self.chaos.tally.lost += difference.lost;
        self.chaos.tally.duplicated += difference.duplicated;
        if !difference.lines.is_empty() {
            self.offence("the outcome is not that of the undisturbed job".to_owned());
        }
        let offences = self.chaos.book.offences(&self.master)?;
        let mut owners: Vec<_> = self.owners.iter().map(|((job, _), owner)| (*job, owner)).collect();
        owners.dedup();
        self.chaos.tally.takeovers += (owners.len() as u64).saturating_sub(GROUPS.len() as u64);
        offences.into_iter().for_each(|offence| self.offence(offence));
        Ok(())
    }
}

fn group(step: Step) -> &'static str {
    GROUPS[(step.group % GROUPS.len() as u64) as usize]
}
