//! From TOML to checked rules: what each field means, and what is refused with which remedy.

use std::sync::Arc;

use domesday_model::{Level, Score};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::budget::TRIGGER_COST;
use super::classification;
use super::derive::{self, LITERAL_MIN};
use super::gate::{Gate, Start};
use super::opening::Opening;
use super::pattern::{self, Pattern};
use super::provider;
use super::search::Patterns;
use super::toml_reader::{Fields, Problems};
use super::{Context, Lead, Literal, Rule, Shape, Trigger, Validator};
use crate::prefilter::{DIGITS_LEAST, LONG_WORD_MIN, SHORT_WORD_DIGITS_MIN, WORD_MAX};
use crate::validators;
use crate::{CONTEXT_MAX, MAX_MATCH_LEN};

/// Base score of a rule that names none.
const DEFAULT_SCORE: i64 = 60;
/// Bytes of the longest trigger. It only says where a regex is asked, and is to be rare.
const TRIGGER_MAX: usize = 64;
/// Bytes around a value in which context words count, unless the rule says otherwise.
const DEFAULT_WITHIN: i64 = 64;
/// What a context word adds to the score, unless the rule says otherwise.
const DEFAULT_BOOST: i64 = 20;
/// Examples of each kind that a rule must have.
const EXAMPLES_MIN: usize = 2;
/// Digits that a digit shape may ask for, at least and at most: fewer are everywhere, more are no number.
const SHAPE_MIN_RANGE: std::ops::RangeInclusive<i64> = DIGITS_LEAST as i64..=32;
/// Digits that a word with letters may ask for.
const WORD_DIGITS_RANGE: std::ops::RangeInclusive<i64> = 0..=32;
/// Colons that a hexadecimal shape may ask for.
const COLONS_RANGE: std::ops::RangeInclusive<i64> = 2..=16;

/// One `[[rule]]`, or nothing if something about it is wrong.
pub fn read_rule(
    table: &DeTable<'_>,
    entry: &Spanned<DeValue<'_>>,
    problems: &mut Problems<'_>,
) -> Option<Rule> {
    let before = problems.found.len();
    let id = table.get("id").and_then(|id| id.get_ref().as_str()).map(str::to_owned);
    let mut fields = Fields::new(table, entry.span(), id, problems);

    let id = fields.required_text("id");
    if let Some((id, at)) = id
        && !is_kebab(id)
    {
        fields.complain(at, "the id is not kebab-case: use lower-case letters, digits and single `-`");
    }
    let description = fields.required_text("description");
    let category = fields.required_text("category").and_then(|(word, at)| match word.parse() {
        Ok(category) => Some(category),
        Err(error) => {
            fields.complain(at, format!("{error}"));
            None
        }
    });
    let regex = read_regex(&mut fields);
    let trigger = read_trigger(&mut fields, regex.as_ref().map(|(_, pattern, at)| (pattern, *at)));
    let score = fields.number("score", 0..=100).unwrap_or(DEFAULT_SCORE);
    let validators = read_validators(&mut fields);
    let context = read_context(&mut fields);
    let path = read_path(&mut fields);
    let tags = fields.texts("tags");
    let regions = fields.texts("regions");
    let positive = read_examples(&mut fields, "positive");
    let negative = read_examples(&mut fields, "negative");
    let low_in_code = fields.boolean("low_in_code").unwrap_or(false);
    let min_level = read_level(&mut fields);
    let own_class = classification::read(&mut fields);
    fields.finish();

    if problems.found.len() > before {
        return None;
    }
    let ((trigger, lead, gate), (regex, pattern, _)) = (trigger?, regex?);
    let (id, category) = (id?.0, category?);
    let opening = Opening::of(&pattern.hir, &trigger, lead);
    Some(Rule {
        id: id.into(),
        description: description?.0.to_owned(),
        category,
        own_class,
        family: "".into(),
        regex,
        max_len: pattern.max_len,
        value_groups: pattern.value_group.map_or(0..0, |group| group..group + 1),
        trigger,
        lead,
        gate: Arc::new(gate),
        opening,
        run: pattern.run,
        score: Score(score as u8),
        validators,
        context,
        path,
        tags,
        regions,
        positive,
        negative,
        low_in_code,
        min_level,
    })
}

