//! How the next start is to be disturbed.
//!
//! A task that ends its worker again and again is given up on purpose, as a named failure. Kills that hit
//! the same task five times would look like that, so a start after three of them is left alone for longer:
//! the harness is to disturb the work, not to pose as an object that cannot be read.

use std::time::Duration;

use rustix::process::Signal;

use super::process::{Disturbance, Failpoint};
use super::random::Random;

/// Verbs of a job's first start only.
const FIRST_VERBS: &[&str] = &["put_rule_set", "submit", "start_sessions"];
/// Verbs a scan calls a few times each.
const RARE_VERBS: &[&str] = &[
    "register",
    "claim_job",
    "reap_tasks",
    "reap_sessions",
    "execute_unowned_commands",
    "sweep",
    "acknowledge",
    "commit_staged",
    "stage_results",
    "complete_job",
    "mark_reported",
    "release",
];
/// Verbs it calls all the time; `*` is any.
const FREQUENT_VERBS: &[&str] = &[
    "claim_tasks",
    "commit_units",
    "stage_unit",
    "complete_enumeration",
    "fan_out",
    "complete_classifications",
    "*",
];
/// Verbs of a scan that was asked to stop.
const STOP_VERBS: &[&str] = &["give_back", "release"];
const STAGES: &[&str] = &["begin", "before_commit", "after_commit"];

const RARE_NTH_MAX: u64 = 2;
const FREQUENT_NTH_MAX: u64 = 40;
const STOP_NTH_MAX: u64 = 3;
/// Abandonments of a task that cannot be split, after which it is left alone for longer.
pub const PATIENCE_AFTER: u64 = 3;

pub struct Planner {
    random: Random,
    /// How long the undisturbed scan took.
    whole: Duration,
    /// Failpoints still to be tried, in random order: every verb and stage has its turn before one has a
    /// second.
    deck: Vec<Failpoint>,
}

impl Planner {
    pub fn new(seed: u64, whole: Duration) -> Planner {
        Planner { random: Random::new(seed), whole, deck: Vec::new() }
    }

    /// Kills of the next round, if nothing ends it before.
    pub fn kills(&mut self, left: u64) -> u64 {
        (4 + self.random.below(12)).min(left)
    }

    /// `abandonments` is the most that a task that is still open has.
    pub fn next(&mut self, is_first: bool, abandonments: u64) -> Disturbance {
        if abandonments >= PATIENCE_AFTER {
            let after = self.whole.mul_f64(0.6 + 0.6 * self.random.fraction());
            return Disturbance { failpoint: None, after, signal: Signal::KILL };
        }
        match self.random.below(8) {
            0 => {
                // Asked to stop as a user does it, it gives its tasks back; some of the time it is killed
                // while it does.
                let failpoint = (self.random.below(2) == 0).then(|| self.failpoint(STOP_VERBS, STOP_NTH_MAX));
                let after = self.whole.mul_f64(self.random.fraction());
                Disturbance { failpoint, after, signal: Signal::INT }
            }
            1..=4 => {
                let is_new = is_first && self.random.below(4) == 0;
                let failpoint = if is_new { self.failpoint(FIRST_VERBS, 1) } else { self.draw() };
                Disturbance { failpoint: Some(failpoint), after: self.whole, signal: Signal::KILL }
            }
            _ => {
                // Early moments more often: later starts have less left to do.
                let after = self.whole.mul_f64(self.random.fraction().powi(2));
                Disturbance { failpoint: None, after, signal: Signal::KILL }
            }
        }
    }

    fn draw(&mut self) -> Failpoint {
        if self.deck.is_empty() {
            let verbs = RARE_VERBS.iter().map(|verb| (verb, RARE_NTH_MAX));
            for (verb, nth_max) in verbs.chain(FREQUENT_VERBS.iter().map(|verb| (verb, FREQUENT_NTH_MAX))) {
                for stage in STAGES {
                    let nth = self.nth(nth_max);
                    self.deck.push(Failpoint { verb, stage, nth });
                }
            }
        }
        let index = self.random.below(self.deck.len() as u64) as usize;
        self.deck.swap_remove(index)
    }

    fn failpoint(&mut self, verbs: &[&'static str], nth_max: u64) -> Failpoint {
        Failpoint { verb: self.random.pick(verbs), stage: self.random.pick(STAGES), nth: self.nth(nth_max) }
    }

    /// Small ones more often, for the same reason as early moments.
    fn nth(&mut self, max: u64) -> u64 {
        1 + (max as f64 * self.random.fraction().powi(2)) as u64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_verb_and_stage_has_its_turn() {
        let mut planner = Planner::new(3, Duration::from_secs(1));
        let cards = (RARE_VERBS.len() + FREQUENT_VERBS.len()) * STAGES.len();
        let drawn: Vec<Failpoint> = (0..cards).map(|_| planner.draw()).collect();
        let places: BTreeSet<_> = drawn.iter().map(|card| (card.verb, card.stage)).collect();
        assert_eq!(places.len(), cards);
        assert!(drawn.iter().all(|card| (1..=FREQUENT_NTH_MAX).contains(&card.nth)));
    }

    #[test]
    fn a_task_that_was_hit_too_often_is_left_alone_for_longer() {
        let mut planner = Planner::new(3, Duration::from_secs(10));
        for _ in 0..100 {
            let patient = planner.next(false, PATIENCE_AFTER);
            assert!(patient.failpoint.is_none() && patient.after >= Duration::from_secs(6));
        }
    }
}
