//! What an object is said to have in common with the one it is made from, it has; and a scan that goes by it finds what
//! a scan of the object alone finds.

use std::sync::OnceLock;

use domesday_engine::{Chunk, RuleSet, Scanner, Scratch, Traces};
use domesday_scheduler::TracesSlot;

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
async fn what_objects_have_in_common_is_there_and_changes_no_finding() {
    let repo = versions();
    let connector = connector(&repo.config());
    let records = list_container(connector.as_ref(), "").await.unwrap();
    let scanner = Scanner::new(Arc::new(RuleSet::builtin().unwrap()));
    let mut scratch = Scratch::new();
    // By their slots: a slot that is held is nobody else's.
    let mut left: Vec<(TracesSlot, Vec<u8>)> = Vec::new();
    let (mut made_from_others, mut found) = (0, 0);
    for record in &records {
        let (opened, kin) = connector.open_akin(&ObjectKey::new(record.name.clone())).unwrap();
        let (bytes, kin) = (opened.random.unwrap().in_memory().unwrap().to_vec(), kin.unwrap());
        let known: Option<(&OnceLock<Traces>, _)> = kin.base.as_ref().map(|(slot, common)| {
            let (_, base) = left.iter().find(|(other, _)| Arc::ptr_eq(slot, other)).unwrap();
            for one in common {
                assert_eq!(bytes[one.at..one.at + one.len], base[one.from..one.from + one.len]);
            }
            made_from_others += 1;
            (&**slot, &common[..])
        });
        let known = known.map(|(slot, common)| (slot.get().unwrap(), common));
        let (chunk, mut akin, mut alone) = (Chunk::whole(&bytes, &record.name), Vec::new(), Vec::new());
        let traces = scanner.scan_akin(&chunk, known, true, &mut scratch, &mut akin);
        scanner.scan(&chunk, &mut scratch, &mut alone);
        assert_eq!(akin, alone);
        found += alone.len();
        if let (Some(own), Some(traces)) = (kin.own, traces) {
            own.set(traces).unwrap();
            left.push((own, bytes));
        }
    }
    assert!(made_from_others >= 40, "{made_from_others} of {}", records.len());
    assert!(found >= 16, "{found}");
}
