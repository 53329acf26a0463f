//! What is sealed is opened with the same key, for the same purpose, unchanged; else not.

use serde_json::json;

use super::*;

fn seal_of_other() -> Seal {
    seal(2)
}

fn seal(byte: u8) -> Seal {
    Seal::new(&FingerprintKey::new([byte; 32]))
}

#[test]
fn data_comes_back_with_the_same_key_and_purpose_only() {
    let (ours, other) = (seal(1), seal(2));
    let sealed = ours.seal("range of t", b"731-42-6508");
    assert_eq!(ours.open("range of t", &sealed).unwrap(), b"731-42-6508");
    assert_eq!(ours.seal("range of t", b"731-42-6508"), sealed, "equal data is sealed alike");
    assert_ne!(ours.seal("range of u", b"731-42-6508"), sealed);
    assert_eq!(ours.open("range of u", &sealed), Err(NotOpened));
    assert_eq!(other.open("range of t", &sealed), Err(NotOpened));
    for at in 0..sealed.len() {
        let mut changed = sealed.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        assert_eq!(ours.open("range of t", std::str::from_utf8(&changed).unwrap()), Err(NotOpened), "{at}");
    }
    assert_eq!(ours.open("range of t", ""), Err(NotOpened));
}

#[test]
fn secrets_in_names_are_sealed_and_come_back() {
    let seal = seal(1);
    for name in [
        "https://h/x?token=s3cr3t&page=2",
        "https://ann:s3cr3t@h/x",
        "index.html?token=s3cr3t",
        "dump-ghp_0123456789abcdefghijs3cr3t.sql",
        "a~sealed.s3cr3t",
        "\u{e9}?pin=s3cr3t",
    ] {
        let sealed = seal.seal_name(name.as_bytes()).into_owned();
        let text = String::from_utf8(sealed.clone()).unwrap();
        assert!(!text.contains("s3cr3t") && text.contains("~sealed."), "{text}");
        assert_eq!(*seal.open_name(&sealed).unwrap(), *name.as_bytes());
        assert!(seal_of_other().open_name(&sealed).is_err());
        // In a folder with a name of its own.
        let joined = [b"dir/".as_slice(), &sealed].concat();
        if !name.contains("://") {
            assert_eq!(*seal.open_name(&joined).unwrap(), *[b"dir/", name.as_bytes()].concat());
        }
    }
    for name in ["index.html", "https://h/x?page=2", "\u{fffd}"] {
        assert!(matches!(seal.seal_name(name.as_bytes()), Cow::Borrowed(_)));
    }
}

#[test]
fn what_is_sealed_for_one_server_is_not_sent_to_another() {
    let seal = seal(1);
    let sealed = seal.seal_address("https://h/x?token=s3cr3t");
    let elsewhere = sealed.replace("https://h/", "https://evil/");
    assert_eq!(seal.open_name(elsewhere.as_bytes()), Err(NotOpened));
    let user = seal.seal_address("https://ann:s3cr3t@h/x");
    assert_eq!(seal.open_name(user.replace("@h/", "@evil/").as_bytes()), Err(NotOpened));
    let of_file = String::from_utf8(seal.seal_name(b"f?token=s3cr3t").into_owned()).unwrap();
    let (_, secret) = of_file.split_once('=').unwrap();
    assert_eq!(seal.open_name(format!("https://evil/?{secret}").as_bytes()), Err(NotOpened));
    // Nor is it opened where the configuration has no address.
    let configuration = json!({ "prefix": of_file, "endpoint": format!("https://evil/?{secret}") });
    assert_eq!(seal.open_configuration(&configuration), configuration);
}

#[test]
fn addresses_in_configurations_are_sealed_wherever_they_are() {
    let seal = seal(1);
    let configuration =
        json!({ "addresses": ["https://h/x?token=s3cr3t", "https://h/y"], "crawl": { "depth": 2 } });
    let sealed = seal.seal_configuration(&configuration);
    assert!(!sealed.to_string().contains("s3cr3t") && sealed.to_string().contains("https://h/y"));
    assert_eq!(seal.seal_configuration(&sealed), sealed, "once is enough");
    assert_eq!(seal.open_configuration(&sealed), configuration);
}
