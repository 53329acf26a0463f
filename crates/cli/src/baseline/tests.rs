//! How findings are named, and what a broken file says.

use std::sync::LazyLock;

use domesday_engine::Class;
use domesday_model::{
    Category, DatasourceId, FindingId, Fingerprint, Location, NestedStep, ObjectKey, Origin, Position, Score,
    Span,
};
use serde_json::json;

use super::*;

const KEY: &str = "0a1b2c3d";
const HEADER: &str = r#"{"domesday_baseline":1,"fingerprint_key":"0a1b2c3d"}"#;

fn found(key: &str, line: u64) -> Occurrence {
    Occurrence {
        finding: FindingId([7; 16]),
        datasource: DatasourceId(1),
        location: Location { key: ObjectKey::new(key), nested: Vec::new() },
        rule: "a-rule".into(),
        category: Category::Secret,
        score: Score(90),
        reasons: String::new(),
        fingerprint: Fingerprint([0xab; 16]),
        preview: "AKIA****7Q".into(),
        span: Span { start: 10 * line, end: 10 * line + 3 },
        position: Position { line, column: 1 },
        decoding: Vec::new(),
        row: None,
        origin: None,
        suppressed: None,
    }
}

fn traced(id: &str, path: &str) -> Occurrence {
    let origin = Origin {
        path: Some(ObjectKey::new(path)),
        commit: id.to_owned(),
        author: String::new(),
        time_ms: 0,
        is_abandoned: false,
    };
    Occurrence { origin: Some(origin), ..found(id, 1) }
}

fn rules() -> Vec<RuleInfo> {
    vec![RuleInfo {
        id: "a-rule".into(),
        description: String::new(),
        category: Category::Secret,
        class: LazyLock::new(Box::new(|| Class::of_category(Category::Secret))),
    }]
}

/// The path that a finding of a source has in a baseline whose folder is `/srv/shop`.
fn named(name: &str, kind: &str, configuration: Value, found: &Occurrence) -> (Option<String>, String) {
    let source = SourceRef { name, kind, configuration: &configuration };
    let entry = Naming::of(source, Path::new("/srv/shop")).entry(found);
    (entry.datasource, entry.path)
}

#[test]
fn a_local_object_has_the_same_name_from_wherever_it_is_scanned() {
    let local = |root: &str, kind: &str, found: &Occurrence| {
        let field = if kind == "git" { "path" } else { "root" };
        named(&format!("{kind}:{root}"), kind, json!({ field: root }), found)
    };
    let here = |path: &str| (None, path.to_owned());
    assert_eq!(local("/srv/shop", "filesystem", &found("src/a.py", 1)), here("src/a.py"));
    assert_eq!(local("/srv/shop/src", "filesystem", &found("a.py", 1)), here("src/a.py"));
    assert_eq!(local("/srv/shop", "git", &traced("0123", "src/a.py")), here("src/a.py"));
    assert_eq!(local("/srv/shop", "git", &found("worktree/src/a.py", 1)), here("src/a.py"));
    assert_eq!(local("/srv/elsewhere", "filesystem", &found("a.py", 1)), here("a.py"));
    assert_eq!(named("stdin", "stdin", Value::Null, &found("stdin", 1)), here("stdin"));
    let mut inside = found("a.zip", 1);
    inside.location.nested = vec![NestedStep { name: b"b\xff.txt".to_vec(), ordinal: 3 }];
    assert_eq!(local("/srv/shop", "filesystem", &inside), here("a.zip!/b\\xff.txt"));
}

#[test]
fn other_objects_are_named_by_their_source() {
    let source = |name: &str| Some(name.to_owned());
    let remote = json!({ "url": "https://git.example/a.git" });
    let name = "git:https://git.example/a.git";
    assert_eq!(named(name, "git", remote, &traced("0123", "a.py")), (source(name), "a.py".into()));
    let managed = json!({ "root": "/srv/shop" });
    assert_eq!(named("shares", "filesystem", managed, &found("a.py", 1)), (source("shares"), "a.py".into()));
}

/// Writes a baseline beside nothing else, and the sources of a scan of its folder.
fn placed(text: &str) -> (tempfile::TempDir, PathBuf, Value) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(DEFAULT_FILE);
    std::fs::write(&path, text).unwrap();
    let root = folder.path().canonicalize().unwrap();
    (folder, path, json!({ "root": root }))
}

fn load(text: &str) -> Result<Baseline> {
    let (_folder, path, configuration) = placed(text);
    let source = SourceRef { name: "filesystem:x", kind: "filesystem", configuration: &configuration };
    Baseline::load(&path, &Reach::Anywhere, KEY, [source], &rules())
}

