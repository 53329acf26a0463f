//! What the values of a column need besides a scan: which of many short texts have a trigger at all, and how much it
//! says that a value passed its rule.

use super::{Scanner, Scratch};
use crate::rules::{Rule, Trigger, Validator};
use crate::scoring::{self, PathKind, is_unspaced};
use crate::validators::Verdict;

/// Digits that a last digit can be changed to.
const OTHER_DIGITS: usize = 9;
/// Of these, how many must be refused. Some check digits are worth less than others.
const REFUSED_MIN: usize = 7;

impl Scanner {
    /// The trigger pass alone: adds the places of all triggers in `bytes`, in no order. A text without any has no
    /// matches.
    pub fn triggers(&self, bytes: &[u8], scratch: &mut Scratch, places: &mut Vec<usize>) {
        let prefilter = self.prefilter(PathKind::of(b""));
        self.for_each_segment(bytes, &(0..bytes.len()), |segment| {
            scratch.hits.clear();
            prefilter.find(bytes, segment, &mut scratch.buffers, &mut scratch.hits);
            places.extend(scratch.hits.iter().map(|hit| hit.at));
        });
    }
}

/// Rules that report nothing of some texts, whatever their regex matches there.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Silent(Vec<bool>);

impl Silent {
    pub(super) fn has(&self, rule: u32) -> bool {
        self.0.get(rule as usize).is_some_and(|silent| *silent)
    }
}

impl Scanner {
    /// The rules that report no value without letters between `before` and `after`: they ask for a word near, which is
    /// not there.
    pub fn silent_between(&self, before: &[u8], after: &[u8]) -> Silent {
        let text = [before, after].concat();
        let is_silent = |rule: &Rule| {
            let Some(context) = rule.context.as_ref().filter(|context| context.required) else {
                return false;
            };
            let all_have_letters =
                || context.words.iter().all(|word| word.chars().any(|letter| letter.is_alphabetic()));
            scoring::NO_CONTEXT_MAX < self.judging_floor()
                && all_have_letters()
                && !scoring::has_context(&text, before.len()..before.len(), context)
        };
        Silent(self.rules.rules().iter().map(is_silent).collect())
    }
}

impl Rule {
    /// Whether a value that the rule accepts would be refused with another last digit: then it has a check digit, and
    /// nine of ten numbers of its form would not have passed.
    pub fn is_checked(&self, value: &[u8]) -> bool {
        let Some(last) = value.iter().rposition(u8::is_ascii_digit) else { return false };
        let proves = |value: &[u8]| {
            self.validators.iter().any(|validator| match validator {
                Validator::Named { check, .. } => {
                    matches!(check(value), Verdict::Proof(_) | Verdict::Read(_))
                }
                _ => false,
            })
        };
        let refuses = |value: &[u8]| {
            self.validators.iter().any(|validator| match validator {
                Validator::Named { check, .. } => check(value) == Verdict::Fail,
                _ => false,
            })
        };
        let proven = proves(value);
        let mut other = value.to_vec();
        let refused = (1..=OTHER_DIGITS as u8).filter(|step| {
            other[last] = b'0' + (value[last] - b'0' + step) % 10;
            refuses(&other) || (proven && !proves(&other))
        });
        refused.count() >= REFUSED_MIN
    }

