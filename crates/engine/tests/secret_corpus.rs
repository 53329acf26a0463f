//! Secrets in realistic files: each file under `corpus/secrets` has a secret at medium or better on exactly the lines
//! that `corpus/secret-lines.txt` names. What a new syntax or look-alike teaches is added there.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use domesday_engine::{Chunk, RuleSet, Scanner, Scratch};
use domesday_model::{Category, Score};

/// Lines with a secret that the corpus has, at least.
const SECRETS_MIN: usize = 60;
/// Lines without one, at least.
const OTHERS_MIN: usize = 150;

#[test]
fn secrets_are_found_on_their_lines_and_nowhere_else() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let rules = RuleSet::builtin().unwrap_or_else(|errors| panic!("{errors}"));
    let scanner = Scanner::new(Arc::new(rules));
    let mut scratch = Scratch::new();
    let (mut secrets, mut others, mut failures) = (0, 0, Vec::new());
    let table = std::fs::read_to_string(folder.join("secret-lines.txt")).unwrap();
    for entry in table.lines().filter(|line| !line.starts_with('#')) {
        let (name, numbers) = entry.split_once(':').unwrap();
        let expected: BTreeSet<usize> =
            numbers.split_whitespace().map(|number| number.parse().unwrap()).collect();
        let text = std::fs::read_to_string(folder.join("secrets").join(name)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        secrets += expected.len();
        others += lines.iter().filter(|line| !line.trim().is_empty()).count() - expected.len();

        let mut found = Vec::new();
        scanner.scan(&Chunk::whole(text.as_bytes(), name.as_bytes()), &mut scratch, &mut found);
        found.retain(|found| {
            let rule = &scanner.rules().rules()[found.rule as usize];
            rule.category == Category::Secret && found.score >= Score::MEDIUM
        });
        let line_of =
            |start: usize| 1 + text.as_bytes()[..start].iter().filter(|&&byte| byte == b'\n').count();
        let reported: BTreeSet<usize> = found.iter().map(|found| line_of(found.span.start)).collect();
        for line in expected.symmetric_difference(&reported) {
            let what = if expected.contains(line) { "missed" } else { "wrong" };
            failures.push(format!("{what}: {name}:{line}: {}", lines[line - 1]));
        }
    }
    assert!(secrets >= SECRETS_MIN && others >= OTHERS_MIN, "{secrets} lines with secrets, {others} without");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
