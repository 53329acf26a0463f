//! The processes of the fleet: two node groups, and in each two orchestrators and three workers.
//!
//! They are looked after as a service manager would: one that ended is started again. Some reach the database
//! by way of the proxy, the others directly.

use std::fmt;

use domesday_testkit::fleet::{Fleet, Process};

pub const GROUPS: [&str; 2] = ["eu", "us"];
const ORCHESTRATORS: usize = 2;
const WORKERS: usize = 3;
/// A single-threaded worker: six of them share two processors.
const WORKER_OPTIONS: &[&str] = &["--slots", "1", "--log", "info", "--log-format", "json"];
const ORCHESTRATOR_OPTIONS: &[&str] = &["--log", "info", "--log-format", "json"];
/// What a process says when it met a mistake of its own.
const PANICKED: &str = "internal error at";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    Orchestrator,
    Worker,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Orchestrator => "orchestrator",
            Role::Worker => "worker",
        })
    }
}

pub struct Member {
    pub role: Role,
    pub group: &'static str,
    pub process: Process,
    number: usize,
    /// Killed, and not to be started again yet.
    is_down: bool,
}

pub struct Cast<'f> {
    /// Those that reach the database directly, and those that do by way of the proxy.
    ways: [&'f Fleet; 2],
    pub members: Vec<Member>,
    pub starts: u64,
    /// Processes that ended without a kill from outside, such as one that found its lease lost.
    pub ended: u64,
}

impl<'f> Cast<'f> {
    pub fn start(direct: &'f Fleet, proxied: &'f Fleet) -> Cast<'f> {
        let mut cast = Cast { ways: [direct, proxied], members: Vec::new(), starts: 0, ended: 0 };
        for group in GROUPS {
            for (role, count) in [(Role::Orchestrator, ORCHESTRATORS), (Role::Worker, WORKERS)] {
                for number in 0..count {
                    let process = cast.spawn(role, group, number);
                    cast.members.push(Member { role, group, process, number, is_down: false });
                }
            }
        }
        cast
    }

    fn spawn(&mut self, role: Role, group: &str, number: usize) -> Process {
        self.starts += 1;
        let name = format!("{group}-{role}-{number}");
        // The first of each role by way of the proxy, and of the workers the second, too.
        let fleet = self.ways[usize::from(number == 0 || (role == Role::Worker && number == 1))];
        match role {
            Role::Orchestrator => fleet.orchestrator(&name, group, ORCHESTRATOR_OPTIONS),
            Role::Worker => fleet.worker(&name, group, WORKER_OPTIONS),
        }
    }

    /// Ends a member at once; it stays down until it is started again. Its process id.
    pub fn kill(&mut self, at: usize) -> u32 {
        let member = &mut self.members[at];
        member.process.kill();
        member.is_down = true;
        member.process.id()
    }

    /// Starts a member that is gone.
    pub fn start_again(&mut self, at: usize) {
        let Member { role, group, number, .. } = self.members[at];
        self.members[at].process = self.spawn(role, group, number);
        self.members[at].is_down = false;
    }

    /// Starts again what ended by itself; what must not have happened on the way.
    pub fn tend(&mut self) -> Vec<String> {
        let mut offences = Vec::new();
        for at in (0..self.members.len()).filter(|at| !self.members[*at].is_down).collect::<Vec<_>>() {
            let Some(how) = self.members[at].process.ended_by_itself() else { continue };
            self.ended += 1;
            if how.contains(PANICKED) || how.contains("signal") {
                offences.push(how);
            }
            self.start_again(at);
        }
        offences
    }

    pub fn restart_all(&mut self) {
        for member in &mut self.members {
            member.process.kill();
        }
        for at in 0..self.members.len() {
            self.start_again(at);
        }
    }

    /// Where the members of a role in a group are.
    pub fn of(&self, role: Role, group: &str) -> Vec<usize> {
        let is_one = |at: &usize| self.members[*at].role == role && self.members[*at].group == group;
        (0..self.members.len()).filter(is_one).collect()
    }
}
