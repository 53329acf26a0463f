//! Runs and their texts.

use super::*;

/// The texts of `input`, with every word of 23 letters and digits and every escape a trigger.
fn decoded(input: &str) -> Vec<(String, &'static [&'static str], String)> {
    let bytes = input.as_bytes();
    let starts = |at: &usize| {
        let word = bytes[*at..].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count() >= 23;
        let first = at.checked_sub(1).is_none_or(|before| !bytes[before].is_ascii_alphanumeric());
        let escape = |trigger: &&str| input[*at..].to_ascii_lowercase().starts_with(*trigger);
        (word && first) || TRIGGERS.iter().any(escape)
    };
    let triggers: Vec<usize> = (0..bytes.len()).filter(starts).collect();
    let shown = |layer: Layer| {
        let source = layer.source(&(layer.start..layer.text.len()));
        let text = String::from_utf8_lossy(&layer.text[layer.start..]).into_owned();
        (text, layer.chain, input[source].to_owned())
    };
    layers(bytes, &triggers, |_| true).into_iter().map(shown).collect()
}

fn check(input: &str, text: &str, chain: &[&str], source: &str) {
    assert_eq!(
        decoded(input),
        [(text.to_owned(), chain, source.to_owned())].map(|(a, b, c)| (a, b as &[&str], c))
    );
}

#[test]
fn base64_is_read_in_either_alphabet_padded_or_not() {
    let text = "password = kD83jf02?~>>";
    check("x: cGFzc3dvcmQgPSBrRDgzamYwMj9-Pj4=\n", text, &["base64"], "cGFzc3dvcmQgPSBrRDgzamYwMj9-Pj4");
    check("x: cGFzc3dvcmQgPSBrRDgzamYwMj9+Pj4\n", text, &["base64"], "cGFzc3dvcmQgPSBrRDgzamYwMj9+Pj4");
    check(
        "powershell -enc cABhAHMAcwB3AG8AcgBkAD0AawBEADgAMwA=",
        "password=kD83",
        &["base64", "utf-16le"],
        "cABhAHMAcwB3AG8AcgBkAD0AawBEADgAMwA",
    );
}

#[test]
fn wrapped_lines_are_one_run() {
    let line = "YSBsaW5lIG9mIHRleHQgdGhhdCBpcyB3cmFwcGVkIGluIHRoZSBtaWRkbGUgb2Yg";
    let input = format!("key: |\n  {line}\n  aXRzIHdvcmRz\nnext: 1\n");
    let source = format!("{line}\n  aXRzIHdvcmRz");
    check(&input, "a line of text that is wrapped in the middle of its words", &["base64"], &source);
}

#[test]
fn escapes_of_all_kinds_are_read() {
    check("70617373776f72643d6b443833", "password=kD83", &["hex"], "70617373776f72643d6b443833");
    check("q=password%3DkD%383&x", "q=password=kD83&x", &["percent"], "q=password%3DkD%383&x");
    check(r#""\x70ass\u0077ord""#, "password", &["escapes"], r"\x70ass\u0077ord");
    check("a &quot;&#x6b;&#68;83&quot;", "a \"kD83\"", &["html"], "a &quot;&#x6b;&#68;83&quot;");
    check("pass=\nword=3DkD83\nx", "password=kD83", &["quoted-printable"], "pass=\nword=3DkD83");
}

#[test]
fn what_is_no_text_or_too_long_is_left() {
    for input in [
        "d41d8cd98f00b204e9800998ecf8427e".to_owned(),
        "getElementsByClassNameAndTagName".to_owned(),
        "printf(\"%3d\")".to_owned(),
        "cGFzc3dvcmQgPSBr".repeat(ENCODED_MAX / 16 + 1),
        r"\x90\x41\x01".to_owned(),
        "https://kim:a%40b%3Ac@host/".to_owned(),
    ] {
        assert_eq!(decoded(&input), [], "{input}");
    }
}
