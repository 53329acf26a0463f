//! What a column's name says: its words, and the text that stands before a value when it is scanned.
//!
//! A value is scanned as the line `Name of column: value`, so that the rules judge it as they do in a form: words near
//! it count, and rules that ask for a name find it. Where the name is that of a secret, it is `name = "value"`, since a
//! password has no other mark than being assigned. Which words mean something is the rules' to say: only short forms
//! that no text has are written out here.

use std::cell::OnceCell;
use std::collections::HashSet;

use domesday_engine::{Chunk, Literal, RuleSet, Scanner, Scratch, Silent, Trigger, Verdict};

/// Bytes of a name that are used.
const NAME_MAX: usize = 96;
/// Tag of the rules that know a secret by the name it is assigned to.
const GENERIC: &str = "generic";
/// What any such rule takes for a secret.
const PROBE: &str = "Zk83fq02Lw7nTd5xRb94Hc6m";

/// Short forms, and words for the line of an address, as they are written out.
const SHORT: &[(&str, &str)] = &[
    ("acct", "account"),
    ("addr", "address"),
    ("adr", "address"),
    ("adres", "street address"),
    ("adresse", "street address"),
    ("bday", "birthday"),
    ("bdate", "birth date"),
    ("calle", "street address"),
    ("cust", "customer"),
    ("direccion", "street address"),
    ("emp", "employee"),
    ("fname", "first name"),
    ("lname", "last name"),
    ("mname", "first name"),
    ("num", "number"),
    ("ph", "phone"),
    ("rue", "street address"),
    ("strasse", "street address"),
    ("straße", "street address"),
    ("street", "street address"),
];

/// The words that rules know.
pub struct Vocabulary(HashSet<String>);

impl Vocabulary {
    pub fn of(rules: &RuleSet) -> Vocabulary {
        let context = rules.rules().iter().filter_map(|rule| rule.context.as_ref());
        let context = context.flat_map(|context| context.words.iter().map(|word| &**word));
        let texts =
            context.chain(literals(rules).filter_map(|literal| std::str::from_utf8(&literal.bytes).ok()));
        let words = texts.flat_map(|text| text.split(|c: char| !c.is_alphanumeric()));
        let mut known: HashSet<String> = words.filter(|word| word.len() > 1).map(str::to_lowercase).collect();
        known
            .extend(["address", "date", "id", "line", "name", "no", "nr", "number", "of"].map(str::to_owned));
        Vocabulary(known)
    }

    /// The words of a name, short forms written out and words that were joined taken apart.
    pub fn words(&self, name: &str) -> String {
        let words = words(name);
        let has_address = words.split(' ').any(|word| word == "address");
        let spoken = words.split(' ').map(|word| match SHORT.iter().find(|(short, _)| *short == word) {
            Some((_, long)) if !(has_address && long.ends_with("address")) => (*long).to_owned(),
            Some(_) => word.to_owned(),
            None => self.apart(word),
        });
        spoken.collect::<Vec<_>>().join(" ")
    }

    /// A word that is nothing but two or three known ones.
    fn apart(&self, word: &str) -> String {
        /// Bytes of a word that is worth a try, and of one that is not.
        const JOINED: std::ops::RangeInclusive<usize> = 7..=32;
        if !JOINED.contains(&word.len()) || !word.is_ascii() || self.0.contains(word) {
            return word.to_owned();
        }
        let known = |part: &str| part.len() > 1 && self.0.contains(part);
        let two = |word: &str| {
            let cuts = (2..word.len().saturating_sub(1)).rev();
            cuts.map(|at| word.split_at(at))
                .find(|(a, b)| known(a) && known(b) && a.len().max(b.len()) > 3)
                .map(|(a, b)| format!("{a} {b}"))
        };
        let three = || {
            (3..word.len()).rev().map(|at| word.split_at(at)).find_map(|(first, rest)| {
                known(first).then(|| two(rest)).flatten().map(|rest| format!("{first} {rest}"))
            })
        };
        two(word).or_else(three).unwrap_or_else(|| word.to_owned())
    }
}

/// The words of a name in small letters, with a space between: `customerEMail2` is `customer e mail 2`.
fn words(name: &str) -> String {
    let mut out = String::new();
    let mut before: Option<char> = None;
    let mut rest = name.chars().peekable();
    while let Some(letter) = rest.next() {
        let next_is_small = rest.peek().is_some_and(|next| next.is_lowercase());
        let breaks = before.is_some_and(|before| {
            (before.is_lowercase() && letter.is_uppercase())
                || (before.is_uppercase() && letter.is_uppercase() && next_is_small)
                || before.is_numeric() != letter.is_numeric()
        });
        if letter.is_alphanumeric() {
            if !out.is_empty() && (breaks || before.is_none()) && !out.ends_with(' ') {
                out.push(' ');
            }
            out.extend(letter.to_lowercase());
            before = Some(letter);
        } else {
            before = None;
        }
        if out.len() >= NAME_MAX {
            break;
        }
    }
    out
}

