//! From a confirmed match to a score with its reasons. It owns the weights; every decision reads only
//! bytes near the value. Low scores are returned, too: what to show is the caller's choice.

mod context;
mod documented;
mod facts;
mod ignore;
mod name;
mod nearby;
mod path;
mod value;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use domesday_model::{Category, Score};

use crate::rules::{Context, Rule, Validator};
use crate::validators::Verdict;

pub use context::{Memo, Memos, Starts, is_unspaced};
pub use facts::Facts;
pub use ignore::{IGNORE_LOOK, Unmarked, is_ignored};
pub use nearby::{Nearby, WordIndex};
pub use path::PathKind;

/// What the first proof adds, such as a valid check digit.
const PROOF_BOOST: i32 = 20;
/// What each further proof adds.
const FURTHER_PROOF_BOOST: i32 = 10;
/// What a random-looking value adds.
const ENTROPY_BOOST: i32 = 5;
/// The highest score of a secret that looks made up for documentation.
const PLACEHOLDER_CAP: i32 = 30;
/// What each doubt of a validator takes off, such as a wrong checksum.
const DOUBT_PENALTY: i32 = 20;
/// What a secret loses in which letters or digits count up: one of a form of its own stays in sight.
const COUNTING_PENALTY: i32 = 25;
/// What a password loses that a URL gives to a host of documentation.
const RESERVED_HOST_PENALTY: i32 = 20;
/// The tag of rules that go by the name of a value alone.
const GENERIC: &str = "generic";
/// What a match in a file of tests or samples loses.
const SAMPLE_FILE_PENALTY: i32 = 10;
/// The highest score of a rule whose matches are everywhere in source code, there.
const CODE_CAP: Score = Score(40);
/// The highest score of a rule that requires context words and has none near.
pub const NO_CONTEXT_MAX: Score = Score(40);

/// What speaks for or against a match.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Evidence {
    /// The rule's regex: the base of the score.
    Format,
    /// A validator's proof, in its words.
    Proof(&'static str),
    /// A validator's proof, in words made of what it read.
    Read(Arc<str>),
    /// What a validator read, which proves nothing.
    Noted(Arc<str>),
    /// A context word near.
    Keyword(Arc<str>),
    HighEntropy,
    /// The encodings it was read through, outermost first.
    Decoded(Arc<str>),
    NoKeyword,
    /// A validator's doubt, in its words.
    Doubt(&'static str),
    Placeholder,
    SampleFile,
    SourceCode,
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Evidence::Format => f.write_str("format matches"),
            Evidence::Proof(reason) | Evidence::Doubt(reason) => f.write_str(reason),
            Evidence::Read(words) | Evidence::Noted(words) => f.write_str(words),
            Evidence::Keyword(word) => write!(f, "keyword `{word}` near"),
            Evidence::HighEntropy => f.write_str("high entropy"),
            Evidence::Decoded(chain) => write!(f, "decoded from {chain}"),
            Evidence::NoKeyword => f.write_str("no keyword near"),
            Evidence::Placeholder => f.write_str("looks like a placeholder"),
            Evidence::SampleFile => f.write_str("in a test or sample file"),
            Evidence::SourceCode => f.write_str("in source code"),
        }
    }
}

/// What an evidence does to a score.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Weight {
    Base(u8),
    Adds(i32),
    /// The score is no higher, whatever else there is.
    Caps(i32),
    Nothing,
}

/// One reason for a score.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Weighed {
    pub evidence: Evidence,
    pub weight: Weight,
}

impl fmt::Display for Weighed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.weight {
            Weight::Base(score) => write!(f, "{score} ")?,
            Weight::Adds(points) => write!(f, "{points:+} ")?,
            Weight::Caps(score) => write!(f, "at most {score}: ")?,
            Weight::Nothing => {}
        }
        self.evidence.fmt(f)
    }
}

/// The reasons for a score, best first; shown with `; ` between.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Evidences(pub Vec<Weighed>);

impl Evidences {
    pub(crate) fn push(&mut self, evidence: Evidence, weight: Weight) {
        self.0.push(Weighed { evidence, weight });
    }

