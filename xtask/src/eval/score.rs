//! Entries against findings: what each text adds to the counts of its types and kinds, and what was missed or found
//! too much. Only this module decides what counts as right; the figures are made of its counts by `metrics`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde::Serialize;

use super::engine::{Claim, Engine, Found};
use super::forms::{Entry, Form, Label};
use super::metrics::{Counts, HALF, overlap, pairs};
use super::types::{self, Group, Type};

/// Something that should have been found, or should not.
pub struct Miss {
    /// The type or kind it is of.
    pub of: String,
    pub value: String,
    /// What was found there, or for a wrong finding: by which rule.
    pub said: String,
    pub is_wrong: bool,
    pub text: String,
}

/// What a set's texts with spans give.
#[derive(Default)]
pub struct Spans {
    pub texts: u64,
    /// By the type's name, one for each text in which it is labelled or found.
    pub types: BTreeMap<&'static str, Vec<Counts>>,
    /// Over the types of a group, one for each text.
    pub groups: BTreeMap<Group, Vec<Counts>>,
    /// Over all types, by where the text would stand.
    pub paths: BTreeMap<String, Vec<Counts>>,
    /// Labels of types that no rule finds.
    pub not_scored: BTreeMap<String, u64>,
    /// Findings, by rule, of what the set has no labels of.
    pub besides: BTreeMap<String, u64>,
    pub misses: Vec<Miss>,
}

/// What a set's secret examples give.
#[derive(Default)]
pub struct Secrets {
    /// By kind, one for each text.
    pub kinds: BTreeMap<String, Vec<Counts>>,
    /// Of the positive ones: found, whatever the score.
    pub at_any_level: u64,
    pub misses: Vec<Miss>,
}

/// Findings in texts that have nothing, of one kind.
#[derive(Clone, Copy, Default, Serialize)]
pub struct Noise {
    pub texts: u64,
    pub secrets: u64,
    pub validated: u64,
    pub others: u64,
}

#[derive(Default)]
pub struct Negatives {
    pub kinds: BTreeMap<String, Noise>,
    pub misses: Vec<Miss>,
}

/// Everything that one set says, by form.
#[derive(Default)]
pub struct Scores {
    pub spans: Spans,
    pub secrets: Secrets,
    pub negatives: Negatives,
}

pub fn score(engine: &mut Engine, entries: &[Entry]) -> Scores {
    let labelled: BTreeSet<&str> = entries.iter().flat_map(labels).map(|l| &*l.name).collect();
    let mut scores = Scores::default();
    for entry in entries {
        let found = engine.scan(&entry.text, &entry.path);
        match &entry.form {
            Form::Spans(labels) => scores.spans.add(entry, labels, &found, &labelled),
            Form::Secret { kind, is_one } => scores.secrets.add(&entry.text, kind, *is_one, &found),
            Form::Nothing { kind } => scores.negatives.add(&entry.text, kind, &found),
        }
    }
    scores
}

fn labels(entry: &Entry) -> &[Label] {
    match &entry.form {
        Form::Spans(labels) => labels,
        Form::Secret { .. } | Form::Nothing { .. } => &[],
    }
}

impl Spans {
    /// Only types that the set labels somewhere are scored: of the others nobody said where they are.
    fn add(&mut self, entry: &Entry, labels: &[Label], found: &[Found], labelled: &BTreeSet<&str>) {
        self.texts += 1;
        let unknown = labels.iter().filter(|label| types::of_label(&label.name).is_none());
        unknown.for_each(|label| *self.not_scored.entry(label.name.clone()).or_default() += 1);
        let (mut groups, mut all) = (BTreeMap::<Group, Counts>::new(), Counts::default());
        for kind in types::ALL.iter().filter(|kind| labelled.contains(kind.name)) {
            let answers: Vec<&Found> = found.iter().filter(|found| counts_for(kind, found, labels)).collect();
            let labels: Vec<&Label> = labels.iter().filter(|label| label.name == kind.name).collect();
            if !answers.is_empty() || !labels.is_empty() {
                let counts = self.compare(kind, &entry.text, &labels, &answers, found);
                self.types.entry(kind.name).or_default().push(counts);
                *groups.entry(kind.group).or_default() += counts;
                all += counts;
            }
        }
        if all != Counts::default() {
            self.paths.entry(entry.path.clone()).or_default().push(all);
        }
        groups.into_iter().for_each(|(group, counts)| self.groups.entry(group).or_default().push(counts));
        let is_scored = |found: &&Found| {
            types::ALL.iter().any(|kind| labelled.contains(kind.name) && kind.owns(&found.rule))
        };
        for found in found.iter().filter(|found| found.is_shown() && !is_scored(found)) {
            *self.besides.entry(found.rule.to_string()).or_default() += 1;
        }
    }

