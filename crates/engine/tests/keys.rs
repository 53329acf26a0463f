//! Keys as whole objects: which rule finds them, at which level, and that each is found once.

use std::sync::{Arc, LazyLock};

use domesday_engine::{Chunk, Match, RuleSet, Scanner, Scratch};
use domesday_model::{Category, Level, Score};

static SCANNER: LazyLock<Scanner> = LazyLock::new(|| {
    let rules = RuleSet::builtin().unwrap_or_else(|errors| panic!("{errors}"));
    Scanner::new(Arc::new(rules))
});

macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!("../src/validators/keys/fixtures/", $name)).as_slice()
    };
}

/// The secrets at medium or better: rules, levels and reasons.
fn secrets(bytes: &[u8]) -> Vec<(&'static str, Level, String)> {
    let rules = SCANNER.rules().rules();
    let mut found = Vec::new();
    SCANNER.scan(&Chunk::whole(bytes, b""), &mut Scratch::new(), &mut found);
    let secret = |found: &&Match| rules[found.rule as usize].category == Category::Secret;
    let shown = found.iter().filter(secret).filter(|found| found.score >= Score::MEDIUM);
    shown
        .map(|found| (&*rules[found.rule as usize].id, found.score.level(), found.reasons.to_string()))
        .collect()
}

fn check(bytes: &[u8], rule: &str, level: Level, reason: &str) {
    let found = secrets(bytes);
    let text = String::from_utf8_lossy(bytes);
    assert_eq!(found.len(), 1, "{found:?} in {text}");
    assert_eq!((found[0].0, found[0].1), (rule, level), "{text}");
    assert!(found[0].2.contains(reason), "{:?} does not say {reason:?}", found[0].2);
}

#[test]
fn a_key_is_found_once_and_said_what_it_is() {
    for (bytes, level, reason) in [
        (fixture!("rsa-1024-pkcs1.pem"), Level::High, "RSA private key, 1024 bits"),
        (fixture!("rsa-2048-pkcs1.pem"), Level::High, "RSA private key, 2048 bits"),
        (fixture!("rsa-4096-pkcs8.pem"), Level::High, "RSA private key, 4096 bits"),
        (fixture!("dsa-1024-pkcs8.pem"), Level::High, "DSA private key, 1024 bits"),
        (fixture!("ec-p256-sec1.pem"), Level::High, "EC private key, P-256"),
        (fixture!("ed25519-pkcs8.pem"), Level::High, "Ed25519 private key"),
        (fixture!("openssh-ed25519.pem"), Level::High, "OpenSSH private key, ssh-ed25519"),
        (fixture!("openssh-rsa-1024.pem"), Level::High, "OpenSSH private key, ssh-rsa, 1024 bits"),
        (fixture!("pgp-ed25519.asc"), Level::High, "PGP private key, EdDSA"),
        (fixture!("rsa-1024-encrypted.pem"), Level::Medium, "encrypted with a passphrase (AES-128-CBC)"),
        (fixture!("ed25519-encrypted.pem"), Level::Medium, "encrypted with a passphrase (PBES2)"),
        (fixture!("openssh-encrypted.pem"), Level::Medium, "encrypted with a passphrase"),
        (fixture!("pgp-encrypted.asc"), Level::Medium, "encrypted with a passphrase"),
    ] {
        check(bytes, "private-key-pem", level, reason);
    }
}

#[test]
fn a_key_in_a_configuration_file_is_found_once() {
    let text = String::from_utf8_lossy(fixture!("rsa-1024-pkcs8.pem"));
    let json = format!(
        "{{\"type\": \"service_account\", \"private_key\": \"{}\", \"client_id\": \"7\"}}",
        text.replace('\n', "\\n")
    );
    check(json.as_bytes(), "private-key-pem", Level::High, "RSA private key, 1024 bits");
    let env = format!("SIGNING_KEY='{}'\n", text.replace('\n', "\\n"));
    check(env.as_bytes(), "private-key-pem", Level::High, "RSA private key, 1024 bits");
    let indented: String = text.lines().map(|line| format!("    {line}\n")).collect();
    check(format!("tls:\n  key: |\n{indented}").as_bytes(), "private-key-pem", Level::High, "1024 bits");
    let bare: String = text.lines().filter(|line| !line.starts_with('-')).collect();
    check(format!("rsa: {bare}\n").as_bytes(), "private-key-base64-der", Level::High, "1024 bits");
}

#[test]
fn an_encrypted_key_in_a_string_is_found_once() {
    let text = String::from_utf8_lossy(fixture!("rsa-1024-encrypted.pem"));
    let reason = "encrypted with a passphrase (AES-128-CBC)";
    let json = format!("{{\"key\": \"{}\"}}", text.replace('\n', "\\n"));
    check(json.as_bytes(), "private-key-pem", Level::Medium, reason);
    let literals: String = text.lines().map(|line| format!("    \"{line}\\n\"\n")).collect();
    check(literals.as_bytes(), "private-key-pem", Level::Medium, reason);
    check(text.replace('\n', "\r\n").as_bytes(), "private-key-pem", Level::Medium, reason);
}

#[test]
fn keystores_are_found_as_they_are() {
    let jks = [
        &b"\xFE\xED\xFE\xED\0\0\0\x02\0\0\0\x01\0\0\0\x01\0\x04made\0\0\x01\xA1\xE0\x3F\x49\xFB"[..],
        &[0x30, 0x7d, 0x30, 0x0e],
    ];
    check(&jks.concat(), "java-keystore", Level::Medium, "with a private key");
    let pkcs12 = b"\x30\x82\x04\x4C\x02\x01\x03\x30\x82\x04\x02\x06\x09\x2A\x86\x48\x86\xF7\x0D\x01\x07\x01\xA0\x82\x03\xF3\x04";
    check(pkcs12, "pkcs12-keystore", Level::Medium, "PKCS#12 keystore");
}

#[test]
fn what_documentation_shows_stays_low() {
    let sample = "token=eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ.xRz0hySrTnQKakapzgotRSdM9Ngnx9V2CpBiw1l-V5U";
    let emulator = "AccountName=devstoreaccount1;AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;";
    let elided = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7...\n-----END PRIVATE KEY-----";
    let named = "-----BEGIN RSA PRIVATE KEY-----\nPutTheContentsOfYourPrivateKeyHereAndDoNotCommitItToTheRepository\n";
    let report = "https://app.powerbi.invalid/view?r=eyJrIjoiYTZjMTk3YjEtMzQ4Yi00NTI5LThhMmQtNmUyMGRlOTkwMGRlIiwidCI6IjBmM2QxYzZhLTliNTItNGUwNy04YTZkLTJjNDFiN2U5NWYzMCIsImMiOjV9";
    for text in [sample, emulator, elided, named, report] {
        assert_eq!(secrets(text.as_bytes()), [], "{text}");
    }
}

#[test]
fn what_is_public_is_no_secret() {
    let public = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAX0m1Z9pV3yKq7hT2cLr8sWbN5dJfUeGxRaYoCiQkDvE=\n-----END PUBLIC KEY-----\n";
    let ssh = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIF9JtWfaVd8iqu4U9nC6/LFmzeXSX1HhsUWmKAokJA7x ann@host\n";
    let pgp = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmDMEavnrTxYJKwYBBAHaRw8BAQdA305WanaxPprAxY6GCjNpvULi5lzDLdYSEEFV\n";
    for bytes in [public.as_bytes(), ssh.as_bytes(), pgp.as_bytes(), fixture!("certificate.pem")] {
        assert_eq!(secrets(bytes), [], "{}", String::from_utf8_lossy(bytes));
    }
}
