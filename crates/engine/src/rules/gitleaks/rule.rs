//! One Gitleaks rule as one of ours. Gitleaks runs a regex over a whole file once a keyword is in it; the engine runs
//! it around a trigger. So a trigger is found: a literal of the regex, or the shape of what it matches, or else a
//! keyword before it. What that changes is noted.

use std::ops::Range;
use std::sync::Arc;

use domesday_model::{Category, Level, Score};
use regex_syntax::hir::{Hir, HirKind};

use super::read::RawRule;
use super::regex::{self, Anchors, Bounded};
use crate::prefilter::{LONG_WORD_MIN, WORD_MAX};
use crate::rules::classification::OwnClass;
use crate::rules::gate::{self, Gate};
use crate::rules::opening::Opening;
use crate::rules::pattern::{self, Pattern};
use crate::rules::{Context, Lead, Literal, Patterns, Rule, Shape, Trigger, Validator, derive};
use crate::{CONTEXT_MAX, MAX_MATCH_LEN};

/// The score of what is found, before anything else is known: medium.
const SCORE: Score = Score(60);
/// The score of a rule that asks for another beside it, which is not looked for: low.
const UNPROVEN_SCORE: Score = Score(40);
/// Digits in a row that are worth a look.
const DIGITS_MIN: usize = 6;
/// Digits that a shape may ask for.
const DIGITS_MAX: usize = 32;
/// The tag of all that comes from this format.
const TAG: &str = "gitleaks";

/// The rule, to be called `id`, or why there can be none; `note` is told what differs.
pub fn convert(raw: &RawRule, id: &str, mut note: impl FnMut(String)) -> Result<Rule, String> {
    let path = match raw.path.as_str() {
        "" => Patterns::default(),
        path => Patterns::new(vec![regex::translate(path, Anchors::Text)])?,
    };
    let found = if raw.regex.is_empty() { Found::path_only() } else { Found::of(raw, &mut note)? };
    let Found { place, value_groups, context } = found;
    if raw.has_required {
        note("`required` rules are not looked for: what it finds is of level low".to_owned());
    }
    let mut tags = raw.tags.clone();
    tags.extend((!tags.iter().any(|tag| tag == TAG)).then(|| TAG.to_owned()));
    let description = if raw.description.is_empty() { &raw.id } else { &raw.description };
    // Gitleaks asks for more than it says, and we for as much.
    let entropy = (raw.entropy > 0.0).then(|| Validator::Entropy { min: raw.entropy.next_up() });
    Ok(Rule {
        id: id.into(),
        description: description.clone(),
        category: Category::Secret,
        own_class: OwnClass::default(),
        family: "".into(),
        regex: place.regex,
        max_len: place.max_len,
        value_groups,
        trigger: place.trigger,
        lead: place.lead,
        gate: Arc::new(Gate::open()),
        opening: Opening::default(),
        run: None,
        score: if raw.has_required { UNPROVEN_SCORE } else { SCORE },
        validators: entropy.into_iter().collect(),
        context,
        path,
        tags,
        regions: Vec::new(),
        positive: Vec::new(),
        negative: Vec::new(),
        low_in_code: false,
        min_level: Level::Medium,
    })
}

/// How a rule finds.
struct Found {
    place: Place,
    value_groups: Range<usize>,
    context: Option<Context>,
}

/// What is searched, and where.
struct Place {
    regex: String,
    max_len: usize,
    trigger: Trigger,
    lead: Lead,
}

impl Found {
    /// By the path of an object alone.
    fn path_only() -> Found {
        let (trigger, lead) = (Trigger::Literals(Vec::new()), Lead { min: 0, max: 0 });
        let place = Place { regex: String::new(), max_len: 0, trigger, lead };
        Found { place, value_groups: 0..0, context: None }
    }

    fn of(raw: &RawRule, note: &mut impl FnMut(String)) -> Result<Found, String> {
        let whole = regex::translate(&raw.regex, Anchors::Lines);
        let bounded = regex::bound(&whole)?;
        if begins_text(&raw.regex) {
            note("`^` and `\\A` stand for the start of a line, not of the file".to_owned());
        }
        let groups = bounded.pattern.hir.properties().explicit_captures_len();
        let value_groups = match raw.secret_group {
            // Without a number the first group that is not empty is the secret.
            0 => 1..groups + 1,
            group if group <= groups => group..group + 1,
            group => return Err(format!("its regex has no group {group}")),
        };
        let keywords: Vec<_> = raw.keywords.iter().filter(|word| !word.trim().is_empty()).collect();
        let Some(place) = Place::of(whole, &bounded, note) else {
            return behind_keywords(&bounded.text, &keywords, value_groups, note);
        };
        let context = keywords_near(&keywords, &bounded.pattern);
        if context.is_some() {
            note(format!(
                "a keyword must be within {CONTEXT_MAX} bytes of the secret, not anywhere in the file"
            ));
        }
        Ok(Found { place, value_groups, context })
    }
}

