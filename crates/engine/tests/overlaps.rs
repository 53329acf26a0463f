//! Overlapping rules yield one finding, the most specific: cases of the built-in catalogue.

use std::sync::{Arc, LazyLock};

use domesday_engine::{Chunk, RuleSet, Scanner, Scratch};
use domesday_model::Score;

static SCANNER: LazyLock<Scanner> = LazyLock::new(|| {
    let rules = RuleSet::builtin().unwrap_or_else(|errors| panic!("{errors}"));
    Scanner::with_floor(Arc::new(rules), Score::MEDIUM)
});

/// What is reported of a text, as rules and values.
fn check(text: &str, expected: &[(&str, &str)]) {
    let mut found = Vec::new();
    SCANNER.scan(&Chunk::whole(text.as_bytes(), b""), &mut Scratch::new(), &mut found);
    let found: Vec<_> = found
        .iter()
        .map(|found| (&*SCANNER.rules().rules()[found.rule as usize].id, &text[found.span.clone()]))
        .collect();
    assert_eq!(found, expected, "{text}");
}

/// A token of a provider, its checksum wrong, so that what it stands in scores higher.
const GITHUB: &str = concat!("ghp_", "q8Jd73kLmP0zXcVb5N2aSwEr9TyUi4O1kHgF");
const AWS: &str = concat!("AKIA", "Q3EGRT7XWZLPB5NM");
const JWT: &str = concat!(
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiI4NDc3MjMiLCJuYW1lIjoiUSBLcmFtZXIiLCJpYXQiOjE3MTYyMzkwMjJ9.",
    "7Qf9vJm2XkT1bZ0cLq8RwYpN5sHdUeGa4oIjK6tVxEM"
);

#[test]
fn a_provider_token_is_more_than_where_it_stands() {
    for text in [
        format!("github_token = \"{GITHUB}\""),
        format!("password: '{GITHUB}'"),
        format!("GITHUB_TOKEN={GITHUB}"),
        format!("Authorization: Bearer {GITHUB}"),
        format!("https://x-access-token:{GITHUB}@github.com/acme/app"),
        format!("machine github.com login acme password {GITHUB}"),
        format!("curl -u acme:{GITHUB} https://api.github.com"),
    ] {
        check(&text, &[("github-token", GITHUB)]);
    }
    check(&format!("password = \"{AWS}\""), &[("aws-access-key-id", AWS)]);
    check(&format!("Authorization: Bearer {JWT}"), &[("json-web-token", JWT)]);
    check(&format!("access_token: \"{JWT}\""), &[("json-web-token", JWT)]);
    let hash = "$2b$12$KIXQ8vT2mZ9xB4nR7wLpOeJd5sHfGcYaUiEoTqWzXvBnMkLjHgFdS";
    check(&format!("password: \"{hash}\""), &[("password-hash-crypt", hash)]);
}

#[test]
fn a_password_in_a_url_is_one_finding() {
    let password = "Kq8vT2mZ9x";
    check(
        &format!("mail smtp: mongodb+srv://admin:{password}@cluster0.ab1cd.mongodb.net/shop"),
        &[("database-url-password", password)],
    );
    check(
        &format!("url = \"https://deploy:{password}@git.acme.io/team/app.git\" # e-mail"),
        &[("url-basic-auth", password)],
    );
    check(
        &format!("DATABASE_URL=postgres://shop:{password}@db.internal:5432/shop"),
        &[("database-url-password", password)],
    );
    check(
        &format!("Server=db;Database=shop;User Id=sa;Password={password};"),
        &[("connection-string-password", password)],
    );
    // What follows the `#` looks like an address, with a word for it near.
    check("mail: https://deploy:p#Kq8vT2mZ@mail.acme.io/x", &[("url-basic-auth", "p#Kq8vT2mZ")]);
}

#[test]
fn numbers_have_one_meaning() {
    check("card number: 4539 5787 6362 1486", &[("payment-card", "4539 5787 6362 1486")]);
    check("iban DE89 3704 0044 0532 0130 00", &[("iban-grouped", "DE89 3704 0044 0532 0130 00")]);
    check("account, card: ES9121000418450200051332", &[("iban", "ES9121000418450200051332")]);
    check("phone: +1 415 555 2671", &[("phone-international", "+1 415 555 2671")]);
    check("ssn, phone: 536-90-4399", &[("us-social-security-number", "536-90-4399")]);
    check("imei 490154203237518", &[("imei", "490154203237518")]);
    check("bsn: 111222333", &[("nl-bsn", "111222333")]);
    // The end of the one and the beginning of the other are no third.
    check(
        "card 4539-5787-6362-1486 phone 415-555-2671 health card",
        &[("payment-card", "4539-5787-6362-1486"), ("phone-labelled", "415-555-2671")],
    );
}
