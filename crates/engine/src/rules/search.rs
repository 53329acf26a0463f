//! Regexes that are searched in something short and whole: a value, its line, a path. Unlike a rule's regex they
//! need no bounds and no trigger; what is bounded is their size, so that one of them can neither fail when it is
//! compiled nor be slow.

use std::sync::OnceLock;

use regex_automata::meta::Regex;

use super::packed::Packed;
use super::pattern;

/// Bytes that the lazily built automaton may take per thread.
const CACHE_BYTES: usize = 256 * 1024;

/// Regexes of which any may match; compiled together when first needed.
#[derive(Clone, Default, Debug)]
pub struct Patterns {
    texts: Vec<String>,
    /// For the budget of all rules; not known of built-in ones, which are not charged.
    cost: usize,
    regex: OnceLock<Regex>,
}

impl Patterns {
    /// Refuses, with the remedy, what does not parse or is too large.
    pub fn new(texts: Vec<String>) -> Result<Patterns, String> {
        let mut size = 0usize;
        for text in &texts {
            let hir = pattern::read(text)
                .map_err(|error| format!("regex `{}` does not parse: {error}", head(text)))?;
            size = size.saturating_add(pattern::expanded_size(&hir));
            if size > pattern::EXPANDED_MAX {
                return Err(format!("regex `{}` makes the list too large: simplify it", head(text)));
            }
        }
        Ok(Patterns { texts, cost: size, regex: OnceLock::new() })
    }

    /// Words that may be part of a text, in any case.
    pub fn of_words(words: &[String]) -> Result<Patterns, String> {
        let regex = |word: &String| {
            let flags = if word.is_ascii() { "(?i)" } else { "(?iu)" };
            format!("{flags}{}", regex_syntax::escape(word))
        };
        Patterns::new(words.iter().filter(|word| !word.is_empty()).map(regex).collect())
    }

    pub fn cost(&self) -> usize {
        self.cost
    }

    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Whether one of them matches somewhere in `text`.
    pub fn is_match(&self, text: &[u8]) -> bool {
        !self.is_empty() && self.regex.get_or_init(|| compile(&self.texts)).is_match(text)
    }
}

/// They were checked before they were packed.
impl Packed for Patterns {
    fn pack(&self, out: &mut Vec<u8>) {
        self.texts.pack(out);
    }

    fn unpack(from: &mut &[u8]) -> Option<Patterns> {
        Some(Patterns { texts: Packed::unpack(from)?, cost: 0, regex: OnceLock::new() })
    }
}

/// The beginning of a text, for a message.
fn head(text: &str) -> &str {
    const SHOWN_MAX: usize = 80;
    text.char_indices().nth(SHOWN_MAX).map_or(text, |(end, _)| &text[..end])
}

fn compile(texts: &[String]) -> Regex {
    let read = |text: &String| pattern::read(text).expect("it parsed when it was loaded");
    let hirs: Vec<_> = texts.iter().map(read).collect();
    let config = Regex::config().utf8_empty(false).nfa_size_limit(None).hybrid_cache_capacity(CACHE_BYTES);
    let regex = Regex::builder().configure(config).build_many_from_hir(&hirs);
    regex.expect("the size is bounded when it is loaded")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(texts: &[&str], text: &str, expected: bool) {
        let patterns = Patterns::new(texts.iter().map(|&text| text.to_owned()).collect()).unwrap();
        assert_eq!(patterns.is_match(text.as_bytes()), expected, "{texts:?} in {text}");
    }

    #[test]
    fn any_of_them_may_match_anywhere() {
        check(&[], "a", false);
        check(&["b+", "^c$"], "abb", true);
        check(&["b+", "^c$"], "cc", false);
        check(&["(^|/)vendor/"], "vendor/a.go", true);
        check(&["(^|/)vendor/"], "myvendor/a.go", false);
    }

    #[test]
    fn words_are_found_in_any_case() {
        let words = Patterns::of_words(&["a.B".to_owned(), "É".to_owned(), String::new()]).unwrap();
        assert_eq!(words.texts().len(), 2);
        for (text, expected) in [("xA.bx", true), ("axb", false), ("caf\u{e9}", true), ("", false)] {
            assert_eq!(words.is_match(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_compiled_is_refused() {
        let refused = |text: &str| Patterns::new(vec![text.to_owned()]).unwrap_err();
        assert_eq!(refused("(a"), "regex `(a` does not parse: unclosed group");
        assert!(refused(r"(?u:\pL{900}){900}").ends_with("makes the list too large: simplify it"));
    }
}