/// The regex, written out or made of a provider's name and the form of its values, what it allows and where it
/// stands.
fn read_regex(fields: &mut Fields<'_, '_, '_>) -> Option<(String, Pattern, usize)> {
    let (regex, pattern, at) = match fields.text("provider") {
        None => {
            let (regex, at) = fields.required_text("regex")?;
            (regex.to_owned(), pattern::parse(regex), at)
        }
        Some((name, at)) => {
            let (value, _) = fields.required_text("value")?;
            if fields.optional("regex").is_some() {
                fields.complain(at, "both `regex` and `provider` are given: keep one");
                return None;
            }
            (provider::regex(name, value), provider::pattern(name, value), at)
        }
    };
    match pattern {
        // Before anything is derived from it.
        Ok(pattern) => fields.charge(pattern.cost, at).then_some((regex, pattern, at)),
        Err(reason) => {
            fields.complain(at, reason);
            None
        }
    }
}

fn is_kebab(id: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    id.split('-').all(part)
}

fn read_path(fields: &mut Fields<'_, '_, '_>) -> Patterns {
    let Some((path, at)) = fields.text("path") else { return Patterns::default() };
    match Patterns::new(vec![path.to_owned()]) {
        Ok(path) => {
            fields.charge(path.cost(), at);
            path
        }
        Err(reason) => {
            fields.complain(at, reason);
            Patterns::default()
        }
    }
}

fn read_examples(fields: &mut Fields<'_, '_, '_>, name: &'static str) -> Vec<String> {
    let examples = fields.texts(name);
    if examples.len() < EXAMPLES_MIN {
        fields.complain(fields.start(), format!("`{name}` has fewer than {EXAMPLES_MIN} examples: add some"));
    }
    examples
}

fn read_level(fields: &mut Fields<'_, '_, '_>) -> Level {
    match fields.text("min_level") {
        None | Some(("medium", _)) => Level::Medium,
        Some(("low", _)) => Level::Low,
        Some(("high", _)) => Level::High,
        Some((other, at)) => {
            fields.complain(at, format!("`{other}` is not a level: use one of low, medium, high"));
            Level::Medium
        }
    }
}

/// The trigger and where it stands in a match. Without a usable regex only the fields are checked.
fn read_trigger(
    fields: &mut Fields<'_, '_, '_>,
    pattern: Option<(&Pattern, usize)>,
) -> Option<(Trigger, Lead, Gate)> {
    let given = fields.texts("triggers");
    let shape = read_shape(fields);
    let at = fields.start();
    if let Some(short) = given.iter().find(|trigger| trigger.len() < LITERAL_MIN) {
        let reason =
            format!("trigger `{short}` is under {LITERAL_MIN} bytes: lengthen it, or give a `shape`");
        fields.complain(at, reason);
        return None;
    }
    if let Some(long) = given.iter().find(|trigger| trigger.len() > TRIGGER_MAX) {
        let reason = format!("a trigger has {} bytes: {TRIGGER_MAX} are enough, shorten it", long.len());
        fields.complain(at, reason);
        return None;
    }
    if !fields.charge(given.len().saturating_mul(TRIGGER_COST), at) {
        return None;
    }
    if !given.is_empty() && shape.is_some() {
        fields.complain(at, "both `triggers` and `shape` are given: keep one");
        return None;
    }
    let (pattern, regex_at) = pattern?;
    if let Some((shape, before)) = shape {
        let shape = with_word_len(shape, pattern);
        if let Shape::WordDigits { min, len } = shape
            && usize::from(min) < SHORT_WORD_DIGITS_MIN
            && usize::from(len) < LONG_WORD_MIN
        {
            let reason = format!(
                "shape `word_digits` is everywhere with so few digits: ask for {SHORT_WORD_DIGITS_MIN}, or match \
                 {LONG_WORD_MIN} letters and digits in a row"
            );
            fields.complain(regex_at, reason);
            return None;
        }
        // With a lead of the rule's own, the trigger need not be the first digit of a match.
        let lead = before.unwrap_or_else(|| shape_lead(shape, pattern));
        let gate = match shape {
            Shape::Digits { .. } | Shape::DottedQuad => {
                Gate::of(&pattern.hir, lead, Start::of_digits(), before.is_none())
            }
            Shape::WordDigits { .. } => Gate::of(&pattern.hir, lead, Start::of_word(), false),
            Shape::At | Shape::HexColon { .. } => Gate::open(),
        };
        return Some((Trigger::Shape(shape), lead, gate));
    }
    if given.is_empty() {
        let Some(set) = derive::rarest(&pattern.hir) else {
            let reason = format!(
                "regex has no literal of {LITERAL_MIN} bytes that every match contains: add `triggers` or `shape`"
            );
            fields.complain(regex_at, reason);
            return None;
        };
        return Some((Trigger::Literals(set.literals), set.lead, Gate::open()));
    }
    let literal = |text: &String| Literal { bytes: text.to_ascii_lowercase().into_bytes(), any_case: true };
    let mut literals: Vec<_> = given.iter().map(literal).collect();
    literals.sort();
    literals.dedup();
    // A trigger that the regex does not place may stand anywhere in a match.
    let lead = derive::lead_of(&pattern.hir, &literals).unwrap_or(Lead { min: 0, max: pattern.max_len - 1 });
    Some((Trigger::Literals(literals), lead, Gate::open()))
}

