//! Texts as short descriptions: a unit that is repeated, of pieces that are the same each time or made up anew. What
//! is the same each time can be remembered by whoever scans it; what is not cannot.

use std::fmt;

/// What begins the made-up pieces of every text, so that a description is the whole text.
const SEED: u64 = 0x2545_f491_4f6c_dd1d;

const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
const CAPITALS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const DIGITS: &[u8] = b"0123456789";

/// Xorshift: enough for texts, and useless for anything secret.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        // A state of zeros would stay one.
        Random(seed.wrapping_mul(SEED) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 16
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    Digits,
    Hex,
    Letters,
    Base64,
    Bytes,
}

impl Class {
    pub const ALL: [Class; 5] = [Class::Digits, Class::Hex, Class::Letters, Class::Base64, Class::Bytes];

    fn byte(self, random: &mut Random) -> u8 {
        const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let alphabet: &[u8] = match self {
            Class::Digits => DIGITS,
            Class::Hex => b"0123456789abcdef",
            Class::Letters => LETTERS,
            Class::Base64 => BASE64,
            Class::Bytes => return random.next() as u8,
        };
        alphabet[random.below(alphabet.len())]
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Piece {
    Fixed(Vec<u8>),
    /// So many bytes of a class, other ones each time.
    Any(Class, usize),
    /// Other letters for letters and other digits for digits each time, from this byte on.
    Varied(Vec<u8>, usize),
}

impl Piece {
    pub fn text(text: impl AsRef<[u8]>) -> Piece {
        Piece::Fixed(text.as_ref().to_vec())
    }

    pub fn len(&self) -> usize {
        match self {
            Piece::Fixed(bytes) | Piece::Varied(bytes, _) => bytes.len(),
            Piece::Any(_, len) => *len,
        }
    }

    fn write(&self, random: &mut Random, out: &mut Vec<u8>) {
        match self {
            Piece::Fixed(bytes) => out.extend_from_slice(bytes),
            Piece::Any(class, len) => out.extend((0..*len).map(|_| class.byte(random))),
            Piece::Varied(bytes, from) => {
                let (same, other) = bytes.split_at((*from).min(bytes.len()));
                out.extend_from_slice(same);
                out.extend(other.iter().map(|byte| varied(*byte, random)));
            }
        }
    }
}

fn varied(byte: u8, random: &mut Random) -> u8 {
    let alphabet = match byte {
        b'0'..=b'9' => DIGITS,
        b'a'..=b'z' => LETTERS,
        b'A'..=b'Z' => CAPITALS,
        _ => return byte,
    };
    alphabet[random.below(alphabet.len())]
}

/// What a text repeats.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unit(pub Vec<Piece>);

impl Unit {
    pub fn len(&self) -> usize {
        self.0.iter().map(Piece::len).sum()
    }

    /// The text of this length. A unit of nothing makes no text.
    pub fn fill(&self, len: usize) -> Vec<u8> {
        let (mut random, mut text) = (Random::new(SEED), Vec::with_capacity(len + self.len()));
        while text.len() < len && self.len() > 0 {
            self.0.iter().for_each(|piece| piece.write(&mut random, &mut text));
        }
        text.truncate(len);
        text
    }
}

/// As `"fixed" digits*16 varied("abc12", 2)`.
impl fmt::Display for Unit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, piece) in self.0.iter().enumerate() {
            let between = if index > 0 { " " } else { "" };
            match piece {
                Piece::Fixed(bytes) => write!(out, "{between}\"{}\"", bytes.escape_ascii())?,
                Piece::Any(class, len) => {
                    write!(out, "{between}{}*{len}", format!("{class:?}").to_lowercase())?;
                }
                Piece::Varied(bytes, from) => {
                    write!(out, "{between}varied(\"{}\", {from})", bytes.escape_ascii())?
                }
            }
        }
        Ok(())
    }
}

