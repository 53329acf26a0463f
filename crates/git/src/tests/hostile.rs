//! Repositories that lie: damaged packs and indices, deltas in a circle, sizes that are not true. Each
//! must end in an error with a name, whatever byte is wrong.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::*;
use crate::hash::id_of;
use crate::id::{HashKind, ObjectKind};

fn packed() -> (Repo, PathBuf) {
    let repo = Repo::new();
    repo.fill(8);
    repo.git(&["repack", "-adfq"]);
    repo.git(&["prune-packed"]);
    let pack = pack_file(&repo);
    (repo, pack)
}

pub(super) fn pack_file(repo: &Repo) -> PathBuf {
    let files = fs::read_dir(repo.path.join(".git/objects/pack")).unwrap();
    files.map(|file| file.unwrap().path()).find(|path| path.extension().unwrap() == "pack").unwrap()
}

/// Git makes its packs read-only.
fn overwrite(path: &Path, bytes: &[u8]) {
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Lists and reads everything with a new connector; how many objects could be read, and what was said.
async fn read_all(repo: &Repo) -> (usize, Vec<String>) {
    let config = repo.config();
    let (mut good, mut errors) = (0, Vec::new());
    match list(&config).await {
        Ok(records) => {
            let connector = connector(&config);
            for record in records {
                match read(connector.as_ref(), std::str::from_utf8(&record.name).unwrap()) {
                    Ok(_) => good += 1,
                    Err(error) => errors.push(error.to_string()),
                }
            }
        }
        Err(error) => errors.push(error.to_string()),
    }
    (good, errors)
}

pub(super) fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Writes a pack of these entries with the index that belongs to it, in place of all others.
fn make_pack(repo: &Repo, entries: &[(ObjectId, Vec<u8>)]) {
    let folder = repo.path.join(".git/objects/pack");
    fs::remove_dir_all(&folder).unwrap();
    fs::create_dir(&folder).unwrap();
    let mut pack = [b"PACK".as_slice(), &2u32.to_be_bytes(), &(entries.len() as u32).to_be_bytes()].concat();
    let mut places = BTreeMap::new();
    for (id, entry) in entries {
        places.insert(*id, pack.len() as u32);
        pack.extend_from_slice(entry);
    }
    pack.extend([0; 20]);
    let mut index = vec![0xff, b't', b'O', b'c', 0, 0, 0, 2];
    for first in 0..=255 {
        let below = places.keys().filter(|id| id.as_bytes()[0] <= first).count() as u32;
        index.extend(below.to_be_bytes());
    }
    places.keys().for_each(|id| index.extend(id.as_bytes()));
    index.extend(vec![0; 4 * places.len()]);
    places.values().for_each(|offset| index.extend(offset.to_be_bytes()));
    index.extend([0; 40]);
    fs::write(folder.join("pack-made.pack"), pack).unwrap();
    fs::write(folder.join("pack-made.idx"), index).unwrap();
}

/// An entry's head.
fn head(kind: u8, mut size: u64) -> Vec<u8> {
    let mut bytes = vec![kind << 4 | (size & 15) as u8];
    size >>= 4;
    while size > 0 {
        *bytes.last_mut().unwrap() |= 0x80;
        bytes.push((size & 0x7f) as u8);
        size >>= 7;
    }
    bytes
}

fn id(number: u8) -> ObjectId {
    ObjectId::from_bytes(&[number; 20]).unwrap()
}

async fn check_entry(entry: Vec<u8>, said: &str) {
    let repo = Repo::new();
    make_pack(&repo, &[(id(1), entry)]);
    let (good, errors) = read_all(&repo).await;
    assert_eq!(good, 0);
    assert!(errors.len() == 1 && errors[0].contains(said), "{errors:?}");
}

#[tokio::test]
async fn entries_that_lie_are_named() {
    let entry = |kind, size, content: &[u8]| [head(kind, size), deflated(content)].concat();
    check_entry(entry(3, 100, b"short"), "smaller than it says").await;
    check_entry(entry(3, 2, b"longer than two"), "larger than it says").await;
    check_entry(entry(3, 2, &[b'x'; 5_000]), "larger than it says").await;
    check_entry(entry(3, 10 << 20, b"short"), "larger than its file can hold").await;
    check_entry(entry(3, u64::MAX >> 1, b"short"), "smaller than it says").await;
    check_entry([head(3, 5), b"no zlib".to_vec()].concat(), "does not inflate").await;
    check_entry([head(3, 5_000), deflated(&[7; 5_000])[..9].to_vec()].concat(), "").await;
    check_entry(entry(0, 5, b"12345"), "no object begins").await;
    check_entry(entry(5, 5, b"12345"), "no object begins").await;
    check_entry(vec![0xff; 30], "no object begins").await;
    // A delta of what begins before the pack does.
    check_entry([head(6, 5), vec![0x7f], deflated(b"12345")].concat(), "no object begins").await;
    check_entry([head(6, 5), vec![0], deflated(b"12345")].concat(), "no object begins").await;
    check_entry([head(7, 5), vec![9; 20], deflated(b"12345")].concat(), "is not in the repository").await;
}

/// Around the sizes at which an object gets more room.
#[tokio::test]
async fn large_objects_are_read_whole() {
    const MIB: usize = 1 << 20;
    for size in [MIB - 513, MIB - 512, MIB - 511, MIB, 4 * MIB - 512, 4 * MIB, 5 * MIB + 1] {
        for content in [noise(7, size), vec![b'x'; size]] {
            let repo = Repo::new();
            let id = id_of(HashKind::Sha1, ObjectKind::Blob, &content);
            make_pack(&repo, &[(id, [head(3, size as u64), deflated(&content)].concat())]);
            let connector = connector(&repo.config());
            assert!(read(connector.as_ref(), &id.to_string()).unwrap() == content, "{size} bytes");
        }
    }
}

#[tokio::test]
async fn ids_that_crowd_together_are_found() {
    let repo = Repo::new();
    let entry = [head(3, 3), deflated(b"abc")].concat();
    let crowded = |number: u16| {
        let mut bytes = [0x55; 20];
        bytes[18..].copy_from_slice(&number.to_be_bytes());
        (ObjectId::from_bytes(&bytes).unwrap(), entry.clone())
    };
    let entries: Vec<_> = (0..3_000).map(|number| crowded(number * 7)).collect();
    make_pack(&repo, &entries);
    // Each is found, and is not what it is called.
    let (good, errors) = read_all(&repo).await;
    assert_eq!((good, errors.len()), (0, 3_000));
    assert!(errors.iter().all(|error| error.contains("its content has the id")));
    let connector = connector(&repo.config());
    for absent in [crowded(1).0, crowded(20_999).0, id(0x54), id(0x55), id(0x56)] {
        let error = read(connector.as_ref(), &absent.to_string()).unwrap_err();
        assert_eq!(error.reason, Reason::Vanished);
    }
}

#[tokio::test]
async fn deltas_in_a_circle_end() {
    let repo = Repo::new();
    let delta = deflated(&[3, 3, 0b1001_0000, 3]);
    let entry = |base: u8| [head(7, 4), id(base).as_bytes().to_vec(), delta.clone()].concat();
    make_pack(&repo, &[(id(1), entry(2)), (id(2), entry(1)), (id(3), entry(3))]);
    let (good, errors) = read_all(&repo).await;
    assert_eq!((good, errors.len()), (0, 3));
    assert!(errors.iter().all(|error| error.contains("in a circle")), "{errors:?}");
}

#[tokio::test]
async fn deltas_that_lie_are_named() {
    for (delta, said) in [
        (&[4, 3, 0b1001_0000, 3][..], "another base"),
        (&[3, 9, 0b1001_0000, 3], "makes less"),
        (&[3, 1, 0b1001_0000, 3], "makes more"),
        (&[3, 3, 0b1001_0000, 4], "beyond its base"),
        (&[3, 0xff, 0xff, 0xff, 0xff, 0x7f, 0b1001_0000, 3], "beyond the limit"),
        (&[3], "no head"),
    ] {
        let repo = Repo::new();
        let base = [head(3, 3), deflated(b"abc")].concat();
        let back = base.len() as u8;
        let entry = [head(6, delta.len() as u64), vec![back], deflated(delta)].concat();
        let whole = id_of(HashKind::Sha1, ObjectKind::Blob, b"abc");
        make_pack(&repo, &[(whole, base), (id(2), entry)]);
        let (good, errors) = read_all(&repo).await;
        assert_eq!(good, 1, "the base itself is whole");
        assert!(errors.len() == 1 && errors[0].contains(said), "{said}: {errors:?}");
    }
}

#[tokio::test]
async fn a_pack_that_cannot_be_read_is_named_and_the_others_are_scanned() {
    let (repo, pack) = packed();
    repo.write("new", "loose");
    repo.commit("loose beside a broken pack");
    overwrite(&pack, b"not a pack at all, not even nearly");
    let (good, errors) = read_all(&repo).await;
    assert_eq!(good, 2, "{errors:?}");
    let (packs, missing): (Vec<_>, Vec<_>) =
        errors.iter().partition(|error| error.contains("does not begin as a pack"));
    assert!(packs.len() == 1 && !missing.is_empty(), "{errors:?}");
    assert!(missing.iter().all(|error| error.contains("is not in the repository")), "{errors:?}");
}

#[tokio::test]
async fn any_wrong_byte_of_a_pack_or_index_ends_in_an_error_or_in_nothing() {
    let (repo, pack) = packed();
    let (whole, _) = read_all(&repo).await;
    let index = pack.with_extension("idx");
    for path in [&pack, &index] {
        let bytes = fs::read(path).unwrap();
        let step = (bytes.len() / 60).max(1);
        for at in (0..bytes.len()).step_by(step) {
            for value in [0xff, bytes[at] ^ 0x10] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                overwrite(path, &damaged);
                let (good, _) = read_all(&repo).await;
                assert!(good <= whole);
            }
        }
        for len in [0, 3, 11, 40, 1_100, bytes.len() / 2, bytes.len() - 1] {
            overwrite(path, &bytes[..len]);
            let (good, errors) = read_all(&repo).await;
            assert!(good < whole || len == bytes.len() - 1, "{len}: {errors:?}");
        }
        overwrite(path, &bytes);
    }
}

