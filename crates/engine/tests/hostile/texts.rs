//! Texts that are meant to be slow to scan: triggers without end, values without end, and what is between.

use domesday_engine::{Rule, Trigger};

/// What is repeated.
pub const UNITS: &[&str] = &[
    "a",
    "1",
    "1 ",
    "12-",
    "1234567890",
    "4111 1111 ",
    "4111-1111-",
    "4111.1111.",
    "4111 1111 1111 1111 ",
    "4012888888881881 ",
    "123456789 ",
    "1234567890 ",
    "12345678901 ",
    "123456789012\n",
    "1234567890123,",
    "12345678901234567,",
    "731-42-6508 ",
    "card 4012888888881881 ",
    "ssn 731-42-6508 ",
    "@",
    "a@",
    "a@a.",
    "a@b.co ",
    "x@x.com ",
    "ann@acme.com,",
    "mail ann.lee@corp-mail.org,",
    "key=",
    "password=",
    "password=hunter2 ",
    "password=hunter2",
    "password = \"Tr0ub4dor&3\"\n",
    "api_key: \"9fK2mQ7xT4vB8nL1\"\n",
    "secret: \"",
    "token",
    "token=",
    "\"",
    "'",
    "\\",
    "\\\"",
    "=",
    ":",
    "://",
    "::::",
    "a:",
    "aa:",
    "00:1b:44:11:3a:b7 ",
    "1.1.1.",
    "10.20.30.40 ",
    "84.12.91.200,",
    "2001:db8:85a3::8a2e:370:7334 ",
    "3f8a1c2e-77b4-4d19-9e05-b1c6d2a8f043 ",
    "eyJ",
    "eyJhbGciOiJub25l.",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.",
    "-----BEGIN ",
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----MIIEvQIBADANBgkq",
    "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC",
    "\"kty\":\"EC\",",
    "\"dp\",",
    "GB82WEST12345698765432 ",
    "GB82 WEST 1234 5698 7654 32 ",
    "+44 7700 921916 ",
    "+1-503-782-4416,",
    "(503) 782-4416 ",
    "tel 030/901820 ",
    "%41",
    "%3d%22",
    "%70%61%73%73%3d",
    "&#x41;",
    "&#65;&#66;",
    "\\u0041",
    "\\x41\\x42",
    "=3D=3D",
    "Ann Lee, Ben Cole, ",
    "Dear Ms. Moreau,\n",
    "1987-04-12 ",
    "born 12.04.1987\n",
    "ghp_",
    "AKIA",
    "AKIAIOSFODNN7EXAMPL",
    "xoxb-",
    "xoxb-123456789012-",
    "sk-",
    "sk_live_",
    "A1",
    "ab12cd34",
    "deadbeef",
    "cGFzc3dvcmQ9aHVudGVyMg== ",
    "cGFzc3dvcmQ9aHVudGVyMg",
    "70617373776f72643d68756e74657232 ",
    "\0",
    "\u{e9}",
    "\u{96fb}\u{8a71}",
    "\n",
    " ",
    "function(a){return a.b},",
    "{\"id\":1,\"key\":\"k\"},",
    "user:pass@host/",
    "https://user:hunter2@db.corp-mail.org/ ",
];

/// A text: its name, and how it is made.
pub type Text = (String, Box<dyn Fn() -> Vec<u8>>);

/// Every text, `len` bytes long.
pub fn all(len: usize) -> impl Iterator<Item = Text> {
    let units = UNITS.iter().flat_map(move |unit| both_ways(format!("{unit:?}"), unit, len));
    units.chain(random(len))
}

/// The unit over and over, and so that no two are the same.
fn both_ways(name: String, unit: &str, len: usize) -> [Text; 2] {
    let (same, other) = (unit.as_bytes().to_vec(), unit.as_bytes().to_vec());
    let varied: Text = (format!("{name} varied"), Box::new(move || varied(&other, len)));
    [(name, Box::new(move || repeated(&same, len))), varied]
}

/// The unit with other digits each time, or with one behind it if it has none.
fn varied(unit: &[u8], len: usize) -> Vec<u8> {
    let mut lot = Lot::new();
    let mut text = Vec::with_capacity(len + unit.len());
    while text.len() < len {
        let mut digit = || b'0' + lot.below(10) as u8;
        text.extend(unit.iter().map(|&byte| if byte.is_ascii_digit() { digit() } else { byte }));
        if !unit.iter().any(u8::is_ascii_digit) {
            text.push(digit());
        }
    }
    text.truncate(len);
    text
}

