//! From Go's regexes to ours. The two are of one kind, and most are the same in both; what is written differently is
//! rewritten, and repetitions without an end get one, because the engine finds matches in bounded pieces of text.

use regex_syntax::ast::{self, Ast, RepetitionKind, RepetitionRange};
use regex_syntax::hir::{Class, Hir, HirKind};

use crate::rules::derive;
use crate::rules::pattern::{self, Pattern};

/// Rounds of a repetition without an end, the first of these that the engine takes.
const ROUNDS: [u32; 7] = [256, 128, 64, 32, 16, 8, 4];
/// Rounds that are as good as endless.
const PLENTY: u32 = 64;
/// Blanks in a row that are more than any rule means.
const BLANKS_MAX: u32 = 64;
/// How many times longer than others a text of any bytes may be: what is between the head and the tail of a key.
const ANYTHING: u32 = 7;
/// Bytes of a match before its trigger: each is searched from, for every trigger.
const LEAD_MAX: usize = 256;

/// What `^` and `$` mean.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Anchors {
    /// The ends of what is searched, as they are.
    Text,
    /// The ends of lines: a rule is searched in pieces, which do not know the ends of the whole.
    Lines,
}

/// A rule's regex within bounds.
pub struct Bounded {
    pub text: String,
    pub pattern: Pattern,
    /// If it had to be cut: after how many rounds repetitions end now.
    pub rounds: Option<u32>,
}

impl Bounded {
    /// Whether a match may be longer than the engine lets it be.
    pub fn loses(&self) -> bool {
        self.rounds.is_some_and(|rounds| rounds < PLENTY) || self.loses_length()
    }

    /// The same where only the length of the whole is limited, and no repetition by itself.
    pub fn loses_length(&self) -> bool {
        self.rounds.is_some_and(|rounds| repeats_anything(&self.pattern.hir, rounds))
    }
}

/// The same regex in our syntax.
pub fn translate(go: &str, anchors: Anchors) -> String {
    let mut out = String::with_capacity(go.len() + 16);
    let mut rest = go;
    // Whether there is something that a count behind it repeats.
    let mut repeatable = false;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        let counts = repeatable;
        repeatable = !matches!(c, '(' | '|');
        rest = match c {
            '\\' => escape(after, anchors, &mut out),
            '[' => class(after, &mut out),
            '(' => group(after, &mut out),
            '{' => match counted(after) {
                Some(len) if counts => {
                    out.push_str(&rest[..1 + len]);
                    &after[len..]
                }
                _ => {
                    out.push_str(r"\{");
                    after
                }
            },
            '^' | '$' if anchors == Anchors::Lines => {
                out.push_str(if c == '^' { "(?m:^)" } else { "(?m:$)" });
                after
            }
            '}' | ']' => {
                out.extend(['\\', c]);
                after
            }
            c if c.is_ascii() => {
                out.push(c);
                after
            }
            c => {
                out.push_str(&format!("(?u:{c})"));
                after
            }
        };
    }
    out
}

/// The length of `n}`, `n,}` or `n,m}` at the start.
fn counted(text: &str) -> Option<usize> {
    let end = text.find('}')?;
    let (least, most) = text[..end].split_once(',').unwrap_or((&text[..end], ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    (!least.is_empty() && digits(least) && digits(most)).then_some(end + 1)
}

/// Up to the end of what says which kind of group it is.
fn group<'r>(after: &'r str, out: &mut String) -> &'r str {
    out.push('(');
    let Some(kind) = after.strip_prefix('?') else { return after };
    let len = kind.find([':', ')', '>']).unwrap_or(kind.len());
    out.push('?');
    out.push_str(&kind[..len]);
    &kind[len..]
}

/// What stands behind a backslash outside of a class.
fn escape<'r>(after: &'r str, anchors: Anchors, out: &mut String) -> &'r str {
    let Some(c) = after.chars().next() else {
        out.push('\\');
        return after;
    };
    let next = &after[c.len_utf8()..];
    match c {
        'Q' => {
            let (quoted, rest) = next.split_once(r"\E").unwrap_or((next, ""));
            for c in quoted.chars() {
                push_char(c, out);
            }
            return rest;
        }
        'E' => {}
        'A' if anchors == Anchors::Lines => out.push_str("(?m:^)"),
        'z' if anchors == Anchors::Lines => out.push_str("(?m:$)"),
        'p' | 'P' => {
            let len = property_len(next);
            out.push_str(&format!(r"(?u:\{c}{})", &next[..len]));
            return &next[len..];
        }
        'x' if next.starts_with('{') => {
            let len = property_len(next);
            out.push_str(&format!(r"\x{}", &next[..len]));
            return &next[len..];
        }
        '0'..='7' => return octal(after, out),
        c if c.is_ascii_alphanumeric() => out.extend(['\\', c]),
        c => push_char(c, out),
    }
    next
}

