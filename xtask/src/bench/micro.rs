//! `bench micro`: what single steps of the scan core cost, beside what the design allows; and with how many threads
//! each thing that all of them share would have no time left.
//!
//! That is arithmetic, not a measurement: a thing is held for so long per object, a thread finishes so many objects a
//! second, and when threads together want it for a second per second, more threads gain nothing. Per object it is taken
//! to be asked for once, which for the injector and the pool is far more often than in fact.

use anyhow::{Context, Result, bail};

use super::store::Book;
use super::table::Target::AtMost;
use super::table::named_value;
use super::tree::scan_anew;
use super::{Rows, Setup};

pub const ABOUT: &str = "`cargo run --release -p domesday-scheduler --features micro --example micro`: medians of batches on \
    the real queues, frontier and pool. Then, from the time that a shared thing is held per object (measured with two \
    threads that want it at once; for the book, its time on processors in `domesday scan <tree> --jobs 1 --timings`) and \
    the objects that one thread of that scan finishes per second: with how many threads it would be held all the time, \
    and how much of the time with 16, 64 and 128. Processors of several sockets hand a cache line over several times \
    more slowly than those measured here.";

const MICRO: &[&str] = &["--package", "domesday-scheduler", "--features", "micro", "--example", "micro"];
/// What the design allows, in nanoseconds.
const DESIGN: [(&str, f64); 6] = [
    ("task_dispatch", 5.0),
    ("ObjectRef_clone", 10.0),
    ("fetch_spawn", 20.0),
    ("enqueue", 50.0),
    ("frontier_acquire", 5.0),
    ("permit_drop", 10.0),
];
/// For how many threads it is told how busy a shared thing is.
const THREADS: [u32; 3] = [16, 64, 128];

pub fn run(setup: &Setup, rows: &mut Rows) -> Result<()> {
    let printed = setup.example(MICRO, &[])?;
    let mut held = Vec::new();
    for line in printed.lines() {
        let Some((name, value, unit)) = named_value(line) else { bail!("the example says `{line}`") };
        let shown = name.replace('_', " ");
        if let Some(shared) = name.strip_prefix("held_") {
            held.push((shared.to_owned(), value));
        }
        match DESIGN.iter().find(|(known, _)| *known == name) {
            Some((_, limit)) => rows.judge(shown, value, unit, AtMost(*limit)),
            None => rows.add(shown, value, unit),
        }
    }
    let (binary, tree) = (setup.binary()?, setup.tree()?);
    let ran = scan_anew(&setup.folder, binary, tree, &["--jobs", "1", "--timings"])?;
    let book = Book::read(&ran.errors).with_context(|| format!("--timings says `{}`", ran.errors))?;
    let per_second = book.objects / ran.wall.as_secs_f64();
    rows.add("objects of one thread", per_second, "objects/s");
    held.push(("book".to_owned(), 1e9 * book.seconds / book.objects));
    for (shared, nanos) in held {
        let until = saturation(nanos, per_second);
        rows.add(format!("{shared}, held all the time with"), until, "threads");
        for threads in THREADS {
            let share = 100.0 * f64::from(threads) / until;
            rows.add(format!("{shared}, held with {threads} threads"), share, "%");
        }
    }
    Ok(())
}

/// With how many threads a thing that each object holds for so long is held all the time.
fn saturation(held_nanos: f64, objects_per_second: f64) -> f64 {
    1e9 / (held_nanos * objects_per_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_longer_is_full_sooner() {
        assert_eq!(saturation(1_000.0, 10_000.0), 100.0);
        assert_eq!(saturation(2_000.0, 10_000.0), 50.0);
        assert_eq!(saturation(2_000.0, 20_000.0), 25.0);
    }
}