#[tokio::test]
async fn loose_objects_that_lie_are_named() {
    for (content, said) in [
        (deflated(b"blob 5\0abc"), "smaller than it says"),
        (deflated(b"blob 2\0abc"), "larger than it says"),
        (deflated(b"blub 3\0abc"), "no kind and size"),
        (deflated(b"blob 99999999999999999999999\0"), "no kind and size"),
        (deflated(b"blob 9999999999999999\0abc"), "smaller than it says"),
        (deflated(&[b'x'; 900]), "no kind and size"),
        (b"nothing deflated".to_vec(), "cannot be read"),
        (Vec::new(), "cannot be read"),
    ] {
        let repo = Repo::new();
        repo.write(".git/objects/ab/cdef0123456789abcdef0123456789abcdef01", content);
        let (good, errors) = read_all(&repo).await;
        assert_eq!(good, 0);
        assert!(errors.len() == 1 && errors[0].contains(said), "{said}: {errors:?}");
    }
}

/// Writes a loose object under the id that it has.
fn store(repo: &Repo, kind: ObjectKind, content: &[u8]) -> ObjectId {
    let id = id_of(HashKind::Sha1, kind, content);
    let name = id.to_string();
    let head = format!("{} {}\0", kind.name(), content.len());
    let path = format!(".git/objects/{}/{}", &name[..2], &name[2..]);
    repo.write(&path, deflated(&[head.as_bytes(), content].concat()));
    id
}

