//! What targets become, and what never shows.

use clap::Parser;
use domesday_connector::credentials::{CredentialManager, Secret};

use super::*;
use crate::args::{Cli, Command};

fn scan(args: &[&str]) -> Result<Targets> {
    let cli = Cli::try_parse_from([&["domesday", "scan"], args].concat())?;
    let Command::Scan(args) = cli.command else { panic!("not a scan") };
    targets(&args, None, Path::new("/no/such/state"))
}

fn one(args: &[&str]) -> DatasourceSpec {
    let mut found = scan(args).unwrap().targets;
    assert_eq!(found.len(), 1);
    found.remove(0).spec
}

fn refused(args: &[&str]) -> String {
    format!("{:#}", scan(args).err().unwrap())
}

#[test]
fn each_kind_of_address_goes_to_its_connector() {
    for (typed, kind, configuration) in [
        ("https://example.com/a.git", "git", json!({ "url": "https://example.com/a.git" })),
        ("https://github.com/a/b", "git", json!({ "url": "https://github.com/a/b" })),
        ("git@example.com:a/b", "git", json!({ "url": "git@example.com:a/b" })),
        ("ssh://git@example.com/a", "git", json!({ "url": "ssh://git@example.com/a" })),
        ("file:///srv/a", "git", json!({ "url": "file:///srv/a" })),
        (
            "postgres://ann@db.example:5433/shop?mode=full",
            "postgres",
            json!({ "host": "db.example", "port": 5433, "user": "ann", "databases": ["shop"], "mode": "full" }),
        ),
        ("mysql://db.example", "mysql", json!({ "host": "db.example" })),
        (
            "mariadb://ann@db.example:3307/shop?tls=verify-full",
            "mysql",
            json!({ "host": "db.example", "port": 3307, "user": "ann", "databases": ["shop"], "tls": "verify-full" }),
        ),
        (
            "mssql://auditor@sql.example/shop?tls=verify-full",
            "sqlserver",
            json!({ "host": "sql.example", "user": "auditor", "databases": ["shop"], "tls": "verify-full" }),
        ),
        ("github:acme", "github", json!({ "owner": "acme" })),
        ("github:acme/shop", "github", json!({ "repositories": ["acme/shop"] })),
    ] {
        let spec = one(&[typed]);
        assert_eq!((spec.kind.as_str(), &spec.configuration), (kind, &configuration), "{typed}");
        assert_eq!(spec.name, format!("{kind}:{typed}"));
        assert_eq!(spec.credential, None);
    }
}

#[test]
fn flags_narrow_every_target_and_set_what_a_connector_knows() {
    let spec =
        one(&["github:acme", "--exclude", "*.lock", "--max-file-size", "1K", "--set", "forks=include"]);
    let expected =
        json!({ "owner": "acme", "exclude_paths": ["*.lock"], "max_file_size": 1_024, "forks": "include" });
    assert_eq!(spec.configuration, expected);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let spec = one(&[path, "--set", "max_file_size=7"]);
    assert_eq!((spec.kind.as_str(), &spec.configuration["max_file_size"]), ("filesystem", &json!(7)));
    for flags in [&["--kind", "git"][..], &["--staged"], &["--worktree"], &["--range", "a..b"]] {
        let told = refused(&[&[path], flags].concat());
        assert!(told.contains("git repository"), "{told}");
    }
    assert_eq!(one(&["https://example.com/a", "--kind", "git"]).kind, "git");
    assert!(refused(&[path, "--kind", "github"]).contains("on this machine"));
    assert!(refused(&["https://example.com/a", "--kind", "filesystem"]).contains("--kind"));
}

/// The bare outline of a repository, which is all that is looked at.
fn repository(folder: &std::path::Path) -> String {
    std::fs::create_dir_all(folder.join(".git/objects")).unwrap();
    std::fs::write(folder.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    folder.to_str().unwrap().to_owned()
}

#[test]
fn a_repository_is_scanned_with_its_history_or_the_part_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (path, real) = (repository(folder.path()), folder.path().canonicalize().unwrap());
    let configuration = |flags: &[&str]| {
        let spec = one(&[&[path.as_str()], flags].concat());
        assert_eq!(spec.kind, "git");
        spec.configuration
    };
    assert_eq!(configuration(&[]), json!({ "path": real, "uncommitted": true }));
    assert_eq!(configuration(&["--staged"]), json!({ "path": real, "staged": true }));
    assert_eq!(configuration(&["--range", "a..b"]), json!({ "path": real, "range": "a..b" }));
    let expected = json!({ "path": real, "refs": ["main", "v1"], "since_commit": "c" });
    assert_eq!(configuration(&["--branch", "main", "--branch", "v1", "--since-commit", "c"]), expected);
    for flags in [&["--kind", "filesystem"][..], &["--worktree"]] {
        assert_eq!(one(&[&[path.as_str()], flags].concat()).kind, "filesystem");
    }
    assert_eq!(one(&[&path, "--worktree", "--exclude", "x"]).configuration["exclude"], json!([".git", "x"]));
    let remote = one(&["https://example.com/a.git", "--branch", "main"]).configuration;
    assert_eq!(remote, json!({ "url": "https://example.com/a.git", "refs": ["main"] }));
    assert!(refused(&["https://example.com/a.git", "--staged"]).contains("--staged"));
    assert!(refused(&["s3://bucket", "--branch", "main"]).contains("not a git repository"));
}

