//! Short texts of fixed lists that are looked for in values: what stands in place of a secret, words of code, names of
//! public things. A list is asked for every value of every text, and hardly any value has one of its texts: so two
//! tables tell of two neighbouring bytes at once which of all texts may begin there, and the texts themselves are hardly
//! ever compared. It must not know what a list is for.

/// Texts of a list, at most: one bit each.
const LIST_MAX: usize = u64::BITS as usize;

/// A list of texts, each of at least one byte.
pub struct Parts {
    parts: &'static [&'static str],
    any_case: bool,
    /// By byte: which texts begin with it, as bits.
    first: [u64; 256],
    /// By byte: which may have it second; those of one byte have any.
    second: [u64; 256],
    /// Those of one byte.
    single: u64,
}

impl Parts {
    /// As they are written.
    pub const fn new(parts: &'static [&'static str]) -> Parts {
        Parts::of(parts, false)
    }

    /// In any case of their ASCII letters.
    pub const fn in_any_case(parts: &'static [&'static str]) -> Parts {
        Parts::of(parts, true)
    }

    const fn of(parts: &'static [&'static str], any_case: bool) -> Parts {
        assert!(parts.len() <= LIST_MAX);
        let (mut first, mut second, mut single) = ([0; 256], [0; 256], 0);
        let mut number = 0;
        while number < parts.len() {
            let text = parts[number].as_bytes();
            let bit = 1 << number;
            add(&mut first, text[0], bit, any_case);
            if text.len() == 1 {
                single |= bit;
            } else {
                add(&mut second, text[1], bit, any_case);
            }
            number += 1;
        }
        let mut byte = 0;
        while byte < second.len() {
            second[byte] |= single;
            byte += 1;
        }
        Parts { parts, any_case, first, second, single }
    }

    /// Whether one of them is somewhere in `text`.
    pub fn is_in(&self, text: &[u8]) -> bool {
        let mut pairs = text.windows(2).enumerate();
        pairs.any(|(at, pair)| self.may_begin(pair[0], Some(pair[1])) != 0 && self.begins(&text[at..]))
            || text.last().is_some_and(|last| self.may_begin(*last, None) != 0)
    }

    /// Whether `text` begins with one of them.
    pub fn begins(&self, text: &[u8]) -> bool {
        self.any(text, |text, part| text.get(..part.len()).is_some_and(|start| self.same(start, part)))
    }

    /// Whether `text` is one of them.
    pub fn has(&self, text: &[u8]) -> bool {
        self.any(text, |text, part| self.same(text, part))
    }

    /// Which of them a text may begin with by its first bytes, as bits.
    fn may_begin(&self, byte: u8, next: Option<u8>) -> u64 {
        self.first[usize::from(byte)] & next.map_or(self.single, |next| self.second[usize::from(next)])
    }

    fn same(&self, text: &[u8], part: &[u8]) -> bool {
        if self.any_case { text.eq_ignore_ascii_case(part) } else { text == part }
    }

    /// Whether one that has the first bytes of `text` passes.
    fn any(&self, text: &[u8], passes: impl Fn(&[u8], &[u8]) -> bool) -> bool {
        let Some(&byte) = text.first() else { return false };
        let mut may = self.may_begin(byte, text.get(1).copied());
        while may != 0 {
            if passes(text, self.parts[may.trailing_zeros() as usize].as_bytes()) {
                return true;
            }
            may &= may - 1;
        }
        false
    }
}

const fn add(table: &mut [u64; 256], byte: u8, bit: u64, any_case: bool) {
    table[byte as usize] |= bit;
    if any_case {
        table[byte.to_ascii_lowercase() as usize] |= bit;
        table[byte.to_ascii_uppercase() as usize] |= bit;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXTS: &[&str] = &["a", "Ba", "bab", "ccc", "c.", "\u{e9}"];
    static EXACT: Parts = Parts::new(TEXTS);
    static ANY_CASE: Parts = Parts::in_any_case(TEXTS);

    proptest! {
        #[test]
        fn lists_are_searched_as_each_text_would_be(text in "[abcABC.é]{0,5}") {
            let lower = text.to_ascii_lowercase();
            let any = |is: &dyn Fn(&str) -> bool| TEXTS.iter().any(|part| is(part));
            let any_lower = |is: &dyn Fn(&str) -> bool| any(&|part| is(&part.to_ascii_lowercase()));
            prop_assert_eq!(EXACT.is_in(text.as_bytes()), any(&|part| text.contains(part)));
            prop_assert_eq!(EXACT.begins(text.as_bytes()), any(&|part| text.starts_with(part)));
            prop_assert_eq!(EXACT.has(text.as_bytes()), any(&|part| text == part));
            prop_assert_eq!(ANY_CASE.is_in(text.as_bytes()), any_lower(&|part| lower.contains(part)));
            prop_assert_eq!(ANY_CASE.begins(text.as_bytes()), any_lower(&|part| lower.starts_with(part)));
            prop_assert_eq!(ANY_CASE.has(text.as_bytes()), any_lower(&|part| lower == part));
        }
    }
}
