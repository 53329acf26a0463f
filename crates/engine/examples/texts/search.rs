//! Looks for texts that are slow: begins with those that are known, what every rule is triggered by and what it is found
//! by, keeps the slowest, and changes those, piece by piece, as long as there is time.
//!
//! It judges by time, so that two runs with one seed do not end alike; what it prints is a description from which the
//! same text comes each time ([`Unit`]).

use std::time::{Duration, Instant};

use domesday_engine::{RuleSet, Trigger};

use super::texts::unit::{Class, Piece, Random, Unit};
use super::{Engine, texts};

/// Bytes of a text that is tried.
const TRIAL_LEN: usize = 24 << 10;
/// And of one that is measured.
const MEASURED_LEN: usize = 256 << 10;
/// Runs of either; the fastest counts.
const TRIAL_RUNS: usize = 3;
/// Texts that are kept to be changed.
const POOL: usize = 48;
/// Texts that are told of.
const TOLD: usize = 10;
/// Texts that are measured for that: the slowest in a short trial may not be so in a longer one.
const MEASURED: usize = 2 * TOLD;
/// Bytes of a unit, at most, so that it can be read.
const UNIT_MAX: usize = 200;
/// Of the time, the part in which rules' own texts are tried.
const FIRST_PART: u32 = 2;

/// What pieces are made of.
const CLASSES: [Class; 5] = [Class::Digits, Class::Hex, Class::Letters, Class::Base64, Class::Bytes];

/// What stands between values.
const GLUE: [&str; 16] =
    [" ", "\n", ",", "=", ":", "\"", "'", "@", ".", "-", "/", "\\", "{", "%", "password=", "key: "];

pub fn run(engine: &mut Engine, time: Duration, seed: u64, sources: f64) {
    let (begun, mut random) = (Instant::now(), Random::new(seed));
    let mut fragments = fragments(engine.scanner.rules());
    shuffle(&mut fragments, &mut random);
    let mut pool = Pool::default();
    texts::all().into_iter().for_each(|(_, unit)| pool.try_out(engine, unit));
    for fragment in &fragments {
        if begun.elapsed() > time / FIRST_PART {
            break;
        }
        pool.try_out(engine, Unit(vec![fragment.clone()]));
        pool.try_out(engine, Unit(vec![fragment.clone(), Piece::text("\n")]));
    }
    while begun.elapsed() < time && !pool.0.is_empty() {
        let parent = pool.0[random.below(pool.0.len())].1.clone();
        let child = changed(parent, &fragments, &mut random);
        pool.try_out(engine, child);
    }
    let rate = |engine: &mut Engine, unit: &Unit| engine.rate(&unit.fill(MEASURED_LEN), TRIAL_RUNS);
    let mut found: Vec<(f64, Unit)> =
        pool.0.into_iter().take(MEASURED).map(|(_, unit)| (rate(engine, &unit), unit)).collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    println!("search_tried {} texts", pool.1);
    for (rate, unit) in found.into_iter().take(TOLD) {
        println!("found_factor {:.2} times: {:.1} MB/s with {unit}", sources / rate, rate / 1e6);
    }
}

/// The slowest texts so far, the slowest first, and how many were tried.
#[derive(Default)]
struct Pool(Vec<(f64, Unit)>, u64);

impl Pool {
    fn try_out(&mut self, engine: &mut Engine, unit: Unit) {
        if unit.len() == 0 || unit.len() > UNIT_MAX || self.0.iter().any(|(_, known)| *known == unit) {
            return;
        }
        self.1 += 1;
        let rate = engine.rate(&unit.fill(TRIAL_LEN), TRIAL_RUNS);
        let at = self.0.partition_point(|(known, _)| *known < rate);
        if at < POOL {
            self.0.insert(at, (rate, unit));
            self.0.truncate(POOL);
        }
    }
}

/// What rules are triggered by, and what they are found by: as it is, and other ones each time.
fn fragments(rules: &RuleSet) -> Vec<Piece> {
    let mut fragments = Vec::new();
    for rule in rules.rules() {
        if let Trigger::Literals(literals) = &rule.trigger {
            fragments.extend(literals.iter().map(|literal| Piece::text(&literal.bytes)));
        }
        for example in rule.positive.iter().filter(|example| example.len() <= UNIT_MAX) {
            fragments.push(Piece::text(example));
            fragments.push(Piece::Varied(example.as_bytes().to_vec(), example.len() / 2));
        }
    }
    fragments
}

fn shuffle(pieces: &mut [Piece], random: &mut Random) {
    for at in (1..pieces.len()).rev() {
        pieces.swap(at, random.below(at + 1));
    }
}

/// A unit with one or a few things changed.
fn changed(mut unit: Unit, fragments: &[Piece], random: &mut Random) -> Unit {
    for _ in 0..=random.below(3) {
        let at = random.below(unit.0.len() + 1);
        let new = match random.below(4) {
            0 => Piece::Any(CLASSES[random.below(CLASSES.len())], 1 << random.below(6)),
            1 => Piece::text(GLUE[random.below(GLUE.len())]),
            _ => fragments[random.below(fragments.len())].clone(),
        };
        match random.below(5) {
            0 if unit.0.len() > 1 => drop(unit.0.remove(at.min(unit.0.len() - 1))),
            1 if at < unit.0.len() => unit.0[at] = new,
            2 if at < unit.0.len() => alter(&mut unit.0[at], random),
            _ => unit.0.insert(at, new),
        }
    }
    unit
}

/// Another form of the same piece.
fn alter(piece: &mut Piece, random: &mut Random) {
    *piece = match std::mem::replace(piece, Piece::Fixed(Vec::new())) {
        Piece::Any(class, len) => Piece::Any(class, (len * (1 + random.below(3))).clamp(1, 64)),
        Piece::OneOf(texts) => Piece::text(texts[random.below(texts.len())]),
        Piece::Fixed(bytes) | Piece::Varied(bytes, _) | Piece::Numbered(bytes) => match random.below(3) {
            0 => {
                let from = random.below(bytes.len() + 1);
                Piece::Varied(bytes, from)
            }
            1 => {
                let keep = random.below(bytes.len() + 1);
                Piece::Fixed(bytes[..keep].to_vec())
            }
            _ => {
                let from = random.below(bytes.len() + 1);
                Piece::Fixed(bytes[from..].to_vec())
            }
        },
    };
}