/// A word shape with the length of word that the regex asks for.
fn with_word_len(shape: Shape, pattern: &Pattern) -> Shape {
    match shape {
        Shape::WordDigits { min, .. } => {
            let len = derive::longest_run(&pattern.hir, |byte| byte.is_ascii_alphanumeric()).min(WORD_MAX);
            Shape::WordDigits { min, len: len as u8 }
        }
        other => other,
    }
}

fn shape_lead(shape: Shape, pattern: &Pattern) -> Lead {
    let at_lead = |wanted: fn(u8) -> bool| derive::lead_to(&pattern.hir, wanted);
    let lead = match shape {
        Shape::Digits { .. } | Shape::DottedQuad => at_lead(|byte| byte.is_ascii_digit()),
        Shape::At => at_lead(|byte| byte == b'@'),
        Shape::HexColon { .. } => at_lead(|byte| byte.is_ascii_hexdigit() || byte == b':'),
        Shape::WordDigits { .. } => at_lead(|byte| byte.is_ascii_alphanumeric()),
    };
    let max = lead.max.min(pattern.max_len - 1);
    Lead { min: lead.min.min(max), max }
}

/// A shape, and the greatest lead if the rule gives one.
fn read_shape(fields: &mut Fields<'_, '_, '_>) -> Option<(Shape, Option<Lead>)> {
    const KINDS: &str = "digits, at, dotted_quad, hex_colon, word_digits";
    let value = fields.optional("shape")?;
    let at = value.span().start;
    let (kind, min, before) = match value.get_ref() {
        DeValue::String(kind) => (kind.to_string(), None, None),
        DeValue::Table(table) => {
            let mut inner = Fields::new(table, value.span(), fields.rule.clone(), fields.problems);
            let kind = inner.required_text("kind").map(|(kind, _)| kind.to_owned());
            let range = match kind.as_deref() {
                Some("hex_colon") => COLONS_RANGE,
                Some("word_digits") => WORD_DIGITS_RANGE,
                _ => SHAPE_MIN_RANGE,
            };
            let min = inner.number("min", range).map(|min| min as u8);
            let before = inner.number("before", 0..=MAX_MATCH_LEN as i64).map(|before| before as usize);
            inner.finish();
            (kind?, min, before)
        }
        other => {
            let reason = format!("`shape` is a {}: make it a kind ({KINDS}) or a table", other.type_str());
            fields.complain(at, reason);
            return None;
        }
    };
    let shape = match (kind.as_str(), min) {
        ("digits", Some(min)) => Shape::Digits { min },
        ("word_digits", Some(min)) => Shape::WordDigits { min, len: 0 },
        ("hex_colon", min) => Shape::HexColon { min: min.unwrap_or(*COLONS_RANGE.start() as u8) },
        ("at", None) => Shape::At,
        ("dotted_quad", None) => Shape::DottedQuad,
        ("digits" | "word_digits", None) => {
            fields.complain(at, format!("shape `{kind}` has no `min`: say how many digits"));
            return None;
        }
        ("at" | "dotted_quad", Some(_)) => {
            fields.complain(at, format!("shape `{kind}` takes no `min`: remove it"));
            return None;
        }
        _ => {
            fields.complain(at, format!("`{kind}` is not a shape: use one of {KINDS}"));
            return None;
        }
    };
    Some((shape, before.map(|max| Lead { min: 0, max })))
}