/// The length of `L` or `{Greek}`.
fn property_len(text: &str) -> usize {
    match text.strip_prefix('{') {
        Some(inner) => inner.find('}').map_or(text.len(), |at| at + 2),
        None => text.chars().next().map_or(0, char::len_utf8),
    }
}

/// Up to three octal digits.
fn octal<'r>(digits: &'r str, out: &mut String) -> &'r str {
    let len = digits.bytes().take(3).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
    let value = u32::from_str_radix(&digits[..len], 8).expect("one to three octal digits");
    out.push_str(&format!(r"\x{{{value:x}}}"));
    &digits[len..]
}

/// A character as itself.
fn push_char(c: char, out: &mut String) {
    match c {
        c if !c.is_ascii() => out.push_str(&format!("(?u:{c})")),
        '<' | '>' => out.push(c),
        c if c.is_ascii_punctuation() => out.extend(['\\', c]),
        c => out.push(c),
    }
}

/// A class from behind its bracket on. In ours a bracket within it opens another, and `&&`, `--` and `~~` stand
/// between two; in Go's they are themselves.
fn class<'r>(after: &'r str, out: &mut String) -> &'r str {
    let mut body = String::from("[");
    let mut unicode = false;
    let mut rest = after;
    if let Some(negated) = rest.strip_prefix('^') {
        body.push('^');
        rest = negated;
    }
    let mut first = true;
    while let Some(c) = rest.chars().next() {
        let next = &rest[c.len_utf8()..];
        if c == ']' && !first {
            body.push(']');
            let (open, close) = if unicode { ("(?u:", ")") } else { ("", "") };
            out.extend([open, &body, close]);
            return next;
        }
        first = false;
        if let Some(len) = posix_len(rest) {
            body.push_str(&rest[..len]);
            rest = &rest[len..];
            continue;
        }
        let (member, behind) = class_member(rest);
        rest = behind;
        match member {
            Member::Set(text) => {
                unicode |= text.starts_with(r"\p") || text.starts_with(r"\P");
                body.push_str(text);
            }
            Member::One(c) => {
                unicode |= !c.is_ascii();
                push_member(c, &mut body);
                let range =
                    rest.strip_prefix('-').filter(|behind| !behind.is_empty() && !behind.starts_with(']'));
                if let Some((Member::One(end), behind)) = range.map(class_member) {
                    unicode |= !end.is_ascii();
                    body.push('-');
                    push_member(end, &mut body);
                    rest = behind;
                }
            }
        }
    }
    // It has no end: what reads the result says so.
    out.push_str(&body);
    rest
}

enum Member<'r> {
    One(char),
    /// Such as `\d`.
    Set(&'r str),
}

/// The length of a class such as `[:alpha:]`.
fn posix_len(text: &str) -> Option<usize> {
    let name = text.strip_prefix("[:")?;
    let end = name.find(":]")?;
    name[..end].bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'^').then_some(end + 4)
}

fn class_member(text: &str) -> (Member<'_>, &str) {
    let mut chars = text.chars();
    let c = chars.next().unwrap_or_default();
    if c != '\\' {
        return (Member::One(c), chars.as_str());
    }
    let behind = chars.as_str();
    let Some(escaped) = chars.next() else { return (Member::One('\\'), "") };
    let one = |c| (Member::One(c), &behind[1..]);
    match escaped {
        'd' | 'D' | 's' | 'S' | 'w' | 'W' => (Member::Set(&text[..2]), &behind[1..]),
        'p' | 'P' => {
            let len = 2 + property_len(&behind[1..]);
            (Member::Set(&text[..len]), &text[len..])
        }
        'x' => hexadecimal(behind),
        '0'..='7' => {
            let len = behind.bytes().take(3).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
            let value = u32::from_str_radix(&behind[..len], 8).ok().and_then(char::from_u32);
            (Member::One(value.unwrap_or_default()), &behind[len..])
        }
        'a' => one('\x07'),
        'f' => one('\x0c'),
        'n' => one('\n'),
        'r' => one('\r'),
        't' => one('\t'),
        'v' => one('\x0b'),
        other => (Member::One(other), &behind[other.len_utf8()..]),
    }
}

