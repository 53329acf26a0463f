//! Repositories of which some part is hostile: a bare one in memory-backed storage, written anew for each input, listed,
//! read and traced as a scan does it.

mod stage;

use domesday_connector::{Connector, ConnectorFactory, Surroundings};
use domesday_git::{GitConfig, GitFactory};
use domesday_model::{ListedObject, ObjectKey, RecordKind, TrustContent};
use domesday_scheduler::Moved;
use std::io::Read;

use crate::records::records;
use crate::runtime::wait;
use stage::{Entry, Kind, Stage};

/// Entries that are listed of one input, and bytes that are read of one object, at most.
const RECORDS_MAX: usize = 512;
const OBJECT_BYTES_MAX: u64 = 8 << 20;
/// Entries asked for at once.
const BATCH: usize = 64;

/// Whole objects and deltas of a pack, one a record: the kind is that of the pack (1 to 4, 6, 7; anything else stands in
/// the pack as it is). What a delta's first byte says is which entry before is its base.
pub fn pack(input: &[u8]) {
    let stage = Stage::new();
    let entries: Vec<Entry> =
        records(input).take(RECORDS_MAX).map(|record| Entry::new(record.kind, record.bytes)).collect();
    stage.pack(&entries);
    survey(&stage, &stage.config());
}

/// The bytes of an index, whose pack is sound.
pub fn pack_index(input: &[u8]) {
    let stage = Stage::new();
    stage.pack(&stage::sound_entries());
    stage.write("objects/pack/pack-1.idx", input);
    survey(&stage, &stage.config());
}

/// Objects under their right ids, one a record, the last of which is what a branch leads to. `$0` to `$9` in an object
/// stand for the id of an object before it, `%0` to `%9` for its bytes.
pub fn object(input: &[u8]) {
    let stage = Stage::new();
    let mut ids: Vec<[u8; 20]> = Vec::new();
    for record in records(input).take(RECORDS_MAX) {
        let content = stage::with_ids(record.bytes, &ids);
        let kind = Kind::ALL[usize::from(record.kind) % Kind::ALL.len()];
        ids.push(stage.loose(kind, &content));
    }
    let Some(last) = ids.last() else { return };
    stage.write("refs/heads/main", stage::hex(last).as_bytes());
    survey(&stage, &stage.config());
    survey(&stage, &GitConfig { refs: vec!["main".to_owned()], ..stage.config() });
}

/// Files of a repository that say where something is, one a record.
pub fn refs(input: &[u8]) {
    const FILES: [&str; 12] = [
        "HEAD",
        "packed-refs",
        "refs/heads/main",
        "refs/tags/one",
        "config",
        "shallow",
        "reftable/tables.list",
        "reftable/one.ref",
        "objects/info/alternates",
        "commondir",
        "info/grafts",
        ".git",
    ];
    let stage = Stage::new();
    stage.history();
    for record in records(input).take(FILES.len()) {
        stage.write(FILES[usize::from(record.kind) % FILES.len()], record.bytes);
    }
    survey(&stage, &stage.config());
    for name in ["main", "HEAD", "one"] {
        survey(&stage, &GitConfig { refs: vec![name.to_owned()], ..stage.config() });
    }
}

/// The index of a work tree.
pub fn index(input: &[u8]) {
    let stage = Stage::worktree();
    stage.history();
    stage.write("index", input);
    survey(&stage, &GitConfig { uncommitted: true, ..stage.config() });
    survey(&stage, &GitConfig { staged: true, ..stage.config() });
}

/// Lists everything, reads it, and asks where it came from.
fn survey(stage: &Stage, config: &GitConfig) {
    let configuration = serde_json::to_value(config).unwrap();
    let surroundings = Surroundings { trust_content: TrustContent::No, ..Surroundings::default() };
    let Ok(connector) = GitFactory.create(&configuration, &surroundings) else { return };
    let mut containers = vec![ObjectKey::default()];
    let mut objects: Vec<ListedObject> = Vec::new();
    while let Some(container) = containers.pop() {
        list(&*connector, &container, &mut containers, &mut objects);
    }
    let mut keys = Vec::new();
    for object in objects {
        let Ok(opened) = connector.open(&object).and_then(domesday_scheduler::Opened::into_bytes) else {
            continue;
        };
        let read = std::io::copy(&mut opened.reader.take(OBJECT_BYTES_MAX), &mut std::io::sink());
        if read.is_ok() {
            keys.push(object.key);
        }
    }
    let _ = wait(connector.origins(&keys, &Moved::default()));
    stage.check();
}

fn list(
    connector: &dyn Connector,
    container: &ObjectKey,
    containers: &mut Vec<ObjectKey>,
    objects: &mut Vec<ListedObject>,
) {
    let Ok(mut listing) = wait(connector.list(container, None)) else { return };
    while objects.len() + containers.len() < RECORDS_MAX {
        let Ok(batch) = wait(listing.next_batch(BATCH)) else { return };
        if batch.is_empty() {
            return;
        }
        for record in &batch {
            if record.kind.is_container() {
                containers.push(container.join(&record.name));
            } else if record.kind == RecordKind::File {
                objects.push(ListedObject::in_container(container, record));
            }
        }
    }
}