/// A branch with one commit of this tree.
fn commit_tree(repo: &Repo, tree: &ObjectId) -> ObjectId {
    let commit = format!("tree {tree}\nauthor A <a> 1 +0000\ncommitter A <a> 1 +0000\n\nm");
    let commit = store(repo, ObjectKind::Commit, commit.as_bytes());
    repo.write(".git/refs/heads/main", commit.to_string());
    commit
}

fn entry(name: &[u8], tree: &ObjectId) -> Vec<u8> {
    [b"40000 ", name, b"\0", tree.as_bytes()].concat()
}

#[tokio::test]
async fn a_tree_in_a_circle_lies() {
    let repo = Repo::new();
    let entries = [entry(b"a", &id(0x11)), entry(b"b", &id(0x11))].concat();
    let tree = [format!("tree {}\0", entries.len()).as_bytes(), &entries].concat();
    repo.write(&format!(".git/objects/11/{}", "11".repeat(19)), deflated(&tree));
    commit_tree(&repo, &id(0x11));
    let config = GitConfig { refs: vec!["main".into()], ..repo.config() };
    assert!(list(&config).await.unwrap_err().to_string().contains("its content has the id"));
    let blob = repo.git(&["hash-object", "-w", ".git/HEAD"]);
    assert!(connector(&config).origins(&[ObjectKey::new(blob)], &Moved::default()).await.unwrap().is_empty());
    let (good, errors) = read_all(&repo).await;
    assert!(good == 2 && errors.len() == 1 && errors[0].contains("its content has the id"), "{errors:?}");
}