    /// Whether a validator proved the value.
    pub fn has_proof(&self) -> bool {
        self.0.iter().any(|told| matches!(told.evidence, Evidence::Proof(_) | Evidence::Read(_)))
    }

    /// Adds points; what is said twice is told once, with all its points.
    fn add(&mut self, evidence: Evidence, points: i32) {
        match self.0.iter_mut().find(|told| told.evidence == evidence) {
            Some(Weighed { weight: Weight::Adds(told), .. }) => *told += points,
            _ => self.push(evidence, Weight::Adds(points)),
        }
    }
}

impl fmt::Display for Evidences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, reason) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("; ")?;
            }
            reason.fmt(f)?;
        }
        Ok(())
    }
}

/// Whether one of the words stands near the value at `span`.
pub fn has_context(bytes: &[u8], span: Range<usize>, context: &Context) -> bool {
    context::find(bytes, span, context).is_some()
}

/// The highest score that any value can have in an object of that kind.
pub fn highest(rule: &Rule, path: PathKind) -> Score {
    let boost = rule.context.as_ref().map_or(0, |context| i32::from(context.boost));
    let score = highest_alone(rule) + boost;
    Score(score.min(i32::from(highest_in(rule, path).0)) as u8)
}

/// The same without a context word near, in any object.
fn highest_alone(rule: &Rule) -> i32 {
    let checks =
        rule.validators.iter().filter(|validator| matches!(validator, Validator::Named { .. })).count()
            as i32;
    let proofs = if checks > 0 { PROOF_BOOST + (checks - 1) * FURTHER_PROOF_BOOST } else { 0 };
    i32::from(rule.score.0) + proofs + ENTROPY_BOOST
}

/// Whether no value of the rule has that score unless one of its context words is near.
pub fn needs_word(rule: &Rule, floor: Score) -> bool {
    rule.context.as_ref().is_some_and(|context| {
        highest_alone(rule) < i32::from(floor.0) || (context.required && NO_CONTEXT_MAX < floor)
    })
}

fn highest_in(rule: &Rule, path: PathKind) -> Score {
    if rule.low_in_code && path.code { CODE_CAP } else { Score::MAX }
}

