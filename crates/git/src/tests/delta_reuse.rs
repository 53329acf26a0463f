//! What a delta is said to copy from its base is there; and a scan that reuses the hits of the base finds what a scan of
//! the object alone finds.

use std::sync::OnceLock;

use domesday_engine::{Chunk, ReusableHits, RuleSet, Scanner, Scratch};
use domesday_scheduler::HitsSlot;

use super::*;

/// A history of two files, one of which is moved about within itself; with a made-up key that comes and goes.
fn versions() -> Repo {
    let repo = Repo::new();
    let word = |number: usize| char::from(b'a' + (number % 26) as u8).to_string().repeat(number % 7 + 2);
    let line = |number: usize| format!("this says {} and {}", word(number), word(number / 26));
    let mut lines: Vec<String> = (0..1_500).map(line).collect();
    for commit in 0..25 {
        lines[commit * 131 % 1_500] = format!("changed in {commit}");
        lines[700] = match commit % 3 {
            0 => "nothing".to_owned(),
            _ => "aws_access_key_id = AKIAQ3EGRIXK7ZJH2TLM".to_owned(),
        };
        lines.rotate_left(90 * usize::from(commit == 11));
        repo.write("main.txt", lines.join("\n"));
        repo.write("other.txt", lines[..200 + 17 * commit].join("\n"));
        repo.commit(&format!("commit {commit}"));
    }
    repo.git(&["repack", "-adfq"]);
    repo.git(&["prune-packed"]);
    repo
}

#[tokio::test]
async fn what_deltas_copy_is_there_and_changes_no_finding() {
    let repo = versions();
    let connector = connector(&repo.config());
    let records = list_container(connector.as_ref(), "").await.unwrap();
    let scanner = Scanner::new(Arc::new(RuleSet::builtin().unwrap()));
    let mut scratch = Scratch::new();
    // By their slots: a slot that is held is nobody else's.
    let mut kept: Vec<(HitsSlot, Vec<u8>)> = Vec::new();
    let (mut deltas, mut found) = (0, 0);
    for record in &records {
        let opened = open(connector.as_ref(), &ObjectKey::new(record.name.clone())).unwrap();
        let (bytes, reuse) =
            (opened.random.unwrap().in_memory().unwrap().to_vec(), opened.delta_reuse.unwrap());
        let base: Option<(&OnceLock<ReusableHits>, _)> = reuse.base.as_ref().map(|base| {
            let (_, of_base) = kept.iter().find(|(slot, _)| Arc::ptr_eq(slot, &base.hits)).unwrap();
            for range in &base.copied {
                let (at, from, len) = (range.at, range.from, range.len);
                assert_eq!(bytes[at..at + len], of_base[from..from + len]);
            }
            deltas += 1;
            (&*base.hits, &base.copied[..])
        });
        let base = base.map(|(slot, copied)| (slot.get().unwrap(), copied));
        let (chunk, mut reusing, mut alone) = (Chunk::whole(&bytes, &record.name), Vec::new(), Vec::new());
        let hits = scanner.scan_with_base(&chunk, base, true, &mut scratch, &mut reusing);
        scanner.scan(&chunk, &mut scratch, &mut alone);
        assert_eq!(reusing, alone);
        found += alone.len();
        if let (Some(own), Some(hits)) = (reuse.own, hits) {
            own.set(hits).unwrap();
            kept.push((own, bytes));
        }
    }
    assert!(deltas >= 40, "{deltas} of {}", records.len());
    assert!(found >= 16, "{found}");
}