/// The texts that are made to be slow, by name.
pub fn hostile() -> Vec<(&'static str, Unit)> {
    let same = |text: &str| Unit(vec![Piece::text(text)]);
    let any = |class, len| Unit(vec![Piece::Any(class, len)]);
    let varied = |text: &str, from| Unit(vec![Piece::Varied(text.into(), from)]);
    let then = |text: &str, class, len, end: &str| {
        Unit(vec![Piece::text(text), Piece::Any(class, len), Piece::text(end)])
    };
    vec![
        ("no_line_end", same("static int next_entry(struct list *head) { return head ? head->count : 0; } ")),
        ("only_digits", same("1234567890")),
        ("other_digits", any(Class::Digits, 1)),
        ("digits_in_fours", same("4111 1111 ")),
        ("other_digits_in_fours", varied("4111 1111 1111 1111 ", 1)),
        ("digits_in_nines", varied("123456789 ", 0)),
        ("digits_with_dashes", varied("078-05-1120-", 0)),
        ("only_@", same("@")),
        ("@_in_words", same("a@b")),
        ("mail_addresses", same("ann@acme.com,")),
        ("other_mail_addresses", varied("ann.bell@acme.com,", 0)),
        ("only_key=", same("key=")),
        ("only_password=", same("password=")),
        ("other_passwords", then("password=", Class::Base64, 14, " ")),
        ("other_api_keys", then("api_key: \"", Class::Base64, 32, "\"\n")),
        ("base64", any(Class::Base64, 1)),
        ("base64_in_lines", then("", Class::Base64, 76, "\n")),
        ("hex", any(Class::Hex, 1)),
        ("hex_in_lines", then("", Class::Hex, 40, "\n")),
        ("random_bytes", any(Class::Bytes, 1)),
        ("letters", any(Class::Letters, 1)),
        ("words", then("", Class::Letters, 6, " ")),
        ("minified_bundle", minified()),
        ("dots", same(".")),
        ("colons", same(":")),
        ("quotes", same("\"")),
        ("apostrophes", same("'")),
        ("backslashes", same("\\")),
        ("line_ends", same("\n")),
        ("zeros", same("\0")),
        ("percent_escapes", varied("%41%6b%49", 0)),
        ("entities", varied("&#x41;", 3)),
        ("unicode_escapes", varied("\\u0041", 2)),
        ("json_in_json", then("{\\\"token\\\":\\\"", Class::Base64, 24, "\\\"},")),
        ("ip_addresses", varied("10.20.30.40 ", 0)),
        ("ip_addresses_in_one", same("1.1.")),
        ("mac_addresses", then("0a:1b:2c:3d:4e:", Class::Hex, 2, " ")),
        ("ipv6_addresses", then("2001:db8::", Class::Hex, 4, " ")),
        ("uuids", varied("3f2504e0-4f89-41d3-9a0c-0305e82c3301 ", 0)),
        ("phones", varied("+49 30 9018 2000, ", 4)),
        ("ibans", varied("DE89 3704 0044 0532 0130 00 ", 2)),
        ("iban_like_words", varied("GB29NWBK60161331926819 ", 2)),
        ("dates", varied("1987-03-21 ", 1)),
        ("names", varied("Anna Bell, ", 1)),
        ("pem_heads", same("-----BEGIN PRIVATE KEY-----\n")),
        ("pem_heads_and_base64", then("-----BEGIN RSA PRIVATE KEY-----\n", Class::Base64, 64, "\n")),
        ("only_eyJ", same("eyJ")),
        ("jwt_heads", then("eyJhbGciOiJIUzI1NiJ9.eyJ", Class::Base64, 20, ".")),
        ("aws_key_ids", varied("AKIAQ3EGRT7XWZLPB5NM ", 4)),
        ("github_tokens", then("ghp_", Class::Base64, 36, " ")),
        ("addresses_with_passwords", then("https://ann:", Class::Letters, 9, "@acme.com/ ")),
        ("one_column", varied("ann.bell@acme.com\n", 0)),
    ]
}