fn repeated(unit: &[u8], len: usize) -> Vec<u8> {
    let mut text = unit.repeat(len.div_ceil(unit.len()));
    text.truncate(len);
    text
}

/// Bytes and words drawn by lot, always the same.
fn random(len: usize) -> impl Iterator<Item = Text> {
    const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const HEXADECIMAL: &[u8] = b"0123456789abcdef";
    const DIGITS: &[u8] = b"0123456789";
    // Of which bytes, and of how many the lines are.
    let drawn: [(&str, &[u8], usize); 13] = [
        ("random base64", BASE64, len),
        ("random base64 in lines", BASE64, 76),
        ("random hexadecimal", HEXADECIMAL, len),
        ("random hexadecimal in words of 40", HEXADECIMAL, 40),
        ("random digits", DIGITS, len),
        ("random digits in words of 9", DIGITS, 9),
        ("random digits in words of 11", DIGITS, 11),
        ("random digits in words of 16", DIGITS, 16),
        ("random digits and separators", b"0123456789 -./0123456789", len),
        ("random digits, colons and dots", b"0123456789abcdef:.", len),
        ("random words of letters and digits", b"ABCDEFGHJKLMNPQRSTUVWXYZ0123456789 ", len),
        ("random signs", b"\"'=:;,@./-_(){}[]<>&%$#\\ ", len),
        ("random addresses", b"abcdefghij.@- ", len),
    ];
    let drawn = drawn.map(|(name, alphabet, line)| {
        let alphabet: Vec<_> = alphabet.chunks(1).collect();
        let text: Text = (name.to_owned(), Box::new(move || of_words(&alphabet, line, len)));
        text
    });
    const SECRETS: &[&str] = &[
        "password",
        "token",
        "key",
        "secret",
        "=",
        ":",
        "\"",
        "api_",
        " ",
        "user",
        "4111",
        "@",
        ".com",
        "1",
        "x9K2mQ7xT4",
    ];
    const CODE: &[&str] = &[
        "function ",
        "(a,b)",
        "{return ",
        "a.b",
        "=1,",
        "\"key\"",
        ":",
        "var e=",
        "t.id",
        "!0",
        "}",
        ";",
        "null==",
        "token",
    ];
    let words = [("random words of secrets", SECRETS), ("minified code", CODE)].map(|(name, words)| {
        let words: Vec<_> = words.iter().map(|word| word.as_bytes()).collect();
        let text: Text = (name.to_owned(), Box::new(move || of_words(&words, len, len)));
        text
    });
    let bytes: Text =
        ("random bytes".to_owned(), Box::new(move || (0..len).map(Lot::new().bytes()).collect()));
    drawn.into_iter().chain(words).chain([bytes])
}

/// Words in lines of `line` words.
fn of_words(words: &[&[u8]], line: usize, len: usize) -> Vec<u8> {
    let mut lot = Lot::new();
    let mut text = Vec::with_capacity(len);
    let mut in_line = 0;
    while text.len() < len {
        text.extend_from_slice(if in_line == line { b"\n" } else { words[lot.below(words.len())] });
        in_line = if in_line == line { 0 } else { in_line + 1 };
    }
    text.truncate(len);
    text
}

/// Every rule's first examples and triggers, over and over.
pub fn of_rules(rules: &[Rule], len: usize) -> impl Iterator<Item = Text> {
    rules.iter().flat_map(move |rule| {
        let examples = rule.positive.iter().take(1);
        let between = examples.flat_map(|example| ["", "\n"].map(|between| format!("{example}{between}")));
        let literals = match &rule.trigger {
            Trigger::Literals(literals) => &literals[..],
            Trigger::Shape(_) => &[],
        };
        let triggers =
            literals.iter().take(1).map(|literal| String::from_utf8_lossy(&literal.bytes).into_owned());
        let units: Vec<String> = between.chain(triggers).filter(|unit| !unit.is_empty()).collect();
        let id = rule.id.clone();
        units.into_iter().flat_map(move |unit| both_ways(format!("{id} {unit:?}"), &unit, len))
    })
}

struct Lot(u64);

impl Lot {
    fn new() -> Lot {
        Lot(0x2545_f491_4f6c_dd1d)
    }

    fn bytes(mut self) -> impl FnMut(usize) -> u8 {
        move |_| self.below(256) as u8
    }

    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as usize % n
    }
}
