//! Which databases, schemas and tables the user wants: patterns of dotted names, matched level by level.
//!
//! A pattern has a part for each level, such as `shop.public.customer*`; `*` stands for any text within a part,
//! `?` for one character, and `\` takes the next character as it is. A pattern with fewer parts than a name has
//! levels speaks of all that is below.

use super::config::DatabaseConfig;

pub(super) struct Patterns {
    include: Vec<Pattern>,
    exclude: Vec<Pattern>,
}

/// One part for each level.
struct Pattern(Vec<Vec<Piece>>);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Piece {
    Char(char),
    AnyChar,
    AnyText,
}

impl Patterns {
    pub fn new(config: &DatabaseConfig) -> Result<Patterns, (&'static str, String)> {
        let parse = |field, patterns: &[String]| {
            let parsed: Result<Vec<Pattern>, String> =
                patterns.iter().map(|text| Pattern::parse(text)).collect();
            parsed.map_err(|problem| (field, problem))
        };
        let include = parse("include", &config.include)?;
        Ok(Patterns { include, exclude: parse("exclude", &config.exclude)? })
    }

    /// Whether what has this name, and all below it, is left out. What may have something below it that is
    /// included is not.
    pub fn leave_out(&self, name: &[&str]) -> bool {
        self.exclude.iter().any(|pattern| pattern.0.len() <= name.len() && pattern.agrees(name))
            || (!self.include.is_empty() && !self.include.iter().any(|pattern| pattern.agrees(name)))
    }
}

impl Pattern {
    fn parse(text: &str) -> Result<Pattern, String> {
        let mut parts = vec![Vec::new()];
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            let piece = match c {
                '.' => {
                    parts.push(Vec::new());
                    continue;
                }
                '*' => Piece::AnyText,
                '?' => Piece::AnyChar,
                '\\' => Piece::Char(chars.next().ok_or_else(|| format!("`{text}` ends with a backslash"))?),
                c => Piece::Char(c),
            };
            parts.last_mut().expect("there is always a part").push(piece);
        }
        match parts.iter().all(|part| !part.is_empty()) {
            true => Ok(Pattern(parts)),
            false => Err(format!("`{text}` has an empty part: write names such as `shop.public.customer*`")),
        }
    }

    /// Whether it agrees with a name as far as both go.
    fn agrees(&self, name: &[&str]) -> bool {
        self.0.iter().zip(name).all(|(part, name)| matches(part, name))
    }
}

/// Looks at each character once per `*` before it, at most.
fn matches(part: &[Piece], name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    let (mut at, mut read) = (0, 0);
    // The last `*`, and where in the name it was taken to end.
    let mut star: Option<(usize, usize)> = None;
    while read < name.len() {
        match part.get(at) {
            Some(Piece::AnyText) => {
                star = Some((at, read));
                at += 1;
            }
            Some(Piece::AnyChar) => (at, read) = (at + 1, read + 1),
            Some(Piece::Char(c)) if *c == name[read] => (at, read) = (at + 1, read + 1),
            _ => match star {
                Some((from, end)) => {
                    star = Some((from, end + 1));
                    (at, read) = (from + 1, end + 1);
                }
                None => return false,
            },
        }
    }
    part[at..].iter().all(|piece| *piece == Piece::AnyText)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(include: &[&str], exclude: &[&str]) -> Patterns {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        let config =
            DatabaseConfig { include: owned(include), exclude: owned(exclude), ..DatabaseConfig::default() };
        Patterns::new(&config).unwrap()
    }

    #[test]
    fn each_level_is_matched_by_its_part() {
        let include = patterns(&["shop.public.customer*", "crm"], &[]);
        for (name, is_out) in [
            (&["shop"][..], false),
            (&["other"], true),
            (&["shop", "public"], false),
            (&["shop", "audit"], true),
            (&["shop", "public", "customers"], false),
            (&["shop", "public", "orders"], true),
            (&["crm"], false),
            (&["crm", "any"], false),
            (&["crm", "any", "table"], false),
        ] {
            assert_eq!(include.leave_out(name), is_out, "{name:?}");
        }
        let exclude = patterns(&[], &["shop.audit", "*.*.*_old", r"a\.b", "??"]);
        for (name, is_out) in [
            (&["shop"][..], false),
            (&["shop", "audit"], true),
            (&["shop", "public", "x_old"], true),
            (&["shop", "public", "x_older"], false),
            (&["a.b"], true),
            (&["xy"], true),
        ] {
            assert_eq!(exclude.leave_out(name), is_out, "{name:?}");
        }
    }

    #[test]
    fn stars_match_any_text_and_hostile_ones_end() {
        let star = |pattern: &str, name: &str| {
            let Pattern(parts) = Pattern::parse(pattern).unwrap();
            matches(&parts[0], name)
        };
        assert!(star("*", "") && star("a*b*c", "a-b-b-c") && star("*\u{e9}", "caf\u{e9}"));
        assert!(!star("a*b", "a") && !star("?", "") && star(r"\*", "*") && !star(r"\*", "x"));
        assert!(!star(&"*a".repeat(200), &"a".repeat(100)));
    }
}