/// Short names, no spaces, no line ends.
fn minified() -> Unit {
    let name = |len| Piece::Any(Class::Letters, len);
    let text = |text: &str| Piece::text(text);
    Unit(vec![
        text("function "),
        name(2),
        text("(e,t){var n="),
        name(3),
        text("[\""),
        name(7),
        text("\"]||{};return n."),
        name(5),
        text("?t(e."),
        name(4),
        text("+\":\"+"),
        Piece::Any(Class::Digits, 3),
        text("):void 0!==n&&"),
        name(1),
        text("(n)}"),
    ])
}

/// The texts whose instructions are counted: name, path and unit. What they say is made up.
pub fn counted() -> Vec<(&'static str, &'static str, Unit)> {
    vec![
        ("source", "drivers/net/ring.c", source()),
        ("settings", "deploy/settings.yaml", settings()),
        ("digits", "export/orders.txt", Unit(vec![Piece::Varied(b"4111 1111 1111 1111; ".to_vec(), 1)])),
    ]
}

/// Source code, in which next to nothing is to be found.
fn source() -> Unit {
    let (name, number) = (Piece::Any(Class::Letters, 7), Piece::Any(Class::Digits, 3));
    let lines = [
        "\n/* Returns the number of entries that are left in the ring, or a negative error code. */\nstatic int ",
        "_count(struct device *dev, const char *buf, size_t len)\n{\n\tstruct ring_entry *entry = to_ring(dev, ",
        ");\n\tunsigned long flags;\n\n\tif (!entry || len > sizeof(entry->name) - 1)\n\t\treturn -EINVAL;\n\tspin_lock_irqsave(&",
        "->lock, flags);\n\tlist_for_each_entry(entry, &ring->head, node) {\n\t\tif (strncmp(entry->key, \"",
        "\", 8) == 0 && (entry->state & RING_BUSY) == 0x",
        ")\n\t\t\tcontinue;\n\t\tdev_dbg(dev, \"token %u of %lu bytes at %p\\n\", entry->id, len, ",
        ");\n\t}\n\tspin_unlock_irqrestore(&ring->lock, flags);\n\treturn sysfs_emit(buf, \"%d\\n\", ",
        ");\n}\n#define RING_SIZE_",
        " (1UL << 12)\nMODULE_AUTHOR(\"The ring authors\");\nstatic const u32 ring_table[] = { 0x00000001, 0x0000001f, ",
        " };\n",
    ];
    let mut pieces = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        pieces.push(Piece::text(line));
        pieces.push(if index % 3 == 2 { number.clone() } else { name.clone() });
    }
    Unit(pieces)
}

/// Settings and records, in which there is something to be found every other line.
fn settings() -> Unit {
    let any = |class, len| Piece::Any(class, len);
    let text = |text: &str| Piece::text(text);
    Unit(vec![
        text("database:\n  host: db.internal.example\n  user: shop\n  password: \""),
        any(Class::Base64, 16),
        text("\"\n  url: postgres://shop:"),
        any(Class::Letters, 12),
        text("@10.1.2.3:5432/shop\nmail:\n  from: "),
        any(Class::Letters, 6),
        text("@corp-mail.org\n  api_key: "),
        any(Class::Hex, 40),
        text("\naws:\n  access_key_id: "),
        Piece::Varied(b"AKIAQ3EGRT7XWZLPB5NM".to_vec(), 4),
        text("\n  region: eu-central-1\nreplicas: 3\nimage: registry.internal/shop@sha256:"),
        any(Class::Hex, 64),
        text("\ncustomers:\n  - name: Ann Bell\n    phone: +49 30 "),
        any(Class::Digits, 7),
        text("\n    card: "),
        Piece::Varied(b"4111 1111 1111 1111".to_vec(), 1),
        text("\n    born: 1987-03-21\n    note: sent to the harbour in the afternoon, paid in full\n"),
    ])
}