#[test]
fn web_flags_say_what_an_address_is() {
    let configuration = |flags: &[&str]| one(&[&["https://example.com/a"], flags].concat()).configuration;
    let address = "https://example.com/a";
    assert_eq!(configuration(&["--crawl", "2"]), json!({ "addresses": [address], "crawl": { "depth": 2 } }));
    assert_eq!(configuration(&["--sitemap"]), json!({ "sitemap": address }));
    let list = configuration(&["--address-list", "--allow-private", "--max-file-size", "1K"]);
    assert_eq!(list, json!({ "list": address, "allow_private": true, "max_size": 1_024 }));
    assert_eq!(one(&["s3://bucket/logs/"]).kind, "s3");
    assert_eq!(one(&["gs://bucket"]).kind, "gcs");
    assert_eq!(one(&["az://account/container"]).kind, "azure");
}

#[test]
fn a_target_is_there_once_under_one_name() {
    assert_eq!(scan(&["-", "-", "github:a", "github:a"]).unwrap().targets.len(), 2);
    let name = one(&["https://example.com/a.git"]).name;
    for typed in
        ["HTTPS://EXAMPLE.com/a.git#x", "https://u:p@example.com/a.git", "https://t@example.com/a.git"]
    {
        assert_eq!(one(&[typed]).name, name);
    }
}

#[tokio::test]
async fn a_password_stays_in_this_process() {
    for (typed, method, secret) in [
        ("https://alice:hunter2@example.com/a.git", "basic", "alice:hunter2"),
        ("https://hunter2@example.com/a.git", "github", "hunter2"),
    ] {
        let found = scan(&[typed]).unwrap();
        let target = &found.targets[0];
        let reference = "run:git:https://example.com/a.git";
        assert_eq!(target.spec.credential.as_deref(), Some(reference));
        assert_eq!(target.spec.configuration["authentication"], method);
        let kept = format!("{:?} {}", target, serde_json::to_string(&target.spec).unwrap());
        assert!(!kept.contains("hunter2") && !kept.contains("alice"), "{kept}");
        let manager = CredentialManager::default().with(found.secrets);
        let resolved = manager.resolve_own(&reference.parse().unwrap()).await.unwrap();
        assert_eq!(resolved, Secret::new(secret.into()));
    }
}

#[test]
fn a_scan_that_was_begun_with_a_password_asks_for_it_again() {
    let found = |typed: &str| scan(&[typed]).unwrap().targets.remove(0);
    let with = found("https://alice:hunter2@example.com/a.git");
    let without = found("https://example.com/a.git");
    assert_eq!(with.identity(), without.identity());
    with.check_resumes(&with.spec.configuration).unwrap();
    without.check_resumes(&without.spec.configuration).unwrap();
    let told = without.check_resumes(&with.spec.configuration).unwrap_err().to_string();
    assert!(told.contains("give it again") && told.contains("git:https://example.com/a.git"), "{told}");
    assert!(with.check_resumes(&without.spec.configuration).unwrap_err().to_string().contains("--fresh"));
}

#[test]
fn a_named_credential_is_for_addresses_and_is_a_reference() {
    let spec = one(&["https://example.com/a.git", "--credential", "env:TOKEN"]);
    assert_eq!(spec.credential.as_deref(), Some("env:TOKEN"));
    assert!(refused(&["-", "--credential", "env:TOKEN"]).contains("no target is an address"));
    for (args, told) in [
        (vec!["github:a", "--credential", "hunter2"], "env:NAME"),
        (vec!["github:a", "--credential", "run:hunter2"], "env:NAME"),
        (vec!["https://u:hunter2@example.com/a.git", "--credential", "env:A"], "either --credential"),
        (vec!["ftp://example.com/a"], "no connector reads such an address"),
        (vec!["ftp://u:hunter2@example.com/a"], "--credential"),
        (vec!["https://example.com/a.git?private_token=hunter2"], "pipe it in"),
        (vec!["u:hunter2@example.com/a"], "begin an address"),
    ] {
        let said = refused(&args);
        assert!(said.contains(told) && !said.contains("hunter2"), "{said}");
    }
}