    /// The words in a text by which the rule knows its values: those near them that count as context, and the letters
    /// that trigger it. The text is of words in small letters with a space between.
    pub fn words_in<'r>(&'r self, text: &str) -> impl Iterator<Item = &'r str> {
        let spaced = format!(" {text} ");
        let words = self.context.iter().flat_map(|context| &context.words).map(|word| &**word);
        let words = words.chain(self.trigger_words());
        words.filter(move |word| {
            let plain = word.trim_matches(|c: char| !c.is_alphanumeric()).replace('_', " ").to_lowercase();
            let unspaced = plain.chars().next().is_some_and(is_unspaced);
            if unspaced { spaced.contains(&plain) } else { spaced.contains(&format!(" {plain} ")) }
        })
    }

    /// Those of its triggers that are words.
    fn trigger_words(&self) -> impl Iterator<Item = &str> {
        /// Letters that are more than an accident.
        const LETTERS_MIN: usize = 3;
        let literals = match &self.trigger {
            Trigger::Literals(literals) => &literals[..],
            Trigger::Shape(_) => &[],
        };
        let words = literals.iter().filter_map(|literal| std::str::from_utf8(&literal.bytes).ok());
        words.filter(|word| word.chars().filter(|c| c.is_alphabetic()).count() >= LETTERS_MIN)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, LazyLock};

    use domesday_model::Score;
    use proptest::prelude::*;

    use super::*;
    use crate::Chunk;
    use crate::rules::RuleSet;

    static SCANNER: LazyLock<Scanner> = LazyLock::new(|| {
        Scanner::new(Arc::new(RuleSet::builtin().unwrap_or_else(|errors| panic!("{errors}"))))
    });

    fn rule(id: &str) -> &'static Rule {
        SCANNER.rules().get(id).expect(id)
    }

    #[test]
    fn triggers_are_where_the_text_is_worth_a_look() {
        let mut places = Vec::new();
        SCANNER.triggers(b" lamp\n oak\n", &mut Scratch::new(), &mut places);
        assert!(places.is_empty(), "{places:?}");
        SCANNER.triggers(b" lamp\n ann.lee@corp-mail.org\n", &mut Scratch::new(), &mut places);
        assert!(!places.is_empty() && places.iter().all(|place| *place > 6), "{places:?}");
    }

    #[test]
    fn check_digits_are_told_by_what_another_digit_does() {
        let check = |id: &str, value: &str, expect: bool| {
            assert_eq!(rule(id).is_checked(value.as_bytes()), expect, "{id} {value}");
        };
        check("payment-card-unseparated", "4012888888881881", true);
        check("iban", "GB82WEST12345698765432", true);
        check("br-cpf", "826.173.844-20", true);
        check("us-social-security-number", "731-42-6508", false);
        check("email-address", "ann.lee7@corp-mail.org", false);
        check("email-address", "ann.lee@corp-mail.org", false);
    }

    #[test]
    fn words_of_a_rule_are_whole_words() {
        let check = |id: &str, text: &str, expect: bool| {
            assert_eq!(rule(id).words_in(text).next().is_some(), expect, "{id} {text}");
        };
        check("payment-card", "card number", true);
        check("payment-card", "cardinality", false);
        check("payment-card", "クレジットカード番号", true);
        check("date-of-birth", "dob", true);
        check("date-of-birth", "order date", false);
        check("us-social-security-number", "social security number", true);
    }

    static AT_MEDIUM: LazyLock<Scanner> =
        LazyLock::new(|| Scanner::with_floor(Arc::clone(&SCANNER.rules), Score::MEDIUM));

    /// The matches of a value behind a name, with and without asking the rules that are silent there.
    fn both_ways(name: &str, value: &str) -> [Vec<super::super::Match>; 2] {
        let (before, after) = (format!("\n{name}: "), b"\n");
        let text = format!("{before}{value}\n");
        let chunk = Chunk::whole(text.as_bytes(), b"");
        let silent = AT_MEDIUM.silent_between(before.as_bytes(), after);
        let (mut all, mut few) = (Vec::new(), Vec::new());
        AT_MEDIUM.scan(&chunk, &mut Scratch::new(), &mut all);
        AT_MEDIUM.scan_without(&chunk, &silent, &mut Scratch::new(), &mut few);
        [all, few]
    }

    #[test]
    fn rules_that_miss_their_words_are_silent_and_others_are_not() {
        let silent = |name: &str, id: &str| {
            let silent = AT_MEDIUM.silent_between(format!("\n{name}: ").as_bytes(), b"\n");
            silent.has(SCANNER.rules().rules().iter().position(|rule| *rule.id == *id).unwrap() as u32)
        };
        assert!(silent("amount", "hu-tax-number") && !silent("adoszam", "hu-tax-number"));
        assert!(!silent("amount", "email-address"), "it needs no word");
        assert!(
            !SCANNER.silent_between(b"amount: ", b"\n").0.contains(&true),
            "without a floor all may be told"
        );
        let [all, few] = both_ways("Adoszam", "38495331-1-42");
        assert_eq!(all, few);
        assert_eq!(all.len(), 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn who_is_silent_need_not_be_asked(
            name in prop::sample::select(&["Amount", "Phone number", "Tax id", "Bsn", "Card number", "Order no", "Ssn", "X"][..]),
            value in "[0-9]{7,17}|[0-9]{2,4}([ ./-][0-9]{2,5}){1,4}|\\+[0-9]{2} [0-9]{2,3} [0-9]{5,8}",
        ) {
            let [all, few] = both_ways(name, &value);
            prop_assert_eq!(all, few);
        }
    }
}