#[tokio::test]
async fn trees_beyond_number_end() {
    let repo = Repo::new();
    let mut tree = store(&repo, ObjectKind::Tree, b"");
    // Each folder twice in the next one: more paths than anybody could go through.
    for _ in 0..40 {
        tree = store(
            &repo,
            ObjectKind::Tree,
            &[b"a", b"b"].map(|name| entry(&name.repeat(250), &tree)).concat(),
        );
    }
    let commit = commit_tree(&repo, &tree);
    let config = GitConfig { refs: vec!["main".into()], ..repo.config() };
    assert_eq!(ids(&config).await, [commit.to_string()]);
    let blob = repo.git(&["hash-object", "-w", ".git/HEAD"]);
    assert!(connector(&config).origins(&[ObjectKey::new(blob)], &Moved::default()).await.unwrap().is_empty());
    let config = GitConfig { exclude: vec!["x".into()], ..config };
    let error = list(&config).await.unwrap_err().to_string();
    assert!(error.contains("a path of more than"), "{error}");
}

#[tokio::test]
async fn a_fifo_in_the_place_of_a_file_does_not_hang() {
    let (repo, pack) = packed();
    for place in [".git/objects/ab/cdef0123456789abcdef0123456789abcdef01", ".git/packed-refs"] {
        let path = repo.path.join(place);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
            .unwrap();
    }
    let (whole, errors) = read_all(&repo).await;
    assert!(errors.len() == 1 && errors[0].contains("not a regular file"), "{errors:?}");
    let config = GitConfig { refs: vec!["nothing".into()], ..repo.config() };
    let error = list(&config).await.unwrap_err().to_string();
    assert!(error.contains("not a regular file"), "{error}");
    fs::remove_file(&pack).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &pack, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .unwrap();
    let (good, errors) = read_all(&repo).await;
    assert!(whole > 0 && good == 0 && errors.len() == 2, "{errors:?}");
}

#[tokio::test]
async fn nothing_of_the_repository_is_run_or_followed() {
    let repo = Repo::new();
    repo.write("file", "content");
    repo.commit("first");
    let ran = repo.path.join("ran");
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("config"), "[extensions]\n objectFormat = sha256\n").unwrap();
    let config = format!(
        "[core]\n fsmonitor = touch {0}\n hooksPath = hooks\n sshCommand = touch {0}\n[include]\n path = {1}/config\n",
        ran.display(),
        outside.path().display()
    );
    repo.write(".git/config", config);
    assert_eq!(ids(&repo.config()).await.len(), 2);
    let staged = GitConfig { staged: true, ..repo.config() };
    assert_eq!(ids(&staged).await.len(), 0);
    assert!(!ran.exists());
}
