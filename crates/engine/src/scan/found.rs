//! What a scan finds: matches, plain or decoded.

use std::ops::Range;

use domesday_model::{Score, SuppressedBy};

use crate::decode::Layer;
use crate::scoring::{Evidence, Evidences, Weight};

/// A value that a rule recognised.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Match {
    /// Index into [`RuleSet::rules`].
    pub rule: u32,
    /// The value, within the chunk's bytes.
    pub span: Range<usize>,
    pub score: Score,
    pub reasons: Evidences,
    /// If the span is encoded: how, and what it says.
    pub decoded: Option<Box<Decoded>>,
    /// What keeps it out of reports. An allow that is for every rule is about the value: others on the same bytes are not
    /// reported either, so it goes when it has displaced them.
    pub suppressed: Option<SuppressedBy>,
}

impl Match {
    /// The value, without its encodings; `bytes` are the chunk's.
    pub fn value<'m>(&'m self, bytes: &'m [u8]) -> &'m [u8] {
        match &self.decoded {
            Some(decoded) => &decoded.value,
            None => &bytes[self.span.clone()],
        }
    }
}

/// What an encoded span says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decoded {
    /// The encodings, outermost first, such as `base64`.
    pub chain: Vec<&'static str>,
    /// The value, without them.
    pub value: Vec<u8>,
}

/// What two tellings of the same match have in common.
pub(super) fn place(found: &Match) -> (usize, usize, u32) {
    (found.span.start, found.span.end, found.rule)
}

/// A match in a decoded text, as one of the text it was decoded from.
pub(super) fn outward(found: Match, layer: &Layer) -> Match {
    let (value, mut chain) = match found.decoded {
        Some(decoded) => (decoded.value, decoded.chain),
        None => (layer.text[found.span.clone()].to_vec(), Vec::new()),
    };
    chain.splice(0..0, layer.chain.iter().copied());
    let mut reasons = found.reasons;
    reasons.0.retain(|reason| !matches!(reason.evidence, Evidence::Decoded(_)));
    reasons.push(Evidence::Decoded(chain.join(" > ").into()), Weight::Nothing);
    reasons.0.sort();
    let decoded = Some(Box::new(Decoded { chain, value }));
    Match { span: layer.source(&found.span), reasons, decoded, ..found }
}
