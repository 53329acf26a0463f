//! Failpoints for the crash harness: `DOMESDAY_FAILPOINT=verb:stage:n` ends the process with SIGKILL the
//! nth time the store's writer comes to that stage of that verb (`*` is any verb).

use domesday_store::sqlite::{Fault, Stage, WriteHook};
use rustix::process::{Signal, getpid, kill_process};

pub struct Failpoint {
    verb: String,
    stage: Stage,
    left: u64,
}

impl Failpoint {
    pub fn from_environment() -> Option<Box<dyn WriteHook>> {
        let text = std::env::var("DOMESDAY_FAILPOINT").ok()?;
        let mut parts = text.split(':');
        let (verb, stage, left) = (parts.next()?, parts.next()?, parts.next()?.parse().ok()?);
        let stage = match stage {
            "begin" => Stage::Begin,
            "before_commit" => Stage::BeforeCommit,
            "after_commit" => Stage::AfterCommit,
            _ => return None,
        };
        Some(Box::new(Failpoint { verb: verb.to_owned(), stage, left }))
    }
}

impl WriteHook for Failpoint {
    fn at(&mut self, verb: &'static str, stage: Stage) -> Fault {
        if stage == self.stage && (self.verb == "*" || self.verb == verb) {
            self.left = self.left.saturating_sub(1);
            if self.left == 0 {
                // Says where it was, for the harness's count, and is gone.
                eprintln!("failpoint {verb}");
                let _ = kill_process(getpid(), Signal::KILL);
            }
        }
        Fault::None
    }
}