    fn compare(
        &mut self,
        kind: &Type,
        text: &str,
        labels: &[&Label],
        answers: &[&Found],
        all: &[Found],
    ) -> Counts {
        let wanted: Vec<Range<usize>> = labels.iter().map(|label| label.span.clone()).collect();
        let given: Vec<Range<usize>> = answers.iter().map(|found| found.span.clone()).collect();
        let half = pairs(&wanted, &given, HALF);
        let miss = |span: &Range<usize>, said: String, is_wrong: bool| Miss {
            of: kind.name.to_owned(),
            value: part(text, span),
            said,
            is_wrong,
            text: text.to_owned(),
        };
        let missed = (0..wanted.len()).filter(|label| !half.iter().any(|pair| pair.0 == *label));
        self.misses.extend(missed.map(|label| miss(&wanted[label], instead(&wanted[label], all), false)));
        let wrong = (0..given.len()).filter(|finding| !half.iter().any(|pair| pair.1 == *finding));
        self.misses.extend(wrong.map(|finding| miss(&given[finding], said(answers[finding]), true)));
        Counts {
            texts: 1,
            labelled: wanted.len() as u64,
            found: given.len() as u64,
            exact: pairs(&wanted, &given, 1.0).len() as u64,
            half: half.len() as u64,
        }
    }
}

/// Whether a finding says something about a type: it is the type's own and no other label explains it, or it is right
/// at one of the type's labels.
fn counts_for(kind: &Type, found: &Found, labels: &[Label]) -> bool {
    let explains = |label: &&Label| {
        overlap(&label.span, &found.span) >= HALF
            && types::of_label(&label.name).is_some_and(|kind| kind.accepts(&found.rule))
    };
    if !found.is_shown() {
        return false;
    }
    match labels.iter().find(explains) {
        Some(label) => label.name == kind.name,
        None => kind.owns(&found.rule),
    }
}

/// What was found at a place instead, the most certain first.
fn instead(span: &Range<usize>, found: &[Found]) -> String {
    let mut there: Vec<&Found> = found.iter().filter(|found| overlap(span, &found.span) > 0.0).collect();
    there.sort_by_key(|found| std::cmp::Reverse(found.score));
    let said: Vec<String> = there.into_iter().map(said).collect();
    if said.is_empty() { "nothing".to_owned() } else { said.join(", ") }
}

/// A finding's span is of bytes, and may cut a character.
fn part(text: &str, span: &Range<usize>) -> String {
    String::from_utf8_lossy(&text.as_bytes()[span.clone()]).into_owned()
}

fn said(found: &Found) -> String {
    format!("{} {}", found.rule, found.score.0)
}

impl Secrets {
    fn add(&mut self, text: &str, kind: &str, is_one: bool, found: &[Found]) {
        let secrets = || found.iter().filter(|found| found.claim == Claim::Secret);
        let shown = secrets().any(Found::is_shown);
        let counts = Counts {
            texts: 1,
            labelled: u64::from(is_one),
            found: u64::from(shown),
            exact: u64::from(is_one && shown),
            half: u64::from(is_one && shown),
        };
        self.kinds.entry(kind.to_owned()).or_default().push(counts);
        self.at_any_level += u64::from(is_one && secrets().next().is_some());
        if is_one != shown {
            let said = instead(&(0..text.len()), found);
            let value = String::new();
            self.misses.push(Miss {
                of: kind.to_owned(),
                value,
                said,
                is_wrong: shown,
                text: text.to_owned(),
            });
        }
    }

    pub fn all(&self) -> Vec<Counts> {
        self.kinds.values().flatten().copied().collect()
    }

    pub fn negatives(&self) -> Vec<Counts> {
        self.all().into_iter().filter(|counts| counts.labelled == 0).collect()
    }
}

impl Negatives {
    fn add(&mut self, text: &str, kind: &str, found: &[Found]) {
        let noise = self.kinds.entry(kind.to_owned()).or_default();
        noise.texts += 1;
        for found in found.iter().filter(|found| found.is_shown()) {
            match found.claim {
                Claim::Secret => noise.secrets += 1,
                Claim::Validated => noise.validated += 1,
                Claim::Address | Claim::Other => noise.others += 1,
            }
            self.misses.push(Miss {
                of: kind.to_owned(),
                value: part(text, &found.span),
                said: said(found),
                is_wrong: true,
                text: text.to_owned(),
            });
        }
    }