/// The score of the value at `span` and why, or `None` if a validator refuses it or it is below `floor`. The memo is of
/// the rule and the text, the facts are of the text, and values are judged in order.
pub fn judge<'r>(
    rule: &'r Rule,
    bytes: &[u8],
    span: Range<usize>,
    path: PathKind,
    floor: Score,
    memo: &mut Memo,
    facts: &mut Facts<'r>,
) -> Option<(Score, Evidences)> {
    let value = &bytes[span.clone()];
    facts.begin(&span);
    let mut reasons = Evidences::default();
    let mut score = i32::from(rule.score.0);
    let mut cap = i32::from(highest_in(rule, path).0);
    let floor = i32::from(floor.0);
    for validator in &rule.validators {
        match verdict(validator, value, rule.category, facts) {
            // A made-up secret is still shown to whoever asks for doubtful ones.
            Verdict::Fail if rule.category == Category::Secret && validator.tells_made_up() => {
                cap = PLACEHOLDER_CAP;
            }
            Verdict::Fail => return None,
            Verdict::Pass => {}
            Verdict::Noted(words) => reasons.push(Evidence::Noted(words), Weight::Nothing),
            Verdict::MadeUp(reason) => {
                cap = PLACEHOLDER_CAP;
                reasons.push(Evidence::Doubt(reason), Weight::Caps(PLACEHOLDER_CAP));
            }
            Verdict::Doubt(reason) => {
                score -= DOUBT_PENALTY;
                reasons.add(Evidence::Doubt(reason), -DOUBT_PENALTY);
            }
            Verdict::Proof(reason) => score += add_proof(Evidence::Proof(reason), &mut reasons),
            Verdict::Read(words) => score += add_proof(Evidence::Read(words), &mut reasons),
        }
        if cap < floor {
            return None;
        }
    }
    let random = |validator: &Validator| matches!(validator, Validator::Entropy { .. });
    if cap != PLACEHOLDER_CAP && rule.validators.iter().any(random) {
        score += ENTROPY_BOOST;
        reasons.add(Evidence::HighEntropy, ENTROPY_BOOST);
    }
    let boost = rule.context.as_ref().map_or(0, |context| i32::from(context.boost));
    if (score + boost).min(cap) < floor {
        return None;
    }
    if let Some(context) = &rule.context {
        match memo.find(bytes, span.clone(), context) {
            Some(word) => {
                score += i32::from(context.boost);
                reasons.add(Evidence::Keyword(word), i32::from(context.boost));
            }
            None if context.required => {
                let most = i32::from(NO_CONTEXT_MAX.0);
                cap = cap.min(most);
                reasons.push(Evidence::NoKeyword, Weight::Caps(most));
            }
            None => {}
        }
    }
    if score.min(cap) < floor {
        return None;
    }
    if rule.category == Category::Secret && (cap == PLACEHOLDER_CAP || facts.is_placeholder(value)) {
        cap = cap.min(PLACEHOLDER_CAP);
        reasons.push(Evidence::Placeholder, Weight::Caps(PLACEHOLDER_CAP));
    }
    if rule.tags.iter().any(|tag| tag == GENERIC) && name::is_public(bytes, span.start) {
        cap = cap.min(PLACEHOLDER_CAP);
        reasons.push(
            Evidence::Doubt("the name is of something public or made up"),
            Weight::Caps(PLACEHOLDER_CAP),
        );
    }
    if rule.category == Category::Secret && facts.is_documented(value) {
        cap = cap.min(PLACEHOLDER_CAP);
        reasons.push(Evidence::Doubt("a well-known sample of documentation"), Weight::Caps(PLACEHOLDER_CAP));
    }
    if rule.category == Category::Secret && value::counts(value) {
        score -= COUNTING_PENALTY;
        reasons.add(Evidence::Doubt("counts up as typed examples do"), -COUNTING_PENALTY);
    }
    if rule.category == Category::Secret && value::is_at_reserved_host(&bytes[span.end..]) {
        score -= RESERVED_HOST_PENALTY;
        reasons.add(Evidence::Doubt("sent to a host of documentation"), -RESERVED_HOST_PENALTY);
    }
    if rule.low_in_code && path.code {
        reasons.push(Evidence::SourceCode, Weight::Caps(CODE_CAP.0.into()));
    }
    if path.sample {
        score -= SAMPLE_FILE_PENALTY;
        reasons.add(Evidence::SampleFile, -SAMPLE_FILE_PENALTY);
    }
    let score = score.clamp(0, cap);
    if score < floor {
        return None;
    }
    // Last, so that what is refused has cost no allocation.
    reasons.push(Evidence::Format, Weight::Base(rule.score.0));
    reasons.0.sort();
    Some((Score(score as u8), reasons))
}

/// Which of the rule's validators refuses a value outright, as its index.
pub fn refusal(rule: &Rule, value: &[u8]) -> Option<usize> {
    rule.validators.iter().position(|validator| {
        let capped = rule.category == Category::Secret && validator.tells_made_up();
        !capped && matches!(verdict(validator, value, rule.category, &mut Facts::default()), Verdict::Fail)
    })
}

/// Adds a proof to the reasons and tells what it is worth.
fn add_proof(proof: Evidence, reasons: &mut Evidences) -> i32 {
    let boost = if reasons.has_proof() { FURTHER_PROOF_BOOST } else { PROOF_BOOST };
    reasons.add(proof, boost);
    boost
}

fn verdict<'r>(validator: &'r Validator, value: &[u8], category: Category, facts: &mut Facts<'r>) -> Verdict {
    let pass_if = |passed| if passed { Verdict::Pass } else { Verdict::Fail };
    match validator {
        // Rules of secrets have checks in common; those of numbers each have their own.
        Validator::Named { name, check } if category == Category::Secret => {
            facts.verdict(value, name, *check)
        }
        Validator::Named { check, .. } => check(value),
        Validator::Entropy { min } => pass_if(facts.entropy(value) >= *min),
        Validator::Stopwords { words, everyday: true } => pass_if(!facts.is_stopped(value, words)),
        Validator::Stopwords { .. } => pass_if(!value::is_field_name(value) && !facts.is_placeholder(value)),
        Validator::Distinct { min } => pass_if(facts.distinct(value) >= *min),
    }
}

#[cfg(test)]
mod tests;
