//! Keys of every kind that were made for these tests (with OpenSSL, OpenSSH, GnuPG and keytool) and never used, the
//! ways in which people paste them, and what hostile input has in their place.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;
use crate::validators::lookup;

/// A validator's name, values it accepts and values it refuses.
type Case = (&'static str, &'static [&'static str], &'static [&'static str]);

pub(in crate::validators) const KEYS: &[Case] = &[
    (
        "pem",
        &[RSA_1024, EC_P256, OPENSSH, PGP, RSA_ENCRYPTED],
        &[
            "-----BEGIN RSA PRIVATE KEY-----\n...",
            "-----BEGIN PUBLIC KEY-----\nMIIB",
            "PRIVATE KEY",
            "",
            CERTIFICATE,
        ],
    ),
    (
        "base64_pem",
        &[
            "LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFWS0tLS0tCk1IY0NBUUVFSUFGYWEyUlpvYWwyS1VnbjVyWiswVDdNL3g0ZU9QU0hLZ2RHTzVLUHpJR1JvQW9HQ0NxR1NNNDkKQXdFSG9VUURRZ0FFa3ErTWlsVEdUSGxmN3dTQUNDeS9DMzNvYmJPWXZKWk16MGRpUnVoSFNKdmJyWkxqR3VlbworVWlBVTVQUGR0MlVzVGQ2VjN4QnVRS2VKclhZOGNSNmtBPT0KLS0tLS1FTkQgRUMgUFJJVkFURSBLRVktLS0tLQo=",
        ],
        &["LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUM", "!", ""],
    ),
    (
        "base64_key",
        &["MC4CAQAwBQYDK2VwBCIEIP2CZTftuhDw27h4ty2ghuuz2eK22kvFgE+/7RDQgYqD"],
        &[
            "MIIBvTCCAWOgAwIBAgIURLvwlKR4OQbjyTKIaP09cpUSG2gwCgYIKoZIzj0EAwIwNDEXMBUGA1UECgwOTWFkZSBmb3IgdGVzdHMxGTAXBgNVBAMMEHNob3AuZXhhbXBsZS5uZXQwHhcNMjYxMTE1MTcyNjQ1WhcNMjkwODExMTcyNjQ1WjA0MRcwFQYDVQQKDA5NYWRl",
            "MC4CAQ",
            "",
            "!",
        ],
    ),
    ("certificate", &[CERTIFICATE], &[RSA_1024, "-----BEGIN CERTIFICATE-----\n...", ""]),
    ("putty_key", &[PUTTY, PUTTY_ENCRYPTED], &["PuTTY-User-Key-File-", ""]),
    (
        "keystore",
        &[
            "/u3+7QAAAAIAAAABAAAAAQAEbWFkZQAAAaHgP0n7AAAAfzB9MA4GCisGAQQBKgIRAQEFAARrm2vfMwHx+ojZhAAYBr26UzSGq2PYTayhjpCxqI5Ykg2IHDAq+rRk8NX+",
            "MIIETAIBAzCCBAIGCSqGSIb3DQEHAaCCA/MEggPvMIID6zCCAqIGCSqGSIb3DQEHBqCCApMwggKPAgEAMIICiAYJKoZIhvcNAQcBMFcGCSqGSIb3DQEFDTBKMCkGCSqG",
        ],
        &["/u3+7QAAAAkAAAABAAAAAQAEbWFkZQ", "MIIETAIBAjCCBAIGCSqGSIb3DQEHAaCC", "", "!"],
    ),
    (
        "signing_key",
        &[
            "RWRTY0IyzEBTMj0x0vAdSnnzjv+cPCWOoamAANlHB9X1fyzK0DCB/9VjLlRSHhaNx0KIeDQ5MRIU2DOyj+ZwmLSJExnWzfu1vTa+VNkWGJN20xTqyMiJ+RtFcaDG6435H1nvhw7U18X5Z8CV8puHPziSeGe8I8TNYgPy/AgNfqEKvlvC/W4eQfyB55CwfQ6meNKxpxglTIcXBNd86lo=",
            "RWRCSwAAAADs0MBqkwAPy3slwtTB5wazAj0Wqux3Hd1j+Xka4toiPUI1xdYWKSomBgz13jurgMVh9/uTtruZan2BRJnW4hp4n2pLikZJdN8wBJd8EgkEvCQCF6jgG4I0rRXHbCob86o=",
        ],
        &[
            "RWRTY0Iy",
            "RWRYWEIyYkh14H2IsdHEZjHg1KZt2EBI3ebfFtuGUlDpMcZH+F7Buf+uevy/xMenhmSBiGb43kFg+L/gj9e0qE/sFEasGiUjXO3Isgw26dOWn4+arZQOhwXbuPaWHqOx0iBFyymn+FcPrYS7n5X0YBbhs0wUXHSlnrzZAQxzv9cmfmfJ+4jZ0RNuARwIYMcgCevIo85C0ZnvQaLo0yw=",
            "",
        ],
    ),
    (
        "wireguard_key",
        &["iOSrFhELjP/9umOCthItvHs0ipHEvFJTeDowfJNv8FA=", "Yryo347IMmayGDbJnaf+pU6kq1RW96RtMICAWsikNkE="],
        &["Wss58ChYqyXUQ4b0ckpNfj2y8Rh6lq4RR0os9wLoSw==", "", "!"],
    ),
    (
        "jwk_secret",
        &[
            "\"kty\":\"EC\",\"d\":\"lWtuhYadbLBm4NLNGq9wztyKW3l96mHkK2Jj3o1tnMA\"",
            "\"kty\":\"oct\",\"k\":\"Qgb3mE7ySHCC3nGukQWTE2NU6PhfqESZ_9wcWVslH3I\"",
        ],
        &["\"kty\":\"EC\",\"d\":\"sugkKgx-k0tXW_IX4eipQcXKIyw\"", "\"kty\":\"EC\"", "\"d\"", ""],
    ),
    (
        "jwt",
        &["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.VG2yBnmWGYKibjszuKOWCfDu7nsbnP9s6AUXBw65W3w"],
        &[
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
            "eyJub3RoaW5nIjoxfQ.eyJzdWIiOiIxIn0.c2ln",
            "eye.eyeable",
            "eyJ",
        ],
    ),
];

const PUTTY: &str = "PuTTY-User-Key-File-3: ssh-ed25519\r\nEncryption: none\r\nComment: made-for-tests\r\nPublic-Lines: 2\r\nAAAAC3NzaC1lZDI1NTE5AAAAIKs0Or5toAKcRpPrlxZ8z5zjjE/sMYNJBUqltGRq\r\nW3ZF\r\nPrivate-Lines: 1\r\nAAAAIKGn\r\n";
const PUTTY_ENCRYPTED: &str = "PuTTY-User-Key-File-2: ssh-rsa\nEncryption: aes256-cbc\nComment: made-for-tests\nPublic-Lines: 4\nAAAAB3NzaC1yc2EAAAADAQABAAAAgQDNGj8yFn7Sbz064vvfQpDaxrjbCIOalerg\ncuopm13Vl1oqycS8LDMs9ohbI5NOFm9k61IRHlMVwDUgfxSyVwhSCwohPCcu8GmY\nWlS6jeRdTW3c5GzD2TJaGoiULj8ZFrzhh+gs5SNzOg2cnr4WcN/hz9T3oTfUB9FW\nBlzZ9Q7KEQ==\nPrivate-Lines: 8\n";
const TRUST_STORE: &str = "/u3+7QAAAAIAAAABAAAAAgABYwAAAaHgP0yJAAVYLjUwOQAAAcEwggG9MIIBY6ADAgECAhREu/CUpHg5BuPJMoho/T1ylRIbaDAKBggqhkjOPQQDAjA0MRcwFQYDVQQK";
const RSA_1024: &str = include_str!("fixtures/rsa-1024-pkcs1.pem");
const RSA_1024_PKCS8: &str = include_str!("fixtures/rsa-1024-pkcs8.pem");
const RSA_2048: &str = include_str!("fixtures/rsa-2048-pkcs1.pem");
const RSA_4096: &str = include_str!("fixtures/rsa-4096-pkcs8.pem");
const RSA_ENCRYPTED: &str = include_str!("fixtures/rsa-1024-encrypted.pem");
const DSA: &str = include_str!("fixtures/dsa-1024.pem");
const DSA_PKCS8: &str = include_str!("fixtures/dsa-1024-pkcs8.pem");
const EC_P256: &str = include_str!("fixtures/ec-p256-sec1.pem");
const EC_P384: &str = include_str!("fixtures/ec-p384-pkcs8.pem");
const ED25519: &str = include_str!("fixtures/ed25519-pkcs8.pem");
const ED25519_ENCRYPTED: &str = include_str!("fixtures/ed25519-encrypted.pem");
const X25519: &str = include_str!("fixtures/x25519-pkcs8.pem");
const OPENSSH: &str = include_str!("fixtures/openssh-ed25519.pem");
const OPENSSH_RSA: &str = include_str!("fixtures/openssh-rsa-1024.pem");
const OPENSSH_ENCRYPTED: &str = include_str!("fixtures/openssh-encrypted.pem");
const PGP: &str = include_str!("fixtures/pgp-ed25519.asc");
const PGP_ENCRYPTED: &str = include_str!("fixtures/pgp-encrypted.asc");
const CERTIFICATE: &str = include_str!("fixtures/certificate.pem");

fn pem(text: &str) -> Verdict {
    let text = &text[..text.len().min(2000)];
    armoured(text.as_bytes(), text.len() >= LONG)
}

fn read(words: &str) -> Verdict {
    Verdict::Read(words.into())
}

fn noted(words: &str) -> Verdict {
    Verdict::Noted(words.into())
}

#[test]
fn keys_are_read() {
    for (text, words) in [
        (RSA_1024, "RSA private key, 1024 bits"),
        (RSA_1024_PKCS8, "RSA private key, 1024 bits"),
        (RSA_2048, "RSA private key, 2048 bits"),
        (RSA_4096, "RSA private key, 4096 bits"),
        (DSA, "DSA private key, 1024 bits"),
        (DSA_PKCS8, "DSA private key, 1024 bits"),
        (EC_P256, "EC private key, P-256"),
        (EC_P384, "EC private key, P-384"),
        (ED25519, "Ed25519 private key"),
        (X25519, "X25519 private key"),
        (OPENSSH, "OpenSSH private key, ssh-ed25519"),
        (OPENSSH_RSA, "OpenSSH private key, ssh-rsa, 1024 bits"),
        (PGP, "PGP private key, EdDSA"),
    ] {
        assert_eq!(pem(text), read(words));
    }
    let putty = |text: &str| ssh::putty(text.as_bytes()).map(Key::verdict);
    assert_eq!(putty(PUTTY), Some(read("PuTTY private key, ssh-ed25519")));
}

#[test]
fn other_armours_are_known() {
    let seed: Vec<u8> = (0..32u8).map(|i| i.wrapping_mul(73) ^ 0x5a).collect();
    let nebula = armour_of(&seed).replace("BEGIN ", "BEGIN NEBULA X25519 ");
    assert_eq!(pem(&nebula), read("Nebula private key"));
    let json = br#"{"kdf":{"name":"scrypt","params":{"N":32768,"r":8,"p":1},"salt":"kJ2x7Q=="},"cipher":{}}"#;
    let cosign = armour_of(json).replace("BEGIN ", "BEGIN ENCRYPTED COSIGN ");
    assert_eq!(pem(&cosign), noted("Cosign private key, encrypted with a passphrase"));
}

#[test]
fn encrypted_keys_are_said_to_be() {
    for (text, words) in [
        (RSA_ENCRYPTED, "private key encrypted with a passphrase (AES-128-CBC)"),
        (ED25519_ENCRYPTED, "private key encrypted with a passphrase (PBES2)"),
        (OPENSSH_ENCRYPTED, "OpenSSH private key, ssh-ed25519, encrypted with a passphrase"),
        (PGP_ENCRYPTED, "PGP private key, RSA, 1024 bits, encrypted with a passphrase"),
    ] {
        assert_eq!(pem(text), noted(words));
    }
    let putty = ssh::putty(PUTTY_ENCRYPTED.as_bytes()).map(Key::verdict);
    assert_eq!(putty, Some(noted("PuTTY private key, ssh-rsa, encrypted with a passphrase")));
}

/// The lines of a text, each written as `each` does.
fn lines(text: &str, each: impl Fn(&str) -> String) -> String {
    text.lines().map(each).collect()
}

#[test]
fn keys_are_read_wherever_they_were_pasted() {
    for (text, words) in [
        (RSA_1024, "RSA private key, 1024 bits"),
        (RSA_2048, "RSA private key, 2048 bits"),
        (EC_P256, "EC private key, P-256"),
        (OPENSSH, "OpenSSH private key, ssh-ed25519"),
        (PGP, "PGP private key, EdDSA"),
    ] {
        let pasted = [
            ("json", lines(text, |line| format!("{line}\\n"))),
            ("json twice", lines(text, |line| format!("{line}\\\\n"))),
            ("json with escaped slashes", lines(text, |line| line.replace('/', "\\/") + "\\n")),
            ("carriage returns", text.replace('\n', "\r\n")),
            ("escaped carriage returns", lines(text, |line| format!("{line}\\r\\n"))),
            ("yaml", lines(text, |line| format!("        {line}\n"))),
            ("c", lines(text, |line| format!("    \"{line}\\n\"\n"))),
            ("java", lines(text, |line| format!("\"{line}\\n\" +\n"))),
            ("javascript", lines(text, |line| format!("'{line}',\n"))),
            ("php", lines(text, |line| format!("'{line}' .\n"))),
            ("shell", lines(text, |line| format!("{line}\\\n"))),
            ("script comment", lines(text, |line| format!("# {line}\n"))),
            ("code comment", lines(text, |line| format!("// {line}\n"))),
            ("patch", lines(text, |line| format!("{line}\n+"))),
            ("one line", lines(text, |line| format!("{line} "))),
        ];
        for (how, text) in pasted {
            assert_eq!(pem(&text), read(words), "{how}: {text}");
        }
    }
}

#[test]
fn what_only_stands_in_place_of_a_key_is_told() {
    let body =
        |body: &str| pem(&format!("-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----"));
    let head = "MIIEpAIBAAKCAQEAxU9l3K2v8Jf0aQnTZ4wXyR7sB1mVdK6hCzP5gLqEoN2iYuFt";
    assert_eq!(body(&format!("{head}...")), Verdict::MadeUp("dots in place of the key"));
    assert_eq!(body(&"AAAA".repeat(40)), Verdict::MadeUp("filled in with the same again"));
    assert_eq!(body(&format!("{head}\n{head}\n{head}")), Verdict::MadeUp("filled in with the same again"));
    assert_eq!(body("MIIEpAIBAAKCAQEAxU9l3K2v"), Verdict::Doubt("too short for a key"));
    let words = "ThisIsWhereYouPasteTheKeyOfYourServerWhichOnlyYouKnowAndNobodyElse";
    assert_eq!(body(words), Verdict::Doubt(NO_KEY));
    assert_eq!(body("static const char *name"), Verdict::Fail);
    assert_eq!(body(""), Verdict::Fail);
    let public = lines(RSA_1024, |line| line.replace("RSA PRIVATE", "PUBLIC") + "\n");
    assert_eq!(pem(&public), Verdict::Fail, "public keys are no secret");
}

#[test]
fn keys_that_do_not_go_on_are_neither_here_nor_there() {
    let first_two =
        |text: &str| lines(text, |line| format!("{line}\n")).lines().take(3).collect::<Vec<_>>().join("\n");
    let missing = noted("begins as a private key; the rest is missing");
    assert_eq!(pem(&first_two(RSA_2048)), missing);
    assert_eq!(pem(&first_two(RSA_4096)), missing);
    assert_eq!(pem(&first_two(OPENSSH_RSA)), noted("begins as an SSH private key; the rest is missing"));
    // One symbol of the first prime: the primes no longer give the modulus.
    let broken = |text: &str, at: usize| {
        let mut bytes = text.as_bytes().to_vec();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        pem(str::from_utf8(&bytes).expect("ASCII"))
    };
    assert_eq!(broken(RSA_2048, 1000), noted("begins as a private key, but does not go on as one"));
    let outer_length = broken(RSA_1024, 36);
    assert_eq!(outer_length, noted("begins as a private key, but does not go on as one"));
}

#[test]
fn certificates_are_told_in_words() {
    let words = "X.509 certificate, version 3, of shop.example.net, signed by itself, valid until 2029-08-11";
    assert_eq!(certificate_text(CERTIFICATE.as_bytes()), read(words));
    // The head alone is enough, down to the issuer.
    let head = certificate_text(&CERTIFICATE.as_bytes()[..160]);
    assert_eq!(head, read("X.509 certificate, version 3"));
    assert_eq!(certificate_text(EC_P256.as_bytes()), Verdict::Doubt("not what a certificate consists of"));
}

#[test]
fn keystores_tell_what_they_begin_with() {
    let says = |text: &str| stores::keystore(text.as_bytes()).map(Key::verdict);
    let good = KEYS.iter().find(|(name, ..)| *name == "keystore").expect("has cases").1;
    assert_eq!(says(good[0]), Some(noted("Java keystore with a private key, protected by a password")));
    assert_eq!(says(good[1]), Some(noted("PKCS#12 keystore, protected by a password")));
    assert_eq!(says(TRUST_STORE), Some(noted("Java keystore that begins with a certificate")));
    let raw = base64::decode::<96>(good[0].as_bytes(), 128).expect("base64");
    let raw = stores::keystore(&raw).map(Key::verdict);
    assert_eq!(raw, Some(noted("Java keystore with a private key, protected by a password")));
}

#[test]
fn one_line_keys_are_read() {
    let says = |name: &str| {
        let (_, good, _) = KEYS.iter().find(|(known, ..)| *known == name).expect("has cases");
        good.iter().map(|value| lookup(name).expect("registered")(value.as_bytes())).collect::<Vec<_>>()
    };
    let minisign = noted("minisign secret key, encrypted with a passphrase");
    assert_eq!(says("signing_key"), [minisign, read("signify secret key")]);
    assert_eq!(says("wireguard_key"), [Verdict::Proof("clamped as X25519 private keys are"), Verdict::Pass]);
    assert_eq!(says("base64_key"), [read("Ed25519 private key")]);
    assert_eq!(says("base64_pem"), [read("EC private key, P-256")]);
}

/// An SSH2 key as its specification has it: magic, length, kind, cipher.
#[test]
fn ssh2_keys_are_read() {
    let string = |text: &str| [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat();
    let key = |cipher: &str| {
        let kind = "if-modn{sign{rsa-pkcs1-sha1},encrypt{rsa-pkcs1v2-oaep}}";
        let bytes = [ssh::SSH2, &[0, 0, 3, 51], &string(kind), &string(cipher), &string("secret")].concat();
        ssh::ssh2(&bytes).map(Key::verdict)
    };
    assert_eq!(key("none"), Some(read("SSH2 private key")));
    assert_eq!(key("3des-cbc"), Some(noted("SSH2 private key, encrypted with a passphrase")));
    assert!(matches!(ssh::ssh2(&[ssh::SSH2, &[0xff; 12]].concat()), Some(Key::Begun(_))));
}

#[test]
fn hostile_structures_are_refused_without_work() {
    // Lengths beyond all bounds, forms that DER does not have, tags of many bytes.
    for bytes in [
        &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff, 2, 1, 0][..],
        &[0x30, 0x80, 2, 1, 0],
        &[0x30, 0x81, 0x05, 2, 1, 0],
        &[0x30, 0x83, 0xff, 0xff, 0xff, 2, 1, 0],
        &[0x3f, 0x81, 0x05, 2, 1, 0],
        &[0x30, 0x82, 0x04],
        &[0x30],
        &[],
    ] {
        assert!(private::read(bytes, true).is_none(), "{bytes:02x?}");
        assert!(certificate::read(bytes).is_none(), "{bytes:02x?}");
    }
    // An item may not claim more than the one around it.
    let greedy = [0x30, 0x06, 2, 1, 0, 2, 0x20, 0x7f];
    assert!(matches!(private::read(&greedy, true), Some(Key::Begun(_))));
    // Sequences within sequences end where a key does not have them.
    let deep: Vec<u8> = (0..700).flat_map(|_| [0x30, 0x82, 0x10, 0x00]).collect();
    assert!(private::read(&deep, true).is_none());
    assert!(pgp::read(&[0x95, 0xff, 0xff, 4, 0, 0, 0, 0, 1, 0xff, 0xff], false).is_some());
    let endless = [ssh::OPENSSH, &[0xff; 64]].concat();
    assert!(matches!(ssh::openssh(&endless, true), Some(Key::Begun(_))));
}

/// Base64 in lines, between the lines of a key.
fn armour_of(bytes: &[u8]) -> String {
    const SYMBOLS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = "-----BEGIN PRIVATE KEY-----\n".to_owned();
    for line in bytes.chunks(48) {
        for three in line.chunks(3) {
            let bits = three.iter().enumerate().fold(0, |bits, (i, &b)| bits | u32::from(b) << (16 - 8 * i));
            text.extend((0..=three.len()).map(|i| char::from(SYMBOLS[(bits >> (18 - 6 * i) & 63) as usize])));
        }
        text.push('\n');
    }
    let _ = write!(text, "-----END PRIVATE KEY-----");
    text
}

proptest! {
    /// Whatever the bytes, and whatever becomes of those of a key, nothing panics; and random bytes are no key.
    #[test]
    fn any_bytes_are_survived(
        noise in proptest::collection::vec(any::<u8>(), 0..300),
        text in prop::sample::select(vec![RSA_1024, RSA_1024_PKCS8, DSA, EC_P256, ED25519_ENCRYPTED, OPENSSH, PGP, CERTIFICATE]),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        len in any::<prop::sample::Index>(),
    ) {
        let verdict = pem(&armour_of(&noise));
        prop_assert!(!matches!(verdict, Verdict::Read(_)), "{:?}", verdict);
        let armour = Armour::read(text.as_bytes()).expect("a key's text");
        let mut bytes = armour.bytes().expect("base64").to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(len.index(bytes.len() + 1));
        for long in [false, true] {
            let _ = private::read(&bytes, long);
            let _ = ssh::openssh(&bytes, long);
            let _ = pgp::read(&bytes, long);
        }
        let _ = ssh::ssh2(&bytes);
        let _ = stores::keystore(&bytes);
        let _ = certificate::read(&bytes);
    }
}
