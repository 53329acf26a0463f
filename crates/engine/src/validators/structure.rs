//! What tells a literal secret from the code and prose around it.
//!
//! Generic rules match `password = …` in every language; these checks refuse values that only stand for a
//! secret: references to variables, templates, calls, paths and words of code.

use super::{Table, Verdict};
use crate::parts::Parts;

pub(super) const TABLE: Table = &[
    ("mixed", |v| Verdict::pass_if(mixed(v))),
    ("seed_phrase", |v| Verdict::pass_if(seed_phrase(v))),
    ("literal", |v| Verdict::pass_if(literal(v))),
    ("mostly_mixed", |v| Verdict::doubt_unless(mixed(v), "letters or digits alone")),
    ("password_literal", password_literal),
    ("anonymous_password", |v| Verdict::doubt_unless(!anonymous(v), "as anonymous logins give")),
    ("unnamed", |v| Verdict::doubt_unless(!names_secret(v), "a name rather than a value")),
    ("key_literal", key_literal),
];

fn has(value: &[u8], kind: fn(&u8) -> bool) -> bool {
    value.iter().any(kind)
}

/// Words of a seed phrase that must differ: the well-known test phrase repeats one.
const SEED_WORDS_MIN: usize = 10;

/// Words that hardly repeat, as those drawn for a wallet do.
fn seed_phrase(value: &[u8]) -> bool {
    let mut words: Vec<&[u8]> = value.split(|b| *b == b' ').collect();
    words.sort_unstable();
    words.dedup();
    words.len() >= SEED_WORDS_MIN
}

/// A letter and a digit, or capitals and small letters that change too often for words.
fn mixed(value: &[u8]) -> bool {
    let change = |pair: &&[u8]| pair[0].is_ascii_lowercase() != pair[1].is_ascii_lowercase();
    let random = || {
        has(value, u8::is_ascii_uppercase)
            && 5 * value.windows(2).filter(change).count() >= 2 * value.len()
            && !is_name(value)
    };
    has(value, u8::is_ascii_alphabetic) && (has(value, u8::is_ascii_digit) || random())
}

/// Openings of a value that is filled in later: shell, templates, format strings, markup.
static REFERENCE_STARTS: Parts = Parts::new(&[
    "$",
    "{",
    "<",
    "[",
    "%",
    "&",
    "@",
    "*",
    ".$",
    "(",
    "..",
    "process.env",
    "env.",
    "os.environ",
    "ENV[",
    "var.",
    "secrets.",
    "vault:",
    "arn:aws",
    "op://",
    "sm://",
    "ssm:",
    "ref+",
    "env:",
    "file:",
    "ENC(",
    "ENC[",
    "!vault",
    "!secret",
    "!reference",
    "!Ref",
    "!Sub",
    "!Join",
    "!GetAtt",
    "!ImportValue",
    "http://",
    "https://",
    "/",
    "./",
    "~/",
    "\\u",
    "--",
    "//",
]);

/// Parts that only code, templates and masked values have.
static REFERENCE_PARTS: Parts =
    Parts::new(&["${", "#{", "{{", "$(", "%(", "(", "=>", "->", "::", "...", "***", "&lt;", "==", "</"]);

/// Words that are values of every language, or the name of the thing instead of the thing.
static NO_VALUES: Parts = Parts::in_any_case(&[
    "null",
    "none",
    "nil",
    "true",
    "false",
    "undefined",
    "string",
    "required",
    "optional",
    "default",
    "not-set",
    "notset",
    "unset",
    "disabled",
    "enabled",
    "text/plain",
    "application/json",
    "forgot_password",
    "username",
]);

fn literal(value: &[u8]) -> bool {
    let number = value.strip_prefix(b"0x").or(value.strip_prefix(b"0X"));
    !REFERENCE_STARTS.begins(value)
        && !REFERENCE_PARTS.is_in(value)
        && !NO_VALUES.has(value)
        // Style sheets name elements with `#`; registers and commands are numbered in hexadecimal.
        && (!value.starts_with(b"#") || has(value, u8::is_ascii_digit))
        && !number.is_some_and(|number| number.iter().all(u8::is_ascii_hexdigit))
        && value.iter().all(|b| b.is_ascii_graphic() || *b == b' ' || *b >= 0x80)
}

/// Small letters that a sentence without spaces has at least.
const SENTENCE_MIN: usize = 14;

/// Whether the value is a sentence without spaces, such as `thisismypassword`: identifiers of so many words set
/// them off, so somebody chose it.
pub(crate) fn is_sentence(value: &[u8]) -> bool {
    value.len() >= SENTENCE_MIN && value.iter().all(u8::is_ascii_lowercase)
}

