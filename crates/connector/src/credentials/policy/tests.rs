//! What is allowed, for whom, and what never is.

use std::os::unix::fs::symlink;

use super::*;

fn reference(text: &str) -> CredentialReference {
    text.parse().unwrap()
}

/// What a policy says of a reference for a host; nothing when it allows it.
fn refusal(policy: &CredentialPolicy, text: &str, host: &str) -> Option<String> {
    let refused = policy.check(&reference(text), Some(&Host::parse(host))).err()?;
    assert!(!refused.is_retryable());
    Some(refused.to_string())
}

#[test]
fn nothing_is_given_unless_it_is_allowed() {
    let nobody = CredentialPolicy::default();
    for text in ["env:TOKEN", "file:/run/secrets/a", "vault:app#token", "command:/bin/echo a"] {
        let told = refusal(&nobody, text, "git.example").unwrap();
        assert!(told.contains(&format!("--allow-credentials '{text}@git.example'")), "{told}");
    }
    assert_eq!(refusal(&nobody, "run:typed", "git.example"), None, "it was typed where it is used");
    let typed = nobody.typed(reference("env:TOKEN"));
    assert_eq!(refusal(&typed, "env:TOKEN", "git.example"), None);
    assert!(refusal(&typed, "env:TOKEN2", "git.example").is_some());
}

#[test]
fn an_allow_list_means_what_it_says() {
    for (grant, text, expected) in [
        ("env:SRC_*", "env:SRC_GIT", true),
        ("env:SRC_*", "env:MY_SRC_GIT", false),
        ("env:*_TOKEN", "env:A_TOKEN", true),
        ("env:*_TOKEN", "env:A_TOKENS", false),
        ("env:A*B*C", "env:AxBxBxC", true),
        ("env:A*B", "env:AB", true),
        ("env:AA*A", "env:AA", false),
        ("env:SRC_*", "file:/SRC_A", false),
        ("vault:app/*", "vault:app/a/b#c", true),
        ("vault:app/db", "vault:app/db#c", true),
        ("vault:app/db#c", "vault:app/db#c", true),
        ("vault:app/db#c", "vault:app/db#d", false),
        ("vault:app/db#c", "vault:app/db", false),
        ("vault:app/*", "vault:apps/a#c", false),
        ("vault:*", "vault:db#c", true),
        ("vault:*", "vault:secret/db#c", true),
        ("vault:*", "vault:app/db#c", false),
        ("vault:team/kv//a/*", "vault:team/kv//a/b#c", true),
        ("command:/bin/pass show", "command:/bin/pass show a", true),
        ("command:/bin/pass show", "command:/bin/pass", false),
        ("command:/bin/pass show", "command:/bin/pass delete", false),
        ("command:/bin/pass", "command:/bin/pass2", false),
        ("command:/bin/pass", "command:/bin/../bin/pass", false),
        ("command:/bin/op read me@x@*", "command:/bin/op read me@x", true),
    ] {
        let policy = CredentialPolicy::allowing([grant]).unwrap();
        assert_eq!(refusal(&policy, text, "h.example").is_none(), expected, "{grant} {text}");
    }
    for wrong in [
        "",
        "SRC_*",
        "env:",
        "ftp:x",
        "env:A@",
        "env:A@b c",
        "file:x",
        "file:/a/../b",
        "file:/a*",
        "file:/*/b",
        "vault:a/../b",
        "command:pass",
        "run:x",
    ] {
        let told = CredentialPolicy::allowing([wrong]).unwrap_err().to_string();
        assert!(told.contains("allows nothing"), "{told}");
    }
}

