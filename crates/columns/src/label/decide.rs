//! Which labels the evidence is enough for.

use domesday_engine::{Rule, Shape, Trigger};
use domesday_model::{Category, Level};

use super::evidence::{Group, Header};
use super::kinds::Kind;
use super::{ColumnLabel, LabelKind, label, wilson};
use crate::sketch::ColumnSketch;

/// The lower bound of the share of values that are of a type: where the column's name speaks for it, or the values have
/// a form that nothing else has; and where only their number does.
const SHARE_MIN: f64 = 0.5;
const SHARE_MIN_ALONE: f64 = 0.7;
/// Where the name speaks for it and there are few values, of which nearly all are.
const SHARE_MIN_FEW: f64 = 0.2;
const FEW_MATCHED: f64 = 0.8;
/// Values that passed for each that had the form and failed: chance lets one pass for nine that fail.
const PASSED_PER_REFUSED: u64 = 2;
/// Values that must all be right where neither a check digit nor a name speaks for them.
const FORM_ALONE_MIN: u64 = 30;
/// The base score from which a rule's form says something by itself.
const FORM_SCORE_MIN: u8 = 40;
/// Bytes of an address of four numbers, on average: those of a version are shorter.
const QUAD_LEN_MIN: f64 = 10.5;
/// Share of names that are known ones, where a list of them proves some.
const KNOWN_NAMES_MIN: f64 = 0.25;
/// The same of single words in a column for given names or surnames: the list has the common ones, and most are not.
const KNOWN_NAMES_MIN_SINGLE: f64 = 0.005;
/// Names that are known, at least.
const KNOWN_NAMES: u64 = 2;
/// Those whose names may be a company's.
const PARTIES: &[&str] = &["client", "contact", "customer"];
/// The lower bound of the share of values that could be written as a secret in code, where the name is that of a secret.
/// Others have signs that code would not have.
const SECRET_SHARE_MIN: f64 = 0.3;
/// Words of a value, on average, that make free text.
const FREE_TEXT_WORDS: f64 = 3.5;

pub struct Decision<'d> {
    pub kind: Kind,
    pub header: &'d Header,
    pub sketch: &'d ColumnSketch,
    pub groups: &'d [Group<'d>],
}

