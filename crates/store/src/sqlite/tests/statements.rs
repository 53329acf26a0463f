//! SQL is reviewed as SQL, in files: each statement prepares, and each is used.

use super::super::{jobs, results, tasks};
use super::*;
use crate::statement::statements;

const FILES: [&str; 4] = [jobs::FILE, jobs::ENUMERATION, tasks::FILE, results::FILE];

#[tokio::test]
async fn every_statement_prepares() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let refused = store
        .write("test", |c| {
            let all = FILES.into_iter().flat_map(statements);
            let refused = |(name, sql): (&str, &str)| c.prepare(sql).err().map(|error| format!("{name}: {error}"));
            Ok(all.filter_map(refused).collect::<Vec<_>>())
        })
        .await
        .unwrap();
    assert_eq!(refused, Vec::<String>::new());
}

#[test]
fn every_statement_is_used() {
    const SOURCES: [&str; 5] = [
        include_str!("../jobs.rs"),
        include_str!("../reports.rs"),
        include_str!("../results.rs"),
        include_str!("../tasks.rs"),
        include_str!("../units.rs"),
    ];
    let used = |name: &str| SOURCES.iter().any(|source| source.contains(&format!("\"{name}\")")));
    let names: Vec<_> = FILES.into_iter().flat_map(statements).map(|(name, _)| name).collect();
    let unused: Vec<_> = names.iter().filter(|name| !used(name)).collect();
    assert_eq!(unused, Vec::<&&str>::new());
    let mut distinct = names.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), names.len(), "a name twice would hide a statement");
}
