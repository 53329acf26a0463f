//! Hostile input costs a bounded amount of work per byte. The bound is on bytes handed to regexes, not on
//! time: that is what could grow out of proportion.

use std::sync::Arc;

use domesday_engine::{Chunk, RuleSet, Scanner, Scratch};

const LEN: usize = 1 << 17;
/// Bytes handed to regexes per byte of input, over all rules, at most.
const WINDOW_BYTES_MAX: u64 = 1024;

#[test]
fn repetitive_input_stays_linear() {
    let rules = RuleSet::builtin().unwrap_or_else(|errors| panic!("{errors}"));
    let scanner = Scanner::new(Arc::new(rules));
    let units = [
        "a",
        "@",
        "1",
        "1 ",
        "12-",
        "a@",
        "a@a.",
        "key=",
        "\"",
        "'",
        "password=",
        "secret: \"",
        "1.1.1.",
        "aa:",
        ":",
        "AKIA",
        "-----BEGIN ",
        "eyJ",
        "eyJhbGciOiJub25l.",
        "-----BEGIN PRIVATE KEY-----MIIEvQIBADANBgkq",
        "\"kty\":\"EC\",",
        "\"dp\",",
        "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC",
        "://",
        "A1",
        "x@x.com ",
        "token",
        "4111 1111 1111 1111 ",
        "\0",
        "\u{e9}",
        "\n",
        "ab12cd34",
    ];
    let mut failures = Vec::new();
    for unit in units {
        let mut scratch = Scratch::new();
        let per_byte = |len: usize, scratch: &mut Scratch| {
            let text = unit.repeat(len / unit.len());
            let before = scratch.window_bytes();
            scanner.scan(&Chunk::whole(text.as_bytes(), b""), scratch, &mut Vec::new());
            (scratch.window_bytes() - before) / text.len() as u64
        };
        let short = per_byte(LEN / 8, &mut scratch);
        if short > WINDOW_BYTES_MAX {
            let mut by_rule: Vec<_> = scratch.window_bytes_by_rule().zip(scanner.rules().rules()).collect();
            by_rule.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
            let worst: Vec<_> =
                by_rule.iter().take(4).map(|(bytes, rule)| format!("{} {bytes}", rule.id)).collect();
            failures.push(format!("{unit:?}: {short} window bytes per byte: {}", worst.join(", ")));
            continue;
        }
        let long = per_byte(LEN, &mut scratch);
        if long > short + short / 4 + 1 {
            failures.push(format!(
                "{unit:?}: {long} window bytes per byte in a long text, {short} in a short one"
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