/// `x7f` or `x{7f}`.
fn hexadecimal(text: &str) -> (Member<'_>, &str) {
    let digits = &text[1..];
    let (digits, rest) = match digits.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
        Some(split) => split,
        None => digits.split_at_checked(2).unwrap_or((digits, "")),
    };
    let value = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
    (Member::One(value.unwrap_or_default()), rest)
}

fn push_member(c: char, out: &mut String) {
    match c {
        c if c.is_ascii_alphanumeric() || !c.is_ascii() || matches!(c, '<' | '>' | ' ') => out.push(c),
        c if c.is_ascii_punctuation() => out.extend(['\\', c]),
        c => out.push_str(&format!(r"\x{{{:x}}}", u32::from(c))),
    }
}

/// The regex with its repetitions cut as little as needed for the engine.
pub fn bound(text: &str) -> Result<Bounded, String> {
    let ast = ast::parse::Parser::new()
        .parse(text)
        .map_err(|error| format!("regex does not parse: {}", error.kind()))?;
    let refused = match pattern::parse(text) {
        Ok(pattern) => return Ok(Bounded { text: text.to_owned(), pattern, rounds: None }),
        Err(reason) => reason,
    };
    for rounds in ROUNDS {
        let mut ast = ast.clone();
        cap(&mut ast, rounds);
        let text = print(&ast);
        let Ok(pattern) = pattern::parse(&text) else { continue };
        if derive::rarest(&pattern.hir).is_none_or(|set| set.lead.max <= LEAD_MAX) {
            return Ok(Bounded { text, pattern, rounds: Some(rounds) });
        }
    }
    Err(refused)
}

/// Ends every repetition after so many rounds, or as few as it asks for.
fn cap(ast: &mut Ast, rounds: u32) {
    match ast {
        Ast::Repetition(repetition) => {
            let (min, max) = match repetition.op.kind {
                RepetitionKind::ZeroOrOne => (0, 1),
                RepetitionKind::ZeroOrMore => (0, u32::MAX),
                RepetitionKind::OneOrMore => (1, u32::MAX),
                RepetitionKind::Range(RepetitionRange::Exactly(n)) => (n, n),
                RepetitionKind::Range(RepetitionRange::AtLeast(n)) => (n, u32::MAX),
                RepetitionKind::Range(RepetitionRange::Bounded(n, m)) => (n, m),
            };
            // Most repetitions have an end that is near.
            if max > rounds.min(BLANKS_MAX).max(min) {
                let most = match Repeated::of(&repetition.ast) {
                    Repeated::Blanks => rounds.min(BLANKS_MAX),
                    Repeated::Anything => rounds * ANYTHING,
                    Repeated::Other => rounds,
                };
                let range = RepetitionRange::Bounded(min, max.min(most.max(min)));
                repetition.op.kind = RepetitionKind::Range(range);
            }
            cap(&mut repetition.ast, rounds);
        }
        Ast::Group(group) => cap(&mut group.ast, rounds),
        Ast::Concat(concat) => concat.asts.iter_mut().for_each(|part| cap(part, rounds)),
        Ast::Alternation(branches) => branches.asts.iter_mut().for_each(|branch| cap(branch, rounds)),
        _ => {}
    }
}

fn print(ast: &Ast) -> String {
    let mut text = String::new();
    ast::print::Printer::new().print(ast, &mut text).expect("a string takes all that is printed");
    text
}

/// What a repetition is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeated {
    Blanks,
    /// Bytes of any kind.
    Anything,
    Other,
}

impl Repeated {
    fn of(ast: &Ast) -> Repeated {
        match pattern::read(&print(ast)) {
            Ok(hir) => Repeated::of_hir(&hir),
            Err(_) => Repeated::Other,
        }
    }

    fn of_hir(hir: &Hir) -> Repeated {
        if derive::only(hir, |byte| byte.is_ascii_whitespace() || byte == b'\x0b') {
            return Repeated::Blanks;
        }
        match hir.kind() {
            HirKind::Class(Class::Bytes(class))
                if class.iter().map(|range| range.len()).sum::<usize>() == 256 =>
            {
                Repeated::Anything
            }
            _ => Repeated::Other,
        }
    }
}