/// What stands around a value.
#[derive(Clone, Default, Debug)]
pub struct Frame {
    pub before: Vec<u8>,
    pub after: &'static [u8],
    /// Whether a value may have a match without a trigger of its own.
    pub triggers: bool,
    silent: OnceCell<Silent>,
}

impl Frame {
    fn of(before: Vec<u8>, after: &'static [u8], triggers: bool) -> Frame {
        Frame { before, after, triggers, silent: OnceCell::new() }
    }

    /// The rules that report nothing of a value without letters. Made when many values were seen: it takes as long as
    /// scanning some hundreds.
    pub fn silent(&self, scanner: &Scanner) -> &Silent {
        self.silent.get_or_init(|| scanner.silent_between(&self.before, self.after))
    }

    pub fn new(name: &str, known: &Vocabulary, scanner: &Scanner, scratch: &mut Scratch) -> Frame {
        let words = known.words(name);
        if words.is_empty() {
            return Frame::of(b"\n ".to_vec(), b"\n", false);
        }
        let secret = format!("{} = \"", words.replace(' ', "_")).into_bytes();
        if names_secret(&secret, scanner, scratch) {
            return Frame::of(secret, b"\"\n", true);
        }
        let words = as_triggered(words, scanner.rules());
        let mut letters = words.chars();
        let first = letters.next().into_iter().flat_map(char::to_uppercase);
        // As in a form, the line is one of several.
        let before: String = ['\n'].into_iter().chain(first).chain(letters).chain(": ".chars()).collect();
        let mut places = Vec::new();
        scanner.triggers(before.as_bytes(), scratch, &mut places);
        let triggers = !places.is_empty() || spans(before.as_bytes(), scanner);
        Frame::of(before.into_bytes(), b"\n", triggers)
    }
}

/// Whether a rule that goes by the name of an assignment takes a value that stands behind this.
fn names_secret(assigned: &[u8], scanner: &Scanner, scratch: &mut Scratch) -> bool {
    let text = [assigned, PROBE.as_bytes(), b"\"\n"].concat();
    let chunk = Chunk::unnamed(&text, assigned.len()..assigned.len() + PROBE.len());
    scanner.explain(&chunk, scratch).iter().any(|told| {
        let rule = &scanner.rules().rules()[told.found.rule as usize];
        matches!(told.verdict, Verdict::Found | Verdict::Displaced { .. })
            && rule.tags.iter().any(|tag| tag == GENERIC)
    })
}

/// The literals that rules are triggered by.
fn literals(rules: &RuleSet) -> impl Iterator<Item = &Literal> {
    let of_rules = rules.rules().iter().filter_map(|rule| match &rule.trigger {
        Trigger::Literals(literals) => Some(literals),
        Trigger::Shape(_) => None,
    });
    of_rules.flatten()
}

/// Words that a rule is triggered by only with a sign between them, with that sign.
fn as_triggered(words: String, rules: &RuleSet) -> String {
    let literals = || literals(rules).filter_map(|literal| std::str::from_utf8(&literal.bytes).ok());
    let joined = literals().filter(|literal| literal.trim_matches('_').contains('_')).find(|literal| {
        let spaced = literal.trim_matches('_').replace('_', " ");
        words.contains(&spaced) && !literals().any(|other| spaced.contains(other) || other.contains(&spaced))
    });
    match joined.map(|literal| literal.trim_matches('_')) {
        Some(literal) => words.replace(&literal.replace('_', " "), literal),
        None => words,
    }
}

/// Whether a trigger may begin in the text and end in a value. One byte is no matter: it stands before each value in a
/// batch, too.
fn spans(before: &[u8], scanner: &Scanner) -> bool {
    literals(scanner.rules()).any(|literal| {
        (2..literal.bytes.len().min(before.len() + 1))
            .any(|len| before[before.len() - len..].eq_ignore_ascii_case(&literal.bytes[..len]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_into_words() {
        let check = |name: &str, expect: &str| assert_eq!(words(name), expect, "{name}");
        check("customerEMail2", "customer e mail 2");
        check("date_of_birth", "date of birth");
        check("IPAddress", "ip address");
        check("userID", "user id");
        check("E-Mail", "e mail");
        check("  \"; drop table x --", "drop table x");
        check("Straße", "straße");
        check("", "");
        assert!(words(&"x".repeat(10_000)).len() <= NAME_MAX);
    }

    #[test]
    fn joined_words_and_short_forms_are_known_by_the_rules_words() {
        let known = Vocabulary::of(&RuleSet::builtin().unwrap());
        let check = |name: &str, expect: &str| assert_eq!(known.words(name), expect, "{name}");
        check("emailaddress", "email address");
        check("HOMEPHONE", "home phone");
        check("cardholdername", "cardholder name");
        check("fname", "first name");
        check("addr_2", "address 2");
        check("ip_adresse", "ip street address");
        check("cardinality", "cardinality");
        check("quantity", "quantity");
    }
}