    pub fn all(&self) -> Noise {
        let mut all = Noise::default();
        for noise in self.kinds.values() {
            all.texts += noise.texts;
            all.secrets += noise.secrets;
            all.validated += noise.validated;
            all.others += noise.others;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domesday_model::Score;

    fn found(rule: &str, span: Range<usize>, score: u8) -> Found {
        let claim = if rule.ends_with("token") { Claim::Secret } else { Claim::Validated };
        Found { rule: rule.into(), claim, span, score: Score(score) }
    }

    fn label(name: &str, span: Range<usize>) -> Label {
        Label { name: name.to_owned(), span }
    }

    /// Scores one text in which the types of its own labels are labelled, and some more.
    fn spans(labels: &[Label], more: &[&str], found: &[Found]) -> Spans {
        let names = labels.iter().map(|label| label.name.as_str()).chain(more.iter().copied());
        let mut spans = Spans::default();
        let entry =
            Entry { text: "x".repeat(99), path: "a.csv".to_owned(), form: Form::Spans(labels.to_vec()) };
        spans.add(&entry, labels, found, &names.collect());
        spans
    }

    fn counts(spans: &Spans, name: &str) -> (u64, u64, u64, u64) {
        let sum = Counts::sum(spans.types.get(name).map_or(&[], Vec::as_slice));
        (sum.labelled, sum.found, sum.exact, sum.half)
    }

    #[test]
    fn spans_are_compared_by_type() {
        let labels = [label("PHONE_NUMBER", 0..10), label("CREDIT_CARD", 20..36), label("GPE", 40..44)];
        let all = [
            found("phone-national", 0..9, 60),
            found("payment-card", 20..36, 40),
            found("us-itin", 50..61, 90),
            found("phone-us", 70..80, 50),
        ];
        let scored = spans(&labels, &[], &all);
        assert_eq!(counts(&scored, "PHONE_NUMBER"), (1, 2, 0, 1));
        assert_eq!(counts(&scored, "CREDIT_CARD"), (1, 0, 0, 0));
        let [all] = scored.paths["a.csv"][..] else { panic!("one text is one count") };
        assert_eq!((all.labelled, all.found, all.half), (2, 2, 1));
        assert_eq!(scored.groups[&Group::Headline], [all]);
        assert_eq!(scored.not_scored.get("GPE"), Some(&1));
        assert_eq!(scored.besides.get("us-itin"), Some(&1));
        let misses: Vec<_> =
            scored.misses.iter().map(|miss| (&*miss.of, miss.is_wrong, &*miss.said)).collect();
        let expect = [("CREDIT_CARD", false, "payment-card 40"), ("PHONE_NUMBER", true, "phone-us 50")];
        assert_eq!(misses, expect);
    }

    #[test]
    fn a_second_name_is_right_at_its_label_and_counts_nowhere_else() {
        let at_label = spans(&[label("it.iva", 0..13)], &["eu.vat"], &[found("eu-vat-number", 0..13, 90)]);
        assert_eq!(counts(&at_label, "it.iva"), (1, 1, 1, 1));
        assert_eq!(counts(&at_label, "eu.vat"), (0, 0, 0, 0));
        let elsewhere = spans(&[label("it.iva", 0..13)], &["eu.vat"], &[found("eu-vat-number", 30..43, 90)]);
        assert_eq!(counts(&elsewhere, "it.iva"), (1, 0, 0, 0));
        assert_eq!(counts(&elsewhere, "eu.vat"), (0, 1, 0, 0));
    }

    #[test]
    fn only_secrets_of_medium_or_better_find_a_secret_example() {
        let mut secrets = Secrets::default();
        let text = "x".repeat(9);
        secrets.add(&text, "a", true, &[found("some-token", 0..9, 50)]);
        secrets.add(&text, "a", true, &[found("some-token", 0..9, 49), found("payment-card", 0..9, 90)]);
        secrets.add(&text, "a", false, &[found("payment-card", 0..9, 90)]);
        secrets.add(&text, "b", false, &[found("some-token", 0..9, 80)]);
        let sum = Counts::sum(&secrets.all());
        assert_eq!((sum.labelled, sum.found, sum.half), (2, 2, 1));
        assert_eq!(secrets.at_any_level, 2);
        assert_eq!(Counts::sum(&secrets.negatives()).wrong_share(), Some(0.5));
        let misses: Vec<_> = secrets.misses.iter().map(|miss| (&*miss.of, miss.is_wrong)).collect();
        assert_eq!(misses, [("a", false), ("b", true)]);
    }

    #[test]
    fn noise_is_counted_by_what_it_claims() {
        let mut negatives = Negatives::default();
        let all = [found("some-token", 0..3, 50), found("imei", 3..6, 60), found("imei", 6..9, 40)];
        negatives.add("xxxxxxxxx", "epoch", &all);
        let Noise { texts, secrets, validated, others } = negatives.all();
        assert_eq!((texts, secrets, validated, others), (1, 1, 1, 0));
        assert_eq!(negatives.misses.len(), 2);
    }
}
