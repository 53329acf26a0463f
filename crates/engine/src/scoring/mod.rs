//! From a confirmed match to a score with its reasons. It owns the weights; every decision reads only
//! bytes near the value. Low scores are returned, too: what to show is the caller's choice.

mod context;
mod ignore;
mod value;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use domesday_model::{Category, Score};

use crate::rules::{Rule, Validator};
use crate::validators::Verdict;

pub use ignore::{IGNORE_LOOK, is_ignored};

/// What the first proof adds, such as a valid check digit.
const PROOF_BOOST: i32 = 20;
/// What each further proof adds.
const FURTHER_PROOF_BOOST: i32 = 10;
/// What a random-looking value adds.
const ENTROPY_BOOST: i32 = 5;
/// The highest score of a secret that looks made up for documentation.
const PLACEHOLDER_CAP: i32 = 30;
/// What a match in a file of tests or samples loses.
const SAMPLE_FILE_PENALTY: i32 = 10;
/// The highest score of a rule that requires context words and has none near.
const NO_CONTEXT_CAP: i32 = 40;

/// One reason for a score.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Evidence {
    /// A validator's proof, in its words.
    Proof(&'static str),
    /// A context word near.
    Keyword(Arc<str>),
    HighEntropy,
    NoKeyword,
    Placeholder,
    SampleFile,
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Evidence::Proof(reason) => f.write_str(reason),
            Evidence::Keyword(word) => write!(f, "keyword `{word}` near"),
            Evidence::HighEntropy => f.write_str("high entropy"),
            Evidence::NoKeyword => f.write_str("no keyword near"),
            Evidence::Placeholder => f.write_str("looks like a placeholder"),
            Evidence::SampleFile => f.write_str("in a test or sample file"),
        }
    }
}

/// The reasons for a score, best first; shown with `; ` between.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Evidences(pub Vec<Evidence>);

impl fmt::Display for Evidences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("format matches");
        }
        for (i, evidence) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("; ")?;
            }
            evidence.fmt(f)?;
        }
        Ok(())
    }
}

/// Whether the path of an object is one of tests, samples or documentation.
pub fn is_sample_path(path: &[u8]) -> bool {
    const SAMPLES: &[&str] = &[
        "test", "tests", "testdata", "testing", "spec", "specs", "fixture", "fixtures", "example",
        "examples", "sample", "samples", "mock", "mocks",
    ];
    path.split(|&byte| byte == b'/' || byte == b'\\')
        .any(|part| SAMPLES.iter().any(|sample| part.eq_ignore_ascii_case(sample.as_bytes())))
}

/// The highest score that any value can have.
pub fn highest(rule: &Rule) -> Score {
    let checks =
        rule.validators.iter().filter(|validator| matches!(validator, Validator::Named { .. })).count()
            as i32;
    let proofs = if checks > 0 { PROOF_BOOST + (checks - 1) * FURTHER_PROOF_BOOST } else { 0 };
    let boost = rule.context.as_ref().map_or(0, |context| i32::from(context.boost));
    let score = i32::from(rule.score.0) + proofs + ENTROPY_BOOST + boost;
    Score(score.min(i32::from(Score::MAX.0)) as u8)
}

/// The score of the value at `span` and why, or `None` if a validator refuses it or it is below `floor`.
pub fn judge(
    rule: &Rule,
    bytes: &[u8],
    span: Range<usize>,
    sample_path: bool,
    floor: Score,
) -> Option<(Score, Evidences)> {
    let value = &bytes[span.clone()];
    let mut reasons = Vec::new();
    let mut score = i32::from(rule.score.0);
    for validator in &rule.validators {
        match verdict(validator, value) {
            Verdict::Fail => return None,
            Verdict::Pass => {}
            Verdict::Proof(reason) => {
                score += if reasons.is_empty() { PROOF_BOOST } else { FURTHER_PROOF_BOOST };
                let proof = Evidence::Proof(reason);
                if !reasons.contains(&proof) {
                    reasons.push(proof);
                }
            }
        }
    }
    if rule.validators.iter().any(|validator| matches!(validator, Validator::Entropy { .. })) {
        score += ENTROPY_BOOST;
        reasons.push(Evidence::HighEntropy);
    }
    let floor = i32::from(floor.0);
    let boost = rule.context.as_ref().map_or(0, |context| i32::from(context.boost));
    if score + boost < floor {
        return None;
    }
    let mut cap = i32::from(Score::MAX.0);
    if let Some(context) = &rule.context {
        match context::find(bytes, span, context) {
            Some(word) => {
                score += i32::from(context.boost);
                reasons.push(Evidence::Keyword(word));
            }
            None if context.required => {
                cap = NO_CONTEXT_CAP;
                reasons.push(Evidence::NoKeyword);
            }
            None => {}
        }
    }
    if score.min(cap) < floor {
        return None;
    }
    if rule.category == Category::Secret && value::is_placeholder(value) {
        cap = cap.min(PLACEHOLDER_CAP);
        reasons.push(Evidence::Placeholder);
    }
    if sample_path {
        score -= SAMPLE_FILE_PENALTY;
        reasons.push(Evidence::SampleFile);
    }
    let score = score.clamp(0, cap);
    if score < floor {
        return None;
    }
    reasons.sort();
    Some((Score(score as u8), Evidences(reasons)))
}

fn verdict(validator: &Validator, value: &[u8]) -> Verdict {
    let pass_if = |passed| if passed { Verdict::Pass } else { Verdict::Fail };
    match validator {
        Validator::Named { check, .. } => check(value),
        Validator::Entropy { min } => pass_if(value::entropy(value) >= *min),
        Validator::Stopwords { words } => pass_if(!value::is_stopped(value, words)),
        Validator::Distinct { min } => pass_if(value::distinct(value) >= *min),
    }
}

#[cfg(test)]
mod tests;