impl Place {
    /// By a trigger that the regex has, if it has any.
    fn of(whole: String, bounded: &Bounded, note: &mut impl FnMut(String)) -> Option<Place> {
        let Bounded { text, pattern, rounds } = bounded;
        // Where a trigger tells the start of a match, its length is limited by how far is searched. Nothing needs to
        // be cut then, and automata that count rounds are slow.
        if rounds.is_some()
            && pattern::is_small(&whole)
            && let Some(set) = derive::rarest_placed(&pattern.hir)
        {
            if bounded.loses_length() {
                note(format!("a match has at most {MAX_MATCH_LEN} bytes"));
            }
            let trigger = Trigger::Literals(set.literals);
            return Some(Place { regex: whole, max_len: MAX_MATCH_LEN, trigger, lead: set.lead });
        }
        if let Some(rounds) = rounds.filter(|_| bounded.loses()) {
            note(format!("a match has at most {MAX_MATCH_LEN} bytes: repetitions end after {rounds} rounds"));
        }
        let (trigger, lead) = match derive::rarest(&pattern.hir) {
            Some(set) => (Trigger::Literals(set.literals), set.lead),
            None => {
                let (shape, everywhere) = shape_of(pattern)?;
                if !everywhere {
                    note(
                        "it has no literal to look for: it is found at the start of a word or number"
                            .to_owned(),
                    );
                }
                (Trigger::Shape(shape), Lead { min: 0, max: pattern.max_len - 1 })
            }
        };
        Some(Place { regex: text.clone(), max_len: pattern.max_len, trigger, lead })
    }
}

/// That a keyword is near, if not every match has one.
fn keywords_near(keywords: &[&String], pattern: &Pattern) -> Option<Context> {
    let literal = |word: &&String| Literal { bytes: word.to_ascii_lowercase().into_bytes(), any_case: true };
    let literals: Vec<_> = keywords.iter().map(literal).collect();
    let apart = !literals.is_empty() && derive::lead_of(&pattern.hir, &literals).is_none();
    apart.then(|| Context {
        words: keywords.iter().map(|word| Arc::from(word.to_lowercase())).collect(),
        boost: 0,
        within: CONTEXT_MAX,
        required: true,
        anywhere: true,
        starts: Default::default(),
    })
}

fn begins_text(go: &str) -> bool {
    go.starts_with('^') || go.starts_with(r"\A") || go.starts_with("(?i)^")
}

/// What every match has that can be looked for, and whether it is there wherever the regex matches: a match that
/// begins in the middle of a word or number is not found.
fn shape_of(pattern: &Pattern) -> Option<(Shape, bool)> {
    let at_boundary = pattern.hir.properties().look_set_prefix().contains_word();
    let everywhere = |wanted: fn(u8) -> bool| at_boundary || derive::lead_to(&pattern.hir, wanted).min > 0;
    if let Some(len) = word_run(&pattern.hir).filter(|&len| len >= LONG_WORD_MIN) {
        let shape = Shape::WordDigits { min: 0, len: len.min(WORD_MAX) as u8 };
        return Some((shape, everywhere(|byte| byte.is_ascii_alphanumeric())));
    }
    let digits = derive::longest_run(&pattern.hir, |byte| byte.is_ascii_digit());
    let shape = Shape::Digits { min: digits.min(DIGITS_MAX) as u8 };
    (digits >= DIGITS_MIN).then(|| (shape, everywhere(|byte| byte.is_ascii_digit())))
}

/// The least length of letters and digits in a row that begin a word in every match, unless it begins within one.
fn word_run(hir: &Hir) -> Option<usize> {
    match hir.kind() {
        HirKind::Capture(capture) => word_run(&capture.sub),
        HirKind::Alternation(branches) => {
            branches.iter().map(word_run).collect::<Option<Vec<_>>>()?.into_iter().min()
        }
        HirKind::Concat(parts) => {
            let word = |hir: &Hir| derive::only(hir, |byte| byte.is_ascii_alphanumeric());
            let len = |hir: &Hir| hir.properties().minimum_len().unwrap_or(0);
            let mut best = None;
            for (i, part) in parts.iter().enumerate() {
                if !gate::ends_apart(&parts[..i]) {
                    continue;
                }
                let run = match word(part) {
                    true => Some(parts[i..].iter().take_while(|part| word(part)).map(len).sum()),
                    false => word_run(part),
                };
                best = best.max(run);
            }
            best
        }
        _ => derive::only(hir, |byte| byte.is_ascii_alphanumeric())
            .then(|| hir.properties().minimum_len().unwrap_or(0)),
    }
}

/// The regex behind a keyword, where nothing else can be looked for.
fn behind_keywords(
    text: &str,
    keywords: &[&String],
    value_groups: Range<usize>,
    note: &mut impl FnMut(String),
) -> Result<Found, String> {
    const NOTHING: &str = "it has nothing that can be looked for: give it keywords of three letters or more";
    if keywords.is_empty() {
        return Err(NOTHING.to_owned());
    }
    let words = keywords.iter().map(|word| regex_syntax::escape(word)).collect::<Vec<_>>().join("|");
    let (open, value_groups) = if value_groups.is_empty() { ("(", 1..2) } else { ("(?:", value_groups) };
    let regex = format!("(?i:{words})(?s:.{{0,{CONTEXT_MAX}}}?){open}{text})");
    let pattern = pattern::parse(&regex)?;
    let set = derive::rarest(&pattern.hir).ok_or(NOTHING)?;
    note(format!("it has no literal to look for: it is found up to {CONTEXT_MAX} bytes behind a keyword"));
    let trigger = Trigger::Literals(set.literals);
    let place = Place { regex, max_len: pattern.max_len, trigger, lead: set.lead };
    Ok(Found { place, value_groups, context: None })
}
