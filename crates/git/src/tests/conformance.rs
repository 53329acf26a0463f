//! The connector suite, on a local repository with a working tree and on a mirror of a remote one.

use std::io::Write;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use domesday_connector::conformance::{Fixture, Refused};

use super::http::{Answer, Request, Server};
use super::*;

/// A repository that may be used by one thread after another.
struct Shared(Mutex<Repo>);

impl Shared {
    fn new() -> Shared {
        let repo = Repo::new();
        repo.fill(4);
        repo.git(&["repack", "-adq"]);
        repo.write("loose", "loose");
        repo.commit("loose");
        Shared(Mutex::new(repo))
    }

    fn with<T>(&self, run: impl FnOnce(&Repo) -> T) -> T {
        run(&self.0.lock().unwrap())
    }

    fn history(&self) -> BTreeMap<ObjectKey, Vec<u8>> {
        self.with(everything).into_iter().map(|(id, content)| (ObjectKey::new(id), content)).collect()
    }

    /// Brings a blob into the history; its key.
    fn add(&self) -> ObjectKey {
        self.with(|repo| {
            repo.write("added", "added");
            repo.commit("added");
            ObjectKey::new(repo.id("HEAD:added"))
        })
    }
}

mod local {
    use super::*;

    const UNTRACKED: &str = "untracked/deep/.env";
    const CHANGED: &str = "docs/note-1.md";

    struct Local(Shared);

    async fn new() -> Arc<dyn Fixture> {
        let shared = Shared::new();
        shared.with(|repo| {
            repo.write(UNTRACKED, "TOKEN=x");
            repo.write("untracked/other", "other");
            repo.write(CHANGED, "changed");
        });
        Arc::new(Local(shared))
    }

    fn key(path: &str) -> ObjectKey {
        ObjectKey::new(format!("worktree/{path}"))
    }

    /// What a repository keeps beside its objects.
    fn own_files(repo: &Repo, folder: &str) -> Vec<String> {
        let mut files = Vec::new();
        for entry in fs::read_dir(repo.path.join(folder)).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            let is_object = crate::storage::StorageFile::at(path.as_bytes()).is_some();
            match entry.file_type().unwrap().is_dir() {
                true => files.extend(own_files(repo, &path)),
                false if !is_object => files.push(path),
                false => {}
            }
        }
        files
    }

    #[async_trait]
    impl Fixture for Local {
        async fn connector(&self) -> Arc<dyn Connector> {
            self.0.with(|repo| connector(&GitConfig { uncommitted: true, ..repo.config() }))
        }

        fn objects(&self) -> BTreeMap<ObjectKey, Vec<u8>> {
            let mut objects = self.0.history();
            self.0.with(|repo| {
                for path in [UNTRACKED, "untracked/other", CHANGED, "new"] {
                    let content = fs::read(repo.path.join(path));
                    objects.extend(content.ok().map(|content| (key(path), content)));
                }
                for path in own_files(repo, ".git") {
                    objects.insert(key(&path), fs::read(repo.path.join(&path)).unwrap());
                }
            });
            objects
        }

        async fn change(&self) -> Option<ObjectKey> {
            self.0.with(|repo| repo.write(UNTRACKED, "TOKEN=y"));
            Some(key(UNTRACKED))
        }

        async fn remove(&self) -> Option<ObjectKey> {
            self.0.with(|repo| fs::remove_file(repo.path.join(UNTRACKED)).unwrap());
            Some(key(UNTRACKED))
        }

        async fn add(&self) -> Option<ObjectKey> {
            self.0.with(|repo| repo.write("new", "new"));
            Some(key("new"))
        }

        async fn with_bad_credential(&self) -> Option<Refused> {
            None
        }

        async fn with_flaky_reads(&self) -> Option<Arc<dyn Connector>> {
            None
        }

        async fn large(&self, objects: u64) -> Option<(Arc<dyn Connector>, u64)> {
            let path = self.0.with(|repo| repo.path.join(format!("large-{objects}")));
            git(Path::new("/"), &["init", "-q", "--bare", path.to_str().unwrap()], 0);
            let mut import = Command::new("git");
            import.arg("-C").arg(&path).args(["fast-import", "--quiet"]).stdin(Stdio::piped());
            let mut import = import.spawn().unwrap();
            let mut input = std::io::BufWriter::new(import.stdin.take().unwrap());
            for number in 0..objects {
                write!(input, "blob\ndata 12\n{number:012}\n").unwrap();
            }
            drop(input);
            assert!(import.wait().unwrap().success());
            Some((connector(&GitConfig::new(path)), objects))
        }

        /// The index of its pack: an id, a checksum and a place for each.
        fn held(&self, objects: u64) -> u64 {
            objects * (20 + 4 + 4)
        }
    }

    domesday_connector::conformance_tests!(new);
}

mod mirrored {
    use super::*;

    const TOKEN: &str = "Bearer tok-5f2a9c";

    struct Mirrored {
        shared: Shared,
        server: Server,
        state: TempDir,
    }

    async fn new() -> Arc<dyn Fixture> {
        let shared = Shared::new();
        let server = shared.with(|repo| Server::start(repo, admit));
        Arc::new(Mirrored { shared, server, state: tempfile::tempdir().unwrap() })
    }

    fn admit(request: &Request) -> Answer {
        match request.authorization() {
            TOKEN => Answer::Serve,
            _ => Answer::Status(401, "no".to_owned()),
        }
    }

    impl Mirrored {
        fn connector(&self, server: &Server, state: &str, secret: &str) -> Arc<dyn Connector> {
            let path = self.state.path().join(format!("{state}.secret"));
            fs::write(&path, secret).unwrap();
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
            let own_state = Some(self.state.path().join(state));
            let surroundings = Surroundings { own_state, ..Surroundings::default() };
            let surroundings = surroundings.with_typed(format!("file:{}", path.display()).parse().unwrap());
            let configuration = serde_json::json!({ "url": server.url(), "authentication": "bearer" });
            GitFactory.create(&configuration, &surroundings).unwrap()
        }
    }

    #[async_trait]
    impl Fixture for Mirrored {
        async fn connector(&self) -> Arc<dyn Connector> {
            self.connector(&self.server, "state", TOKEN.trim_start_matches("Bearer "))
        }

        fn objects(&self) -> BTreeMap<ObjectKey, Vec<u8>> {
            self.shared.history()
        }

        async fn change(&self) -> Option<ObjectKey> {
            None
        }

        async fn remove(&self) -> Option<ObjectKey> {
            // A mirror keeps what its remote once had.
            None
        }

        async fn add(&self) -> Option<ObjectKey> {
            Some(self.shared.add())
        }

        async fn with_bad_credential(&self) -> Option<Refused> {
            let secret = "tok-wrong-1f".to_owned();
            Some(Refused { connector: self.connector(&self.server, "refused", &secret), secret })
        }

        async fn with_flaky_reads(&self) -> Option<Arc<dyn Connector>> {
            let count = AtomicUsize::new(0);
            let flaky =
                move |request: &Request| match (count.fetch_add(1, Ordering::Relaxed) % 5, admit(request)) {
                    (0, _) => Answer::Reset,
                    (1, _) => Answer::Status(503, String::new()),
                    (2, Answer::Serve) => Answer::Cut,
                    (_, answer) => answer,
                };
            let server = self.shared.with(|repo| Server::start(repo, flaky));
            Some(self.connector(&server, "flaky", TOKEN.trim_start_matches("Bearer ")))
        }

        async fn large(&self, _: u64) -> Option<(Arc<dyn Connector>, u64)> {
            None
        }
    }

    domesday_connector::conformance_tests!(new);
}