/// A password is anything that is not an obvious word of code: a label (`Password:`), a path or a sentence. One
/// with a digit or a sign is taken as it is; words alone are more often an identifier (`user_password`,
/// `newPassword`, `auth.password`) than what somebody chose, so they are in doubt.
fn password_literal(value: &[u8]) -> Verdict {
    const WORDS: &str = "words rather than a password";
    if anonymous(value) {
        return Verdict::Doubt(WORDS);
    }
    let has_digit = has(value, u8::is_ascii_digit);
    let spaces = value.iter().filter(|&&b| b == b' ').count();
    let ends_as_label = value.ends_with(b":") || value.ends_with(b"?") && !has_digit;
    let path = !has_digit && value.contains(&b'/');
    let version = value.iter().all(|b| b.is_ascii_digit() || *b == b'.') && value.contains(&b'.');
    if !literal(value) || ends_as_label || path || spaces > 1 || version {
        return Verdict::Fail;
    }
    if has_digit {
        return Verdict::Pass;
    }
    let words = value.split(|b| !b.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).count();
    let signs = value.iter().filter(|b| b.is_ascii_punctuation() && !b"_-.".contains(b)).count();
    let named = names_secret(value) && !is_sentence(value);
    // Letters only: several words joined, or one that names a secret, are identifiers.
    let chosen = if signs == 0 {
        words == 1 && !named && value.len() >= 8 && spaces == 0
    } else {
        !named || signs > 1
    };
    Verdict::doubt_unless(chosen, WORDS)
}

/// What anonymous logins give: a mail address without its host.
fn anonymous(value: &[u8]) -> bool {
    let user = value.strip_suffix(b"@");
    user.is_some_and(|user| user.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-'))
}

/// Names of secrets, and the word for a password as forms in many languages have it for a label.
static SECRET_NAMES: Parts = Parts::in_any_case(&[
    "passwd",
    "secret",
    "token",
    "passwort",
    "kennwort",
    "wachtwoord",
    "lösenord",
    "passord",
    "adgangskode",
    "kodeord",
    "salasana",
    "lykilorð",
    "mot de passe",
    "contraseña",
    "contrasenya",
    "clave",
    "senha",
    "palavra-passe",
    "password",
    "parola",
    "parolă",
    "heslo",
    "hasło",
    "jelszó",
    "geslo",
    "lozinka",
    "parole",
    "slaptažodis",
    "salasõna",
    "şifre",
    "пароль",
    "парола",
    "лозинка",
    "κωδικός",
    "סיסמה",
    "كلمة المرور",
    "密码",
    "密碼",
    "パスワード",
    "비밀번호",
    "รหัสผ่าน",
    "mật khẩu",
    "kata sandi",
    "kata laluan",
    "पासवर्ड",
]);

/// Whether the value has the name of such a thing in it, as the names of variables and the labels of forms do.
fn names_secret(value: &[u8]) -> bool {
    if value.is_ascii() {
        return SECRET_NAMES.is_in(value);
    }
    SECRET_NAMES.is_in(String::from_utf8_lossy(value).to_lowercase().as_bytes())
}

/// Hexadecimal digits of a number that no generator gives: they come in pairs of bytes.
fn odd_hex(value: &[u8]) -> bool {
    !value.len().is_multiple_of(4) && value.iter().all(u8::is_ascii_hexdigit)
}

/// Letters of a word that counts as one, at least.
const WORD_MIN: usize = 4;

/// Whether the value is a name: words set off by signs or capitals make up most of it, digits or not, as in
/// `Win32_System_LibraryLoader`. What a machine made has few such words by chance.
fn is_name(value: &[u8]) -> bool {
    let follows = |a: &u8, b: &u8| a.is_ascii_alphabetic() && b.is_ascii_lowercase();
    let words = value
        .chunk_by(follows)
        .filter(|run| run.len() >= WORD_MIN && run[run.len() - 1].is_ascii_lowercase());
    let (count, letters) = words.fold((0, 0), |(count, letters), word| (count + 1, letters + word.len()));
    let set_off = value.iter().any(|b| b"-_./".contains(b) || b.is_ascii_uppercase());
    let total = value.iter().filter(|b| b.is_ascii_alphanumeric()).count();
    count > 1 && set_off && 10 * letters >= 7 * total
}

/// A key was made by a machine: both letters and digits, no spaces, and no name of something. Some keys are UUIDs,
/// but most UUIDs are names of things.
fn key_literal(value: &[u8]) -> Verdict {
    let words = value.split(|b| b"-_./".contains(b)).filter(|word| !word.is_empty());
    let worded = words.filter(|word| word.len() >= 3 && word.iter().all(u8::is_ascii_alphabetic)).count();
    let digits = value.iter().filter(|b| b.is_ascii_digit()).count();
    let made = digits >= 2 && has(value, u8::is_ascii_alphabetic) && !value.contains(&b' ') && worded < 3;
    if !literal(value) || !made || is_name(value) {
        return Verdict::Fail;
    }
    match (uuid(value), odd_hex(value)) {
        (true, _) => Verdict::Doubt("a UUID"),
        (_, true) => Verdict::Doubt("hexadecimal digits of an odd number"),
        _ => Verdict::Pass,
    }
}

fn uuid(value: &[u8]) -> bool {
    let mut groups = value.split(|b| *b == b'-');
    let group =
        |len: usize| move |group: &[u8]| group.len() == len && group.iter().all(u8::is_ascii_hexdigit);
    [8, 4, 4, 4, 12].into_iter().all(|len| groups.next().is_some_and(group(len))) && groups.next().is_none()
}