#[test]
fn a_secret_may_be_for_some_hosts_only() {
    let grants = ["env:SRC_GIT_*@git.example,*.corp.example:8443", "env:SRC_ANY", "env:SRC_GIT_C@c.example"];
    let policy = CredentialPolicy::allowing(grants).unwrap();
    for (text, host, expected) in [
        ("env:SRC_GIT_A", "git.example:443", true),
        ("env:SRC_GIT_A", "a.corp.example:8443", true),
        ("env:SRC_GIT_A", "a.corp.example:443", false),
        ("env:SRC_GIT_A", "git.example.evil.test:443", false),
        ("env:SRC_GIT_C", "c.example", true),
        ("env:SRC_ANY", "evil.test", true),
    ] {
        assert_eq!(refusal(&policy, text, host).is_none(), expected, "{text} {host}");
    }
    let told = refusal(&policy, "env:SRC_GIT_A", "evil.test").unwrap();
    assert!(told.contains("not for evil.test") && told.contains("'env:SRC_GIT_A@evil.test'"), "{told}");
    assert_eq!(policy.check(&reference("env:SRC_GIT_A"), None), Ok(()), "for some host");
}

#[test]
fn what_the_process_needs_itself_is_never_given() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("state")).unwrap();
    for name in ["key", "other", "state/fingerprint.key"] {
        fs::write(at(name), "x").unwrap();
    }
    symlink(at("key"), at("link")).unwrap();
    fs::hard_link(at("key"), at("hard")).unwrap();
    symlink(at("state"), at("folder")).unwrap();
    let all = ["env:*", "file:/*", "vault:*", "command:/bin/pass"];
    let key = format!("file:{}", at("key").display());
    let policy = CredentialPolicy::allowing(all)
        .unwrap()
        .keeping(reference(&key))
        .keeping(reference("env:KEY_OF_MINE"))
        .keeping(reference("vault:domesday#key"))
        .keeping(reference("command:/bin/pass show key"))
        .keeping_path(at("state"));
    let file = |name: &str| format!("file:{}", at(name).display());
    for text in [
        "env:DOMESDAY_FINGERPRINT_KEY",
        "env:PGPASSWORD",
        "env:VAULT_TOKEN",
        "env:KEY_OF_MINE",
        "vault:domesday#key",
        "vault:secret/domesday#other",
        "vault:secret/domesday",
        "command:/bin/pass  'show' key",
        "file:/proc/self/environ",
        &key,
        &file("link"),
        &file("hard"),
        &file("state/../key"),
        &file("state/fingerprint.key"),
        &file("folder/fingerprint.key"),
    ] {
        for policy in [&policy, &policy.clone().typed(reference(text))] {
            let told = refusal(policy, text, "git.example").unwrap_or_else(|| panic!("{text} is given"));
            assert!(told.contains("of this process's own") && !told.contains("--allow"), "{told}");
        }
    }
    for text in ["env:SRC", "vault:other#key", "command:/bin/pass show other", &file("other")] {
        assert_eq!(refusal(&policy, text, "git.example"), None, "{text}");
    }
}

#[test]
fn files_below_a_folder_are_below_it_whatever_they_are_called() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("secrets/inner")).unwrap();
    for name in ["secrets/a", "secrets/inner/b", "outside"] {
        fs::write(at(name), "x").unwrap();
    }
    symlink(at("outside"), at("secrets/out")).unwrap();
    symlink("inner/b", at("secrets/in")).unwrap();
    let policy = CredentialPolicy::allowing([format!("file:{}/*", at("secrets").display())]).unwrap();
    for (name, expected) in [
        ("secrets/a", true),
        ("secrets/inner/b", true),
        ("secrets/in", true),
        ("secrets/out", false),
        ("secrets/../outside", false),
        ("secrets", false),
        ("outside", false),
    ] {
        let found = refusal(&policy, &format!("file:{}", at(name).display()), "h").is_none();
        assert_eq!(found, expected, "{name}");
    }
    let one = CredentialPolicy::allowing([format!("file:{}", at("outside").display())]).unwrap();
    assert_eq!(refusal(&one, &format!("file:{}", at("outside").display()), "h"), None);
    assert!(refusal(&one, &format!("file:{}", at("secrets/a").display()), "h").is_some());
}
