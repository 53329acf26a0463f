//! What single steps of the scan core cost, and what they cost when two threads take them at once. Lines are
//! `name value unit`. What all threads share is told as `held_…`: how long nobody else can have it, per step.
//!
//! `cargo run --release -p domesday-scheduler --features micro --example micro`

use domesday_scheduler::micro::{Rig, Step};

/// Threads that get into each other's way.
const THREADS: usize = 2;

const STEPS: [(&str, Step); 6] = [
    ("task_dispatch", Step::Dispatch),
    ("ObjectRef_clone", Step::CloneObject),
    ("fetch_spawn", Step::SpawnFetch),
    ("enqueue", Step::Enqueue),
    ("frontier_acquire", Step::Acquire),
    ("permit_drop", Step::DropPermit),
];

const SHARED: [(&str, Step); 4] = [
    ("counters", Step::Count),
    ("frontier", Step::Frontier),
    ("injector", Step::Injector),
    ("buffers", Step::Buffers),
];

fn main() {
    let (mut alone, mut together) = match (Rig::new(1), Rig::new(THREADS)) {
        (Ok(alone), Ok(together)) => (alone, together),
        (Err(errors), _) | (_, Err(errors)) => {
            eprintln!("{errors}");
            std::process::exit(1);
        }
    };
    for (name, step) in STEPS {
        println!("{name} {:.2} ns", alone.nanos(step));
    }
    for (name, step) in STEPS {
        println!("{name}_with_{THREADS}_threads {:.2} ns", together.nanos(step));
    }
    for (name, step) in SHARED {
        // While threads take turns, each waits for the others: one of them has it for its part of the time.
        println!("held_{name} {:.2} ns", together.nanos(step) / THREADS as f64);
    }
}
