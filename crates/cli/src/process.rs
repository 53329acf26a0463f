//! What this process lets others see of its memory, which holds what is read, and keys: nothing.
//!
//! A process that aborts leaves no core file, whatever the shell or the service manager allowed. One that is not
//! dumpable is not handed to a program that collects cores either (`core_pattern` with `|`), and its memory, environment
//! and open files are closed to other processes of the same user, debuggers included. Root still sees all.

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

use crate::say;

/// Done before anything is read. What the system refuses is told: it may be what a sandbox was made to do.
pub fn keep_memory_private() {
    if let Err(error) = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }) {
        say(format_args!("warning: core files cannot be turned off: {error}"));
    }
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        say(format_args!("warning: this process's memory cannot be closed to others: {error}"));
    }
}
