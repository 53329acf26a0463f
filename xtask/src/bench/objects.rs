//! `bench objects`: scans of 1, 10 and 100 million objects of a source that makes them up, each in a process of its own,
//! and the curve of rate and memory on the way.

use anyhow::{Result, bail};

use super::table::Target::{AtLeast, AtMost};
use super::table::named_value;
use super::{Rows, Setup};

pub const ABOUT: &str = "`cargo run --release -p domesday-control --example objects -- <folder> <objects>`: keys listed in \
    pages of 1,000 into an embedded book, fanned out, read (46 bytes each, from memory), matched and completed. At each \
    tenth of the way: the rate since the tenth before, and the memory at that moment. The last tenth is compared with \
    the second, in which everything has been used once. `--millions 100` for all three.";

const OBJECTS: &[&str] = &["--package", "domesday-control", "--example", "objects"];
/// Million objects.
const SIZES: [u64; 3] = [1, 10, 100];
/// What the last tenth's memory may be, and its rate is to be, of the second's.
const MEMORY_MAX: f64 = 1.2;
const RATE_MIN: f64 = 0.8;

pub fn run(setup: &Setup, rows: &mut Rows) -> Result<()> {
    for millions in SIZES.into_iter().filter(|millions| *millions <= setup.options.millions) {
        let state = setup.folder.join("state");
        if state.exists() {
            std::fs::remove_dir_all(&state)?;
        }
        let (folder, count) = (state.to_string_lossy(), (millions * 1_000_000).to_string());
        let printed = setup.example(OBJECTS, &[&folder, &count])?;
        tell(millions, &printed, rows)?;
        // Of a hundred million it takes gigabytes.
        std::fs::remove_dir_all(&state)?;
    }
    Ok(())
}

fn tell(millions: u64, printed: &str, rows: &mut Rows) -> Result<()> {
    let (mut rates, mut memories) = (Vec::new(), Vec::new());
    for line in printed.lines() {
        let Some((name, value, unit)) = named_value(line) else { bail!("the example says `{line}`") };
        let at = name.strip_prefix("at_").and_then(|rest| rest.split_once('_'));
        match at {
            Some((_, "rate")) => rates.push(value),
            Some((_, "memory")) => memories.push(value),
            _ => {}
        }
        let name = match at {
            Some((done, what)) => {
                format!("at {:.2} million, {what}", done.parse::<f64>().unwrap_or(0.0) / 1e6)
            }
            None => name.replace('_', " "),
        };
        rows.add(format!("{millions} million objects: {name}"), value, unit);
    }
    if let (Some(rate), Some(memory)) = (growth(&rates), growth(&memories)) {
        rows.judge(format!("{millions} million objects: last rate"), rate, "times", AtLeast(RATE_MIN));
        rows.judge(format!("{millions} million objects: last memory"), memory, "times", AtMost(MEMORY_MAX));
    }
    Ok(())
}

/// The last figure, of the second.
fn growth(figures: &[f64]) -> Option<f64> {
    match figures {
        [_, second, .., last] => Some(last / second),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_tenth_is_held_against_the_second() {
        assert_eq!(growth(&[9.0, 10.0, 11.0, 12.0]), Some(1.2));
        assert_eq!(growth(&[9.0, 10.0]), None);
        let mut rows = Rows::default();
        let printed = "at_100000_rate 9 objects/s\nat_200500_rate 10 objects/s\nat_300000_rate 12 objects/s\n\
            at_100000_memory 5 MiB\nat_200500_memory 10 MiB\nat_300000_memory 30 MiB\nbook_per_million 70 MB\n";
        tell(1, printed, &mut rows).unwrap();
        let section = rows.section("objects", "");
        for line in [
            "| 1 million objects: at 0.20 million, memory | 10 MiB |",
            "| 1 million objects: book per million | 70 MB |",
            "| 1 million objects: last rate | 1.20 times | ≥ 0.800 | yes |",
            "| 1 million objects: last memory | 3 times | ≤ 1.20 | **no** |",
        ] {
            assert!(section.contains(line), "{line} is not in\n{section}");
        }
        assert!(tell(1, "it failed", &mut rows).is_err());
    }
}