#[test]
fn what_is_written_is_known_again_at_any_line() {
    let (_folder, path, configuration) = placed("");
    let source = SourceRef { name: "filesystem:x", kind: "filesystem", configuration: &configuration };
    let names = Names::new(&path, [source]).unwrap();
    let entries: std::collections::BTreeSet<Entry> = ["b.py", "a.py", "a.py"]
        .iter()
        .filter_map(|key| names.entry("filesystem:x", &found(key, 1)))
        .collect();
    let mut text = Vec::new();
    write(&mut text, KEY, &entries).unwrap();
    let text = String::from_utf8(text).unwrap();
    let fingerprint = "ab".repeat(16);
    let line = |path: &str| format!(r#"{{"path":"{path}","rule":"a-rule","fingerprint":"{fingerprint}"}}"#);
    assert_eq!(text, format!("{HEADER}\n{}\n{}\n", line("a.py"), line("b.py")));

    let baseline = load(&text).unwrap();
    let mut comparison = baseline.compare();
    assert!(comparison.knows("filesystem:x", &found("a.py", 1)));
    assert!(comparison.knows("filesystem:x", &found("a.py", 99)));
    assert!(!comparison.knows("filesystem:x", &found("c.py", 1)));
    assert!(!comparison.knows("filesystem:y", &found("b.py", 1)));
    let another = Occurrence { rule: "b-rule".into(), ..found("a.py", 1) };
    let changed = Occurrence { fingerprint: Fingerprint([1; 16]), ..found("a.py", 1) };
    assert!(!comparison.knows("filesystem:x", &another) && !comparison.knows("filesystem:x", &changed));
    assert_eq!((comparison.hidden, comparison.gone()), (2, Some(1)));
}

#[test]
fn only_what_a_scan_covers_can_be_gone() {
    let fingerprint = "ab".repeat(16);
    let line = |path: &str, rule: &str| {
        format!(r#"{{"path":"{path}","rule":"{rule}","fingerprint":"{fingerprint}"}}"#)
    };
    let elsewhere =
        format!(r#"{{"datasource":"s","path":"src/a.py","rule":"a-rule","fingerprint":"{fingerprint}"}}"#);
    let lines = [
        HEADER.to_owned(),
        line("src/a.py", "a-rule"),
        line("src/a.py!/b", "a-rule"),
        line("src/a.pyc", "a-rule"),
        line("docs/a.py", "a-rule"),
        line("src/a.py", "another-rule"),
        elsewhere,
    ];
    let (folder, path, _) = placed(&lines.join("\n"));
    let root = folder.path().canonicalize().unwrap();
    let gone = |kind: &str, configuration: Value| {
        let name = format!("{kind}:x");
        let source = SourceRef { name: &name, kind, configuration: &configuration };
        Baseline::load(&path, &Reach::Anywhere, KEY, [source], &rules()).unwrap().compare().gone()
    };
    assert_eq!(gone("filesystem", json!({ "root": root })), Some(4));
    assert_eq!(gone("filesystem", json!({ "root": root.join("src") })), Some(3));
    assert_eq!(gone("filesystem", json!({ "root": root.join("src"), "only": "a.py" })), Some(2));
    assert_eq!(gone("git", json!({ "path": root })), Some(4));
    assert_eq!(gone("git", json!({ "path": root, "staged": true })), None);
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let entry = format!(r#"{{"path":"a","rule":"r","fingerprint":"{}"}}"#, "ab".repeat(16));
    for (text, words) in [
        (String::new(), &[":1: it is empty"][..]),
        ("[[allow]]\n".to_owned(), &[":1", "not the first line of a baseline"]),
        (HEADER.replace(":1,", ":2,"), &[":1", "format 2"]),
        (HEADER.replace("0a", "ff"), &[":1", "key ff1b2c3d", KEY, "--fingerprint-key"]),
        (format!("{HEADER}\n{entry}\n<<<<<<< ours\n"), &[":3", "not an entry"]),
        (format!("{HEADER}\n\n{}", entry.replace("rule", "ruel")), &[":3", "unknown field `ruel`"]),
        (format!("{HEADER}\n{}", entry.replace("ab", "AB")), &[":2", "32 hexadecimal digits"]),
        (format!("{HEADER}\n{}", entry.replace(r#""r""#, r#""""#)), &[":2", "`rule` is empty"]),
        (format!("{HEADER}\n{}", "x".repeat(300 << 10)), &[":2", "longer than"]),
    ] {
        let told = format!("{:#}", load(&text).err().unwrap());
        for word in words {
            assert!(told.contains(word), "`{word}` is not in: {told}");
        }
    }
}