fn read_validators(fields: &mut Fields<'_, '_, '_>) -> Vec<Validator> {
    let Some(value) = fields.optional("validators") else { return Vec::new() };
    let DeValue::Array(items) = value.get_ref() else {
        fields.complain(value.span().start, "`validators` is not a list: write `[\"name\", ...]`");
        return Vec::new();
    };
    items.iter().filter_map(|item| read_validator(fields, item)).collect()
}

fn read_validator(fields: &mut Fields<'_, '_, '_>, item: &Spanned<DeValue<'_>>) -> Option<Validator> {
    let at = item.span().start;
    let validator = match item.get_ref() {
        DeValue::String(name) => parameterless(name),
        DeValue::Table(table) => {
            let mut inner = Fields::new(table, item.span(), fields.rule.clone(), fields.problems);
            let name = inner.required_text("name")?.0.to_owned();
            let validator = match name.as_str() {
                "entropy" => inner.decimal("min").map(|min| Validator::Entropy { min }),
                "distinct" => {
                    inner.number("min", 1..=256).map(|min| Validator::Distinct { min: min as usize })
                }
                "stopwords" => Some(Validator::Stopwords { words: inner.texts("words"), everyday: true }),
                _ => parameterless(&name).ok(),
            };
            inner.finish();
            validator.ok_or(name)
        }
        _ => Err(String::new()),
    };
    match validator {
        Ok(validator) => Some(validator),
        Err(name) if matches!(name.as_str(), "entropy" | "distinct") => {
            fields.complain(
                at,
                format!("validator `{name}` has no `min`: write {{ name = \"{name}\", min = … }}"),
            );
            None
        }
        Err(name) => {
            fields.complain(at, format!("there is no validator `{name}`: check its name"));
            None
        }
    }
}

/// The validator of that name, or the name.
fn parameterless(name: &str) -> Result<Validator, String> {
    if let "stopwords" | "placeholders" = name {
        return Ok(Validator::Stopwords { words: Vec::new(), everyday: name == "stopwords" });
    }
    let check = validators::lookup(name).ok_or_else(|| name.to_owned())?;
    Ok(Validator::Named { name: name.to_owned(), check })
}

fn read_context(fields: &mut Fields<'_, '_, '_>) -> Option<Context> {
    let value = fields.optional("context")?;
    let DeValue::Table(table) = value.get_ref() else {
        fields.complain(value.span().start, "`context` is not a table: write `{ words = [...] }`");
        return None;
    };
    let mut inner = Fields::new(table, value.span(), fields.rule.clone(), fields.problems);
    let words: Vec<Arc<str>> = inner.texts("words").iter().map(|word| word.to_lowercase().into()).collect();
    let boost = inner.number("boost", 0..=100).unwrap_or(DEFAULT_BOOST) as u8;
    let within = inner.number("within", 1..=CONTEXT_MAX as i64).unwrap_or(DEFAULT_WITHIN) as usize;
    let required = inner.boolean("required").unwrap_or(false);
    if words.is_empty() || words.iter().any(|word| word.trim().is_empty()) {
        inner.complain(value.span().start, "`context` needs words, none of them empty: add `words = [...]`");
    }
    inner.finish();
    Some(Context { words, boost, within, required, anywhere: false, starts: Default::default() })
}