/// Whether bytes of any kind are repeated as often as the engine lets them be.
fn repeats_anything(hir: &Hir, rounds: u32) -> bool {
    match hir.kind() {
        HirKind::Repetition(repetition) if Repeated::of_hir(&repetition.sub) == Repeated::Anything => {
            repetition.max.is_none_or(|max| max >= rounds * ANYTHING)
        }
        kind => kind.subs().iter().any(|sub| repeats_anything(sub, rounds)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MAX_MATCH_LEN;

    fn check(go: &str, expected: &str) {
        let found = translate(go, Anchors::Lines);
        assert_eq!(found, expected, "{go}");
        pattern::read(&found).unwrap_or_else(|error| panic!("{go}: {error}"));
    }

    #[test]
    fn what_is_the_same_stays() {
        for regex in [
            r"(?i)\b(acme_[a-z0-9]{32,})(?:\s|=)*?",
            r"(?P<name>[[:alnum:]]{3,5})|\x41\x{4F}",
            r"a(?i)b(?-i:c)",
            r"[^a-z\d]+\.x",
        ] {
            check(regex, regex);
        }
    }

    #[test]
    fn what_is_written_differently_is_rewritten() {
        check(r"a\/b\<c\>\_\ d", r"a\/b<c>\_ d");
        check(r"\Qa.b[\E+", r"a\.b\[+");
        check(r"\Qa.b", r"a\.b");
        check(r#"{"key": ${x}"#, r#"\{"key": (?m:$)\{x\}"#);
        check(r"a{2}b{3,}c{4,5}d{,6}", r"a{2}b{3,}c{4,5}d\{,6\}");
        check(r"^a\z|\Ab$", r"(?m:^)a(?m:$)|(?m:^)b(?m:$)");
        check(r"a]b", r"a\]b");
        check(r"\({2}\|{3}({4}|{5})", r"\({2}\|{3}(\{4\}|\{5\})");
        check(r"\07\012", r"\x{7}\x{a}");
        check(r"é\pL", r"(?u:é)(?u:\pL)");
    }

    #[test]
    fn classes_are_flat() {
        check(r"[[a]", r"[\[a]");
        check(r"[]a]", r"[\]a]");
        check(r"[\w-.]", r"[\w\-\.]");
        check(r"[a&&+--c~~]", r"[a\&\&\+-\-c\~\~]");
        check(r"['|\x60;]", r"[\'\|\`\;]");
        check(r"[\n\r\t a-z]", r"[\x{a}\x{d}\x{9} a-z]");
        check(r"[!-\/]", r"[\!-\/]");
        check(r"[é]", r"(?u:[é])");
        check(r"[\pL_]", r"(?u:[\pL\_])");
        check(r"[a-]", r"[a\-]");
    }

    #[test]
    fn text_anchors_stay_where_the_text_is_whole() {
        assert_eq!(translate(r"^a\z$", Anchors::Text), r"^a\z$");
    }

    fn check_bound(regex: &str, expected: &str, rounds: Option<u32>, loses: bool) {
        let bounded = bound(regex).unwrap_or_else(|reason| panic!("{regex}: {reason}"));
        assert_eq!((bounded.text.as_str(), bounded.rounds), (expected, rounds), "{regex}");
        assert_eq!(bounded.loses(), loses, "{regex}");
        assert!(bounded.pattern.max_len <= MAX_MATCH_LEN);
    }

    #[test]
    fn endless_repetitions_end() {
        check_bound("acme_[a-z]{3,9}", "acme_[a-z]{3,9}", None, false);
        check_bound("acme_[a-z]{20,}", "acme_[a-z]{20,256}", Some(256), false);
        check_bound(
            r#"acme\s*=[ \t]*"([^"]+)""#,
            r#"acme\s{0,64}=[ \t]{0,64}"([^"]{1,256})""#,
            Some(256),
            false,
        );
        check_bound(r"BEGIN KEY[\s\S]{64,}?END KEY", r"BEGIN KEY[\s\S]{64,1792}?END KEY", Some(256), true);
        check_bound(r"(?:[a-z]+\.)+acme\.test", r"(?:[a-z]{1,8}\.){1,8}acme\.test", Some(8), true);
        check_bound(r".*acme_secret", r".{0,256}acme_secret", Some(256), false);
    }

    #[test]
    fn what_has_no_bounds_is_told() {
        assert!(bound(".*").is_err());
        assert!(bound("acme[a-z]{3000}").is_err());
        assert!(bound("acme(").is_err());
    }
}
