//! A reader of JSON for the small documents inside tokens.
//!
//! It is strict, so that text that merely begins with a brace is told from a document, and bounded: it reads each
//! byte once, never nests beyond [`DEPTH_MAX`] and allocates nothing. Escapes in strings are checked, not resolved:
//! the names and values that validators ask for have none.

/// Objects and lists within one another, at most.
const DEPTH_MAX: usize = 16;

/// A JSON object that was read to its end.
#[derive(Clone, Copy)]
pub(super) struct Object<'a> {
    text: &'a [u8],
}

/// The object that is all of `text`, blanks around it aside.
pub(super) fn object(text: &[u8]) -> Option<Object<'_>> {
    let text = text.trim_ascii();
    let mut reader = Reader { text, at: 0 };
    reader.members(0, |_, _| ())?;
    (reader.at == text.len()).then_some(Object { text })
}

impl<'a> Object<'a> {
    /// The raw text of a member's value; of several with the same name, the last.
    fn member(&self, name: &str) -> Option<&'a [u8]> {
        let mut found = None;
        let mut reader = Reader { text: self.text, at: 0 };
        reader.members(0, |key, value| {
            if key == name.as_bytes() {
                found = Some(value);
            }
        })?;
        found
    }

    pub fn has(&self, name: &str) -> bool {
        self.member(name).is_some()
    }

    pub fn string(&self, name: &str) -> Option<&'a [u8]> {
        self.member(name)?.strip_prefix(b"\"")?.strip_suffix(b"\"")
    }

    /// A whole number that is not negative.
    pub fn number(&self, name: &str) -> Option<u64> {
        str::from_utf8(self.member(name)?).ok()?.parse().ok()
    }
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Takes `byte` if it comes next.
    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// One object; `each` gets the names and the raw values.
    fn members(&mut self, depth: usize, mut each: impl FnMut(&'a [u8], &'a [u8])) -> Option<()> {
        self.take(b'{')?;
        self.blanks();
        if self.take(b'}').is_some() {
            return Some(());
        }
        loop {
            self.blanks();
            let name = self.string()?;
            self.blanks();
            self.take(b':')?;
            self.blanks();
            let from = self.at;
            self.value(depth)?;
            each(name, &self.text[from..self.at]);
            self.blanks();
            if self.take(b',').is_none() {
                return self.take(b'}');
            }
        }
    }

    fn list(&mut self, depth: usize) -> Option<()> {
        self.take(b'[')?;
        self.blanks();
        if self.take(b']').is_some() {
            return Some(());
        }
        loop {
            self.blanks();
            self.value(depth)?;
            self.blanks();
            if self.take(b',').is_none() {
                return self.take(b']');
            }
        }
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        match self.peek()? {
            b'{' | b'[' if depth >= DEPTH_MAX => None,
            b'{' => self.members(depth + 1, |_, _| ()),
            b'[' => self.list(depth + 1),
            b'"' => self.string().map(|_| ()),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.text[self.at..].starts_with(word).then(|| self.at += word.len())
    }

    fn digits(&mut self) -> Option<()> {
        let from = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > from).then_some(())
    }

    fn number(&mut self) -> Option<()> {
        let _ = self.take(b'-');
        self.digits()?;
        if self.take(b'.').is_some() {
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Some(())
    }

    /// What stands between the quotes.
    fn string(&mut self) -> Option<&'a [u8]> {
        self.take(b'"')?;
        let from = self.at;
        loop {
            let byte = self.peek()?;
            self.at += 1;
            match byte {
                b'"' => return Some(&self.text[from..self.at - 1]),
                b'\\' => match self.peek()? {
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
                    b'u' => {
                        let code = self.text.get(self.at + 1..self.at + 5)?;
                        code.iter().all(u8::is_ascii_hexdigit).then(|| self.at += 5)?;
                    }
                    _ => return None,
                },
                0..0x20 => return None,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found() {
        let text =
            br#" {"alg":"HS256","list":[1,{"alg":"inner"},null],"exp": 1900000000,"f":-1.5e+3,"q":"a\"bA"} "#;
        let object = object(text).expect("an object");
        assert_eq!(object.string("alg"), Some(&b"HS256"[..]));
        assert_eq!(object.number("exp"), Some(1_900_000_000));
        assert_eq!(object.string("q"), Some(&br#"a\"bA"#[..]));
        assert!(object.has("list") && object.has("f") && !object.has("inner"));
        assert_eq!((object.number("f"), object.string("exp"), object.number("alg")), (None, None, None));
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for text in [
            "",
            "{",
            "}",
            "[]",
            "\"a\"",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{\"a\":1}x",
            "{\"a\":01x}",
            "{\"a\":\"\u{1}\"}",
            "{\"a\":\"\\x\"}",
            "{\"a\":\"\\u12\"}",
            "{\"a\":tru}",
            "{a:1}",
            "{\"a\":-}",
            "{\"a\":1.}",
        ] {
            assert!(object(text.as_bytes()).is_none(), "{text:?}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        assert!(object(nested(DEPTH_MAX).as_bytes()).is_some());
        assert!(object(nested(DEPTH_MAX + 1).as_bytes()).is_none());
        assert!(object("{\"a\":".repeat(100_000).as_bytes()).is_none());
    }
}
