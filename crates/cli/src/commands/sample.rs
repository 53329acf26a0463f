//! `domesday rules test`: what each rule says of a sample, and why what is not reported is not.
//!
//! The sample is taken as text as it is: nothing is unpacked. It is judged by its own path, as in a scan.

use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use domesday_engine::{Chunk, Explained, RuleSet, Scanner, Scratch, Verdict};
use domesday_model::fingerprint::preview;
use domesday_model::key::escaped;
use domesday_model::{Level, Score};

use super::rules::validator;
use super::{list_format, stdout_style};
use crate::output::{Said, write_said};
use crate::{Exit, rules};

/// Bytes of a sample, at most: all that is said of it is held in memory.
const SAMPLE_MAX: u64 = 4 * 1024 * 1024;

/// What was asked for.
pub struct Sample<'a> {
    pub path: &'a Path,
    /// Ids of rules; empty means all.
    pub only: &'a [String],
    pub rules: &'a [PathBuf],
    pub show_values: bool,
    pub json: bool,
}

pub fn test(sample: &Sample<'_>) -> Result<Exit> {
    let set = Arc::new(rules::load(sample.rules)?);
    if let Some(unknown) = sample.only.iter().find(|id| set.get(id).is_none()) {
        bail!("there is no rule `{unknown}`: `domesday rules list` shows all");
    }
    let is_stdin = sample.path == Path::new("-");
    let bytes = read(sample.path, is_stdin)?;
    let path = if is_stdin { b"" } else { sample.path.as_os_str().as_bytes() };
    let told = Scanner::new(Arc::clone(&set)).explain(&Chunk::whole(&bytes, path), &mut Scratch::new());
    let mut place = Place { at: 0, line: 1, column: 1 };
    let mut said = Vec::new();
    for told in told {
        place.advance(&bytes, told.found.span.start);
        let rule = &set.rules()[told.found.rule as usize];
        if sample.only.is_empty() || sample.only.iter().any(|id| **id == *rule.id) {
            said.push(say(&set, &bytes, &told, place, sample.show_values));
        }
    }
    write_said(&mut std::io::stdout().lock(), &said, list_format(sample.json), stdout_style())?;
    Ok(Exit::Clean)
}

fn read(path: &Path, is_stdin: bool) -> Result<Vec<u8>> {
    let about = || format!("cannot read the sample {}", path.display());
    let mut bytes = Vec::new();
    let read = if is_stdin {
        std::io::stdin().lock().take(SAMPLE_MAX + 1).read_to_end(&mut bytes)
    } else {
        File::open(path).with_context(about)?.take(SAMPLE_MAX + 1).read_to_end(&mut bytes)
    };
    if read.with_context(about)? as u64 > SAMPLE_MAX {
        bail!(
            "the sample has more than {SAMPLE_MAX} bytes: cut it to the part in question, or use `domesday scan`"
        );
    }
    Ok(bytes)
}

/// Where in the sample we are; it is walked once.
#[derive(Clone, Copy)]
struct Place {
    at: usize,
    line: u64,
    /// In code points.
    column: u64,
}

impl Place {
    fn advance(&mut self, bytes: &[u8], to: usize) {
        for &byte in &bytes[self.at..to] {
            if byte == b'\n' {
                (self.line, self.column) = (self.line + 1, 1);
            } else if byte & 0b1100_0000 != 0b1000_0000 {
                self.column += 1;
            }
        }
        self.at = to;
    }
}

fn say(set: &RuleSet, bytes: &[u8], told: &Explained, place: Place, show_values: bool) -> Said {
    let found = &told.found;
    let rule = &set.rules()[found.rule as usize];
    let (verdict, by) = match told.verdict {
        Verdict::Found if found.score >= Score::MEDIUM => ("reported", None),
        Verdict::Found | Verdict::BelowFloor => (Level::Low.as_str(), None),
        Verdict::Ignored => ("ignored", None),
        Verdict::Allowed => ("allowed", None),
        Verdict::Refused { validator: index } => ("refused", Some(validator(&rule.validators[index]))),
        Verdict::Displaced { by } => ("displaced", Some(set.rules()[by as usize].id.to_string())),
    };
    let value = found.decoded.as_ref().map_or(&bytes[found.span.clone()], |decoded| &decoded.value);
    let scored = !found.reasons.0.is_empty() && !matches!(told.verdict, Verdict::Refused { .. });
    Said {
        line: place.line,
        column: place.column,
        start: found.span.start,
        end: found.span.end,
        rule: rule.id.to_string(),
        description: rule.description.clone(),
        category: rule.category.as_str(),
        sensitivity: rule.class().sensitivity.as_str(),
        regulations: rule.class().regulations.iter().map(ToString::to_string).collect(),
        verdict,
        by,
        score: scored.then_some(found.score.0),
        reasons: found.reasons.0.iter().map(ToString::to_string).collect(),
        decoding: found.decoded.as_ref().map(|decoded| decoded.chain.clone()).unwrap_or_default(),
        preview: preview(value),
        value: show_values.then(|| escaped(value)),
    }
}