impl Decision<'_> {
    /// The labels, in no order, and whether the column is free text.
    pub fn labels(&self) -> (Vec<ColumnLabel>, bool) {
        if let Some(best) = self.column_label() {
            return (vec![best], false);
        }
        let is_free_text = self.kind == Kind::Nested || self.mean_words() >= FREE_TEXT_WORDS;
        let few = self.groups.iter().filter(|group| self.allows(group));
        let labels =
            few.filter_map(|group| if is_free_text { self.occurs(group) } else { self.sparse(group) });
        (labels.collect(), is_free_text)
    }

    /// The one type that the column is of.
    fn column_label(&self) -> Option<ColumnLabel> {
        if self.kind == Kind::Nested {
            return None;
        }
        let fitting = self.groups.iter().filter(|group| self.allows(group));
        let labels = fitting.filter_map(|group| Some((group, self.of_column(group)?)));
        let rank = |(group, label): &(&Group<'_>, ColumnLabel)| {
            let named = if label.other_evidence.is_empty() { 0.0 } else { 0.25 };
            let checked = if group.mostly(group.checked) || group.has_own_form() { 0.2 } else { 0.0 };
            label.interval.0 + named + checked
        };
        let best = labels.max_by(|a, b| rank(a).total_cmp(&rank(b)).then_with(|| b.1.rule.cmp(&a.1.rule)));
        best.map(|(_, label)| label)
    }

    /// Whether values of the column's type can be of the group's.
    fn allows(&self, group: &Group<'_>) -> bool {
        match self.kind {
            Kind::Measure => false,
            // What rules know by the name of its field.
            Kind::Date | Kind::Uuid => matches!(group.rule.trigger, Trigger::Literals(_)),
            Kind::Text | Kind::Integer | Kind::Nested => true,
        }
    }

    fn of_column(&self, group: &Group<'_>) -> Option<ColumnLabel> {
        let sampled = self.sketch.sample.len() as u64;
        let is_assigned = group.has_tag("generic");
        let by_chance = group.matched < PASSED_PER_REFUSED * group.refused && !is_assigned;
        if group.matched == 0 || by_chance {
            return None;
        }
        let named = self.header.evidence(group);
        let is_checked = group.mostly(group.checked);
        let is_formed = group.has_own_form() || (group.mostly(group.alone) && !group.mostly(group.bare));
        let lower = wilson(group.matched, sampled).0;
        let nearly_all = group.matched as f64 >= FEW_MATCHED * sampled as f64;
        let enough = match (named.is_empty(), is_formed) {
            (true, false) => lower >= SHARE_MIN_ALONE,
            (true, true) => lower >= SHARE_MIN,
            (false, _) if is_assigned => lower >= SECRET_SHARE_MIN,
            (false, _) => lower >= SHARE_MIN || (nearly_all && lower >= SHARE_MIN_FEW),
        };
        let speaks = if named.is_empty() {
            self.values_speak(group, is_checked, is_formed)
        } else {
            match has_names(group) {
                true => self.has_known_names(group, &named),
                false => is_checked || group.mostly(group.sure),
            }
        };
        if !enough || !speaks {
            return None;
        }
        let level = match (is_checked || is_formed, !named.is_empty()) {
            (true, true) => Level::High,
            (false, false) => Level::Low,
            _ => Level::Medium,
        };
        let mut label = label(LabelKind::Column, group, self.sketch, level);
        label.value_evidence = self.value_evidence(group, group.matched);
        label.other_evidence = named;
        Some(label)
    }

    /// Whether values are enough where the name says nothing for them.
    fn values_speak(&self, group: &Group<'_>, is_checked: bool, is_formed: bool) -> bool {
        // A number is an identifier only if something says so.
        if self.kind == Kind::Integer || (is_quad(group.rule) && group.mean_len < QUAD_LEN_MIN) {
            return false;
        }
        // What the name says they are, and is refused, is nothing else.
        let is_refused = |other: &Group<'_>| {
            2 * other.refused > self.sketch.sample.len() as u64 && !self.header.evidence(other).is_empty()
        };
        if self.groups.iter().any(is_refused) {
            return false;
        }
        let is_bare = group.mostly(group.bare);
        let has_form = !is_bare && group.rule.score.0 >= FORM_SCORE_MIN;
        if is_formed || (!group.requires_words() && (is_checked || has_form)) {
            return true;
        }
        let all_right = has_form && group.refused == 0 && group.matched >= FORM_ALONE_MIN;
        // Of a column with a name that says something else, the rule's own caution holds. Numbers with a check digit are of
        // many kinds, most of them harmless; those of cards are of given ranges besides.
        let is_told = is_checked && (!is_bare || group.rule.category == Category::Payment);
        self.header.is_nameless && (is_told || all_right)
    }

    fn mean_words(&self) -> f64 {
        let words: u64 = self.sketch.sample.values().map(|value| u64::from(value.words)).sum();
        words as f64 / self.sketch.sample.len().max(1) as f64
    }

    /// Names of persons: a list knows some of them, and of what is no name hardly any.
    fn has_known_names(&self, group: &Group<'_>, named: &[String]) -> bool {
        let may_be_company = named.iter().any(|said| PARTIES.iter().any(|party| said.contains(party)));
        let is_single = self.mean_words() < 1.5 && !may_be_company;
        let (count, least) =
            if is_single { (1, KNOWN_NAMES_MIN_SINGLE) } else { (KNOWN_NAMES, KNOWN_NAMES_MIN) };
        group.proven >= count && group.proven as f64 >= least * group.matched as f64
    }

    /// Few values that are beyond doubt, among others.
    fn sparse(&self, group: &Group<'_>) -> Option<ColumnLabel> {
        let is_strong = group.has_own_form() || group.mostly(group.checked) || group.mostly(group.alone);
        let seen = group.anywhere == 0 || (is_strong && group.mostly(group.sure));
        let label = label(LabelKind::Sparse, group, self.sketch, Level::Medium);
        let proven: u64 = self.proven(group);
        let is_proven = proven > 0 || group.has_own_form();
        let by_chance = group.refused >= group.anywhere.max(1);
        if label.cells == 0
            || !seen
            || !is_proven
            || by_chance
            || self.kind == Kind::Integer
            || has_names(group)
        {
            return None;
        }
        Some(self.with_evidence(label, group))
    }

    /// What occurs in a text.
    fn occurs(&self, group: &Group<'_>) -> Option<ColumnLabel> {
        let level = if self.proven(group) > 0 { Level::High } else { Level::Medium };
        let label = label(LabelKind::Occurs, group, self.sketch, level);
        let by_chance = group.refused > PASSED_PER_REFUSED * group.anywhere && group.anywhere > 0;
        (label.cells > 0 && !by_chance).then(|| self.with_evidence(label, group))
    }

    fn proven(&self, group: &Group<'_>) -> u64 {
        group.rules.iter().filter_map(|rule| self.sketch.rules.get(&rule.id)).map(|tally| tally.proven).sum()
    }

    fn with_evidence(&self, mut label: ColumnLabel, group: &Group<'_>) -> ColumnLabel {
        label.value_evidence = self.value_evidence(group, group.anywhere);
        label.other_evidence = self.header.evidence(group);
        label
    }

    /// What the values say, in words.
    fn value_evidence(&self, group: &Group<'_>, matched: u64) -> Vec<String> {
        let sampled = self.sketch.sample.len();
        let mut words = vec![format!("{matched} of {sampled} distinct values match")];
        let mut add = |count: u64, what: &str| {
            if count > 0 {
                words.push(format!("{count} {what}"));
            }
        };
        add(group.checked, "with a valid check digit");
        add(if group.checked == 0 { group.proven } else { 0 }, "proved by their content");
        add(group.refused, "of the form were refused");
        words
    }
}

fn is_quad(rule: &Rule) -> bool {
    matches!(rule.trigger, Trigger::Shape(Shape::DottedQuad))
}

fn has_names(group: &Group<'_>) -> bool {
    group.rule.category == Category::Personal && group.rule.id.starts_with("person-name")
}
