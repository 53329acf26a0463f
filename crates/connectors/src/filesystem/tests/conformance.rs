//! The connectors' suite on a tree of files.

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use domesday_connector::conformance::{Fixture, Refused};

use super::*;

/// Names that one file may have: file systems have a limit.
const LINKS_PER_FILE: u64 = 50_000;

struct Files {
    folder: TempDir,
    objects: Mutex<BTreeMap<ObjectKey, Vec<u8>>>,
}

impl Files {
    fn put(&self, key: &[u8], content: &[u8]) -> ObjectKey {
        let path = self.path(key);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        let key = ObjectKey::new(key);
        self.objects.lock().unwrap().insert(key.clone(), content.to_vec());
        key
    }

    fn path(&self, key: &[u8]) -> PathBuf {
        self.folder.path().join(std::ffi::OsString::from_vec(key.to_vec()))
    }
}

#[async_trait]
impl Fixture for Files {
    async fn connector(&self) -> Arc<dyn Connector> {
        connector(&FilesystemConfig::new(self.folder.path().to_owned()))
    }

    fn objects(&self) -> BTreeMap<ObjectKey, Vec<u8>> {
        self.objects.lock().unwrap().clone()
    }

    async fn change(&self) -> Option<ObjectKey> {
        Some(self.put(b"folder/a", b"something else"))
    }

    async fn remove(&self) -> Option<ObjectKey> {
        let key = ObjectKey::new("folder/b");
        fs::remove_file(self.path(key.as_bytes())).unwrap();
        self.objects.lock().unwrap().remove(&key);
        Some(key)
    }

    async fn add(&self) -> Option<ObjectKey> {
        Some(self.put(b"new/one", b"new"))
    }

    async fn with_bad_credential(&self) -> Option<Refused> {
        None
    }

    async fn with_flaky_reads(&self) -> Option<Arc<dyn Connector>> {
        None
    }

    async fn large(&self, objects: u64) -> Option<(Arc<dyn Connector>, u64)> {
        let root = self.folder.path().join(format!("large-{objects}"));
        fs::create_dir(&root).unwrap();
        let path = |index: u64| root.join(format!("{index:09}"));
        for index in 0..objects {
            match index % LINKS_PER_FILE {
                0 => fs::write(path(index), "x").unwrap(),
                // Names of one file: cheap to make, and entries like any other.
                beyond => fs::hard_link(path(index - beyond), path(index)).unwrap(),
            }
        }
        Some((connector(&FilesystemConfig::new(root)), objects))
    }
}

async fn new() -> Arc<dyn Fixture> {
    let files = Files { folder: tempfile::tempdir().unwrap(), objects: Mutex::default() };
    for (key, content) in [
        (&b"a"[..], &b"first"[..]),
        (b"empty", b""),
        (b"folder/a", b"second"),
        (b"folder/b", b"third"),
        (b"folder/deep/er/c", b"fourth"),
        (b"folder/deep/large", &vec![b'x'; 300_000]),
        (b"odd \xff\nname", b"fifth"),
    ] {
        files.put(key, content);
    }
    fs::create_dir(files.folder.path().join("nothing-in-it")).unwrap();
    symlink("a", files.folder.path().join("link")).unwrap();
    Arc::new(files)
}

domesday_connector::conformance_tests!(new);
