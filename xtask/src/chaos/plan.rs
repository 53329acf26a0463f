//! What is done to the fleet, and when: the same seed, the same plan.
//!
//! Every kind of disturbance has its turn before one has a second.

use std::time::Duration;

use super::cast::Role;
use crate::crash::random::Random;

/// Disturbances of one round, at least and at most.
const STEPS_MIN: u64 = 3;
const STEPS_SPAN: u64 = 4;
/// The longest time between a recovery and the next disturbance.
const PAUSE_MAX: Duration = Duration::from_millis(2_500);
/// In thousandths: how many commits break while connections are reset.
const RESETS: [u64; 3] = [50, 150, 400];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disturbance {
    /// SIGKILL to so many of a group at once; started again at once, or once the others have taken over.
    Kill { role: Role, victims: usize, at_once: bool },
    /// `immediate`, and started again after a while: a share of the lease in thousandths.
    StopDatabase { down: u32 },
    /// Connections break in the middle of so many of a thousand commits.
    Resets { per_mille: u64, seed: u64 },
    /// SIGSTOP past the lease, then SIGCONT.
    Suspend { role: Role },
    /// Paused, everything restarted meanwhile, and resumed.
    Pause,
}

#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Since the job began, or the disturbance before it was over.
    pub after: Duration,
    /// Which node group, of those there are.
    pub group: u64,
    /// The first of its processes that is meant.
    pub number: u64,
    pub what: Disturbance,
}

pub struct Planner {
    random: Random,
    deck: Vec<Disturbance>,
}

impl Planner {
    pub fn new(seed: u64) -> Planner {
        Planner { random: Random::new(seed), deck: Vec::new() }
    }

    /// A random id for a master job.
    pub fn job(&mut self) -> String {
        format!("{:016x}{:016x}", self.random.next(), self.random.next())
    }

    /// The disturbances of a round.
    pub fn round(&mut self) -> Vec<Step> {
        let steps = STEPS_MIN + self.random.below(STEPS_SPAN);
        (0..steps).map(|_| self.step()).collect()
    }

    /// One of each, in random order.
    pub fn one_of_each(&mut self) -> Vec<Step> {
        self.deck.clear();
        (0..self.deck().len()).map(|_| self.step()).collect()
    }

    fn step(&mut self) -> Step {
        if self.deck.is_empty() {
            self.deck = self.deck();
        }
        let card = self.random.below(self.deck.len() as u64) as usize;
        Step {
            what: self.deck.swap_remove(card),
            after: PAUSE_MAX.mul_f64(self.random.fraction()),
            group: self.random.next() >> 1,
            number: self.random.next() >> 1,
        }
    }

    fn deck(&mut self) -> Vec<Disturbance> {
        let random = &mut self.random;
        let kill = |role, victims, at_once| Disturbance::Kill { role, victims, at_once };
        vec![
            kill(Role::Worker, 1, random.below(2) == 0),
            kill(Role::Worker, 2, random.below(2) == 0),
            kill(Role::Worker, 3, true),
            kill(Role::Orchestrator, 1, random.below(2) == 0),
            kill(Role::Orchestrator, 2, true),
            Disturbance::StopDatabase { down: 100 + random.below(1_400) as u32 },
            Disturbance::Resets { per_mille: random.pick(&RESETS), seed: random.next() },
            Disturbance::Suspend { role: Role::Worker },
            Disturbance::Suspend { role: Role::Orchestrator },
            Disturbance::Pause,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_plan() {
        let plan = |seed| {
            let mut planner = Planner::new(seed);
            let rounds: Vec<Step> = (0..5).flat_map(|_| planner.round()).collect();
            (format!("{rounds:?}"), planner.job())
        };
        assert_eq!(plan(7), plan(7));
        assert_ne!(plan(7), plan(8));
    }

    #[test]
    fn every_kind_has_its_turn() {
        let mut planner = Planner::new(1);
        let steps = planner.one_of_each();
        for kind in ["Worker", "Orchestrator", "StopDatabase", "Resets", "Suspend", "Pause"] {
            assert!(steps.iter().any(|step| format!("{step:?}").contains(kind)), "{kind}");
        }
        assert!(steps.iter().all(|step| step.after <= PAUSE_MAX));
    }
}
