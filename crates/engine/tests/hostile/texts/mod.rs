//! The texts that are meant to be slow to scan: triggers without end, values without end, and what is between. One list,
//! for the tests of how much work they cause and for the example that measures their time.

pub mod unit;

use unit::{Class, Piece, Unit};

/// The texts that are made to be slow, by name.
pub fn hostile() -> Vec<(&'static str, Unit)> {
    let same = |text: &str| Unit(vec![Piece::text(text)]);
    let any = |class, len| Unit(vec![Piece::Any(class, len)]);
    let varied = |text: &str, from| Unit(vec![Piece::Varied(text.into(), from)]);
    let one_of = |texts| Unit(vec![Piece::OneOf(texts)]);
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
        ("digits_in_elevens", then("", Class::Digits, 11, "\n")),
        ("digits_in_sixteens", then("", Class::Digits, 16, "\n")),
        ("digits_and_separators", one_of(&["0", "1", "2", "3", "4", "7", "9", " ", "-", ".", "/"])),
        ("digits_colons_and_dots", one_of(&["0", "1", "2", "7", "9", "a", "c", "e", ":", "."])),
        (
            "words_of_letters_and_digits",
            one_of(&["A", "B", "K", "Q", "X", "Z", "0", "1", "2", "7", "9", " "]),
        ),
        (
            "signs",
            one_of(&[
                "\"", "'", "=", ":", ";", ",", "@", ".", "/", "-", "_", "(", "{", "<", "&", "%", "\\", " ",
            ]),
        ),
        ("random_addresses", one_of(&["a", "b", "c", "d", "e", "f", ".", "@", "-", " "])),
        (
            "words_of_secrets",
            one_of(&[
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
            ]),
        ),
        (
            "words_of_code",
            one_of(&[
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
            ]),
        ),
        (
            "settings_with_passwords",
            varied("DATABASE_PASSWORD=pscale_pw_3f9aK2mQ7xT4vB8nL1cD5eF6gH7iJ8kL9mN0oP1q\n", 28),
        ),
        ("quoted_jwt", then("\\'jwt", Class::Digits, 8, "")),
        ("encoded_passwords", then("70617373776f72643d68756e74657232 ", Class::Letters, 4, "password=")),
    ]
}

/// Further units that are not worth a name of their own: triggers without end, values without end, and what is between.
const UNITS: &[&str] = &[
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

/// Those of [`hostile`], and the further ones both as they are and so that no two are the same.
pub fn all() -> Vec<(String, Unit)> {
    let named = hostile().into_iter().map(|(name, unit)| (name.to_owned(), unit));
    named.chain(UNITS.iter().flat_map(|unit| both_ways(unit))).collect()
}

/// The unit over and over, and with other digits each time; with one behind it if it has none.
pub fn both_ways(unit: &str) -> [(String, Unit); 2] {
    let mut numbered = unit.as_bytes().to_vec();
    if !numbered.iter().any(u8::is_ascii_digit) {
        numbered.push(b'0');
    }
    [Piece::text(unit), Piece::Numbered(numbered)].map(|piece| {
        let unit = Unit(vec![piece]);
        (unit.to_string(), unit)
    })
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
