//! Mirrors of remote repositories: over files, HTTP, SSH and git's own protocol, from servers that want a
//! secret, refuse, break or hang.

use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::Duration;

use super::http::{Answer, Request, Server};
use super::*;
use crate::config::SshHostKeys;
use crate::remote::{Access, Alive, Authentication, MIRRORS_BYTES, Mirror, MirrorCache, RemoteUrl, Trust};

/// Secrets that are nowhere else.
const TOKEN: &str = "tok-5f2a9c";
const ROTATED: &str = "tok-77e01b";
/// `x-access-token:tok-5f2a9c`, and the same with the other one, in base64.
const BASIC: &str = "Basic eC1hY2Nlc3MtdG9rZW46dG9rLTVmMmE5Yw==";
const ROTATED_BASIC: &str = "Basic eC1hY2Nlc3MtdG9rZW46dG9rLTc3ZTAxYg==";

fn file_url(repo: &Repo) -> RemoteUrl {
    RemoteUrl::parse(&format!("file://{}", repo.path.display())).unwrap()
}

fn fetch(cache: &MirrorCache, url: &RemoteUrl) -> Result<Mirror, GitError> {
    let alive = Alive::new();
    cache.fetch(url, &Authentication::None, &alive.watch())
}

/// A state folder, and a file with a secret that a connector is pointed to.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new(secret: &str) -> Place {
        let place = Place { folder: tempfile::tempdir().unwrap() };
        place.set(secret);
        place
    }

    fn set(&self, secret: &str) {
        let path = self.folder.path().join("secret");
        fs::write(&path, secret).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn surroundings(&self, is_secret: bool) -> Surroundings {
        let reference = format!("file:{}", self.folder.path().join("secret").display());
        let surroundings = Surroundings { own_state: Some(self.state()), ..Surroundings::default() };
        if is_secret { surroundings.with_typed(reference.parse().unwrap()) } else { surroundings }
    }

    fn connector(&self, url: &str, method: Option<&str>, is_secret: bool) -> Arc<dyn Connector> {
        let mut configuration = serde_json::json!({ "url": url });
        if let Some(method) = method {
            configuration["authentication"] = method.into();
        }
        GitFactory.create(&configuration, &self.surroundings(is_secret)).unwrap()
    }

    fn holds(&self, text: &str) -> bool {
        let mut grep = Command::new("grep");
        grep.args(["-r", text]).arg(self.state()).stdout(Stdio::null()).status().unwrap().success()
    }
}

/// Whoever has this header is served.
fn wants(header: &str) -> impl Fn(&Request) -> Answer + Send + 'static {
    let header = header.to_owned();
    move |request| match request.authorization() {
        given if given == header => Answer::Serve,
        given => Answer::Status(401, format!("not {given}")),
    }
}

async fn count(connector: &dyn Connector) -> Result<usize, ConnectorError> {
    list_container(connector, "").await.map(|records| records.len())
}

#[tokio::test]
async fn a_mirror_is_made_and_follows_its_remote() {
    let origin = Repo::new();
    origin.fill(5);
    let folder = tempfile::tempdir().unwrap();
    let cache = MirrorCache::new(Some(folder.path().join("mirrors")), MIRRORS_BYTES);
    assert!(cache.held(&file_url(&origin)).unwrap().is_none());
    let mirror = fetch(&cache, &file_url(&origin)).unwrap();
    let mode = std::fs::metadata(folder.path().join("mirrors")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "mirrors are for nobody else");
    assert_eq!(check_everything(&Repo::at(mirror.path().to_owned())).await, 16);
    origin.write("more", "more");
    origin.commit("more");
    origin.git(&["tag", "-d", "heavy"]);
    let again = fetch(&cache, &file_url(&origin)).unwrap();
    assert_eq!(again.path(), mirror.path());
    assert_eq!(cache.held(&file_url(&origin)).unwrap().unwrap().path(), mirror.path());
    assert_eq!(check_everything(&Repo::at(mirror.path().to_owned())).await, 18);
    assert_eq!(Repo::at(mirror.path().to_owned()).git(&["tag"]), "light");
    assert!(!mirror.path().join("hooks").exists());
}

#[tokio::test]
async fn a_remote_is_scanned_through_its_mirror() {
    let origin = Repo::new();
    origin.fill(4);
    let place = Place::new(TOKEN);
    let configuration = serde_json::json!({ "url": file_url(&origin).as_str(), "range": "light~2..light" });
    let connector = GitFactory.create(&configuration, &place.surroundings(false)).unwrap();
    let records = list_container(connector.as_ref(), "").await.unwrap();
    // Two commits, with a version of each of two files.
    assert_eq!(records.len(), 6);
    let mut keys = Vec::new();
    for record in records {
        let id = String::from_utf8(record.name).unwrap();
        let kind = origin.git(&["cat-file", "-t", &id]);
        assert_eq!(read(connector.as_ref(), &id).unwrap(), origin.git_bytes(&["cat-file", &kind, &id]));
        keys.push(ObjectKey::new(id));
    }
    assert_eq!(connector.origins(&keys, &Moved::default()).await.unwrap().len(), 6);
    let error = GitFactory.create(&configuration, &place.surroundings(true)).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("takes none"), "{error}");
    assert!(
        GitFactory.create(&configuration, &Surroundings::default()).is_ok(),
        "nothing is reached for yet"
    );
}

#[test]
fn mirrors_that_nobody_uses_make_room() {
    // Not to be compressed, so that its size is that of the mirror.
    const FILE_LEN: usize = 1 << 20;
    const ROOM: u64 = 3 * FILE_LEN as u64 / 2;
    let folder = tempfile::tempdir().unwrap();
    let repos: Vec<Repo> = (0..3).map(|_| Repo::new()).collect();
    for (number, repo) in repos.iter().enumerate() {
        repo.write("file", noise(number as u64, FILE_LEN));
        repo.commit("one");
    }
    // Room for one of them, and a half.
    let cache = MirrorCache::new(Some(folder.path().to_owned()), ROOM);
    let held = fetch(&cache, &file_url(&repos[0])).unwrap();
    let freed = fetch(&cache, &file_url(&repos[1])).unwrap().path().to_owned();
    assert!(freed.exists(), "the one that was just made stays");
    let last = fetch(&cache, &file_url(&repos[2])).unwrap();
    assert!(held.path().exists(), "it is in use");
    assert!(last.path().exists());
    assert!(!freed.exists());
    assert!(fetch(&cache, &file_url(&repos[1])).unwrap().path().exists(), "made again");
    let small = MirrorCache::new(Some(folder.path().join("small")), FILE_LEN as u64 / 2);
    let error = fetch(&small, &file_url(&repos[0])).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("beyond the limit"), "{error}");
    assert_eq!(fs::read_dir(folder.path().join("small")).unwrap().count(), 2, "only locks are left");
}

#[test]
fn a_remote_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let cache = MirrorCache::new(Some(folder.path().to_owned()), MIRRORS_BYTES);
    let url = RemoteUrl::parse(&format!("file://{}/nothing", folder.path().display())).unwrap();
    let error = fetch(&cache, &url).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("git clone of file://") && error.contains("nothing"), "{error}");
}

#[tokio::test]
async fn a_token_reaches_the_server_and_nothing_else() {
    let origin = Repo::new();
    origin.fill(30);
    let seen = Arc::new(std::sync::Mutex::new((0, 0)));
    let counted = Arc::clone(&seen);
    let server = Server::start(&origin, move |request| {
        if request.authorization() == BASIC {
            let mut counted = counted.lock().unwrap();
            *counted = (counted.0 + 1, counted.1 + command_lines_with(TOKEN));
        }
        wants(BASIC)(request)
    });
    let place = Place::new(TOKEN);
    let connector = place.connector(&server.url(), None, true);
    assert!(connector.test().await.unwrap() >= 3, "a branch and two tags");
    let made = fs::read_dir(place.state().join("git-mirrors")).unwrap().flatten();
    assert!(made.into_iter().all(|entry| entry.file_type().unwrap().is_file()), "a test makes no mirror");
    assert_eq!(count(connector.as_ref()).await.unwrap(), 91);
    let (admitted, visible) = *seen.lock().unwrap();
    assert!(admitted > 2, "{admitted}");
    assert_eq!(visible, 0, "the token is on a command line");
    for text in [TOKEN, "eC1hY2Nlc3MtdG9rZW46"] {
        assert!(!place.holds(text), "the token is in a file of the state folder");
    }
    // A wrong one, and then the right one again: it is read each time.
    place.set("tok-wrong");
    let error = count(connector.as_ref()).await.unwrap_err();
    assert!(matches!(error, ConnectorError::Denied { .. }), "{error}");
    assert!(!error.is_retryable() && !error.to_string().contains("tok-wrong"), "{error}");
    assert!(error.to_string().contains("expired"), "{error}");
    server.set(wants(ROTATED_BASIC));
    place.set(ROTATED);
    assert_eq!(count(connector.as_ref()).await.unwrap(), 91);
}

/// Processes of this machine that have this text on their command line. Looked at again and again: the system shows
/// the environment in its place for a moment while a process begins, and whoever asks the server lives on meanwhile.
fn command_lines_with(text: &str) -> usize {
    let shows = |process: &PathBuf| {
        fs::read(process.join("cmdline"))
            .is_ok_and(|line| line.windows(text.len()).any(|part| part == text.as_bytes()))
    };
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let mut seen: Vec<PathBuf> = processes.filter(shows).collect();
    domesday_testkit::wait::until(Duration::from_secs(5), || {
        seen.retain(shows);
        seen.is_empty().then_some(())
    });
    seen.len()
}

#[tokio::test]
async fn each_method_says_who_asks_in_its_own_way() {
    let origin = Repo::new();
    origin.fill(2);
    let server = Server::start(&origin, wants(BASIC));
    for (method, secret, header) in [
        ("bearer", TOKEN, format!("Bearer {TOKEN}")),
        // `Alice:s3:cret` in base64.
        ("basic", "Alice:s3:cret", "Basic QWxpY2U6czM6Y3JldA==".to_owned()),
        ("github", TOKEN, BASIC.to_owned()),
    ] {
        let place = Place::new(secret);
        server.set(wants(&header));
        let connector = place.connector(&server.url(), Some(method), true);
        assert_eq!(count(connector.as_ref()).await.unwrap(), 7, "{method}");
        assert!(!place.holds(TOKEN) && !place.holds("s3:cret"), "{method}");
        server.set(wants("something else"));
        let error = count(connector.as_ref()).await.unwrap_err();
        assert!(matches!(error, ConnectorError::Denied { .. }), "{method}: {error}");
        assert!(!error.to_string().contains(secret), "{method}: {error}");
    }
    // A user and a password are known by their colon, which no token has.
    for secret in ["Alice:s3:cret", r#"{"user": "Alice", "password": "s3:cret"}"#] {
        let place = Place::new(secret);
        server.set(wants("Basic QWxpY2U6czM6Y3JldA=="));
        let connector = place.connector(&server.url(), None, true);
        assert_eq!(count(connector.as_ref()).await.unwrap(), 7, "{secret}");
    }
    let place = Place::new("alice");
    let error = count(place.connector(&server.url(), None, true).as_ref()).await.unwrap_err();
    assert!(error.to_string().contains("USER:PASSWORD@"), "{error}");
    let place = Place::new("two\nlines");
    let error = count(place.connector(&server.url(), None, true).as_ref()).await.unwrap_err();
    assert!(error.to_string().contains("line break"), "{error}");
}

#[tokio::test]
async fn what_a_server_says_decides_whether_trying_again_helps() {
    let origin = Repo::new();
    origin.fill(2);
    let server = Server::start(&origin, |_| Answer::Status(401, "who are you".to_owned()));
    let place = Place::new(TOKEN);
    let connector = place.connector(&server.url(), None, false);
    let error = count(connector.as_ref()).await.unwrap_err();
    assert!(matches!(error, ConnectorError::Denied { .. }), "{error}");
    assert!(error.to_string().contains("give the data source a credential"), "{error}");
    for (status, is_denied) in [(403, true), (404, false), (500, false), (503, false), (301, false)] {
        server.set(move |_| Answer::Status(status, String::new()));
        let error = count(connector.as_ref()).await.unwrap_err();
        assert_eq!(matches!(error, ConnectorError::Denied { .. }), is_denied, "{status}: {error}");
        assert_eq!(error.is_retryable(), !is_denied && status != 404, "{status}: {error}");
        let tested = connector.test().await.unwrap_err();
        assert_eq!(matches!(tested, ConnectorError::Denied { .. }), is_denied, "{status}: {tested}");
    }
    // A connection that is cut before, and in the middle of, what git says.
    server.set(|_| Answer::Reset);
    assert!(count(connector.as_ref()).await.unwrap_err().is_retryable());
    server.set(|request| if request.method == "POST" { Answer::Cut } else { Answer::Serve });
    assert!(count(connector.as_ref()).await.unwrap_err().is_retryable());
    server.set(|_| Answer::Serve);
    assert_eq!(count(connector.as_ref()).await.unwrap(), 7);
    let gone = RemoteUrl::parse("http://127.0.0.1:1/repo").unwrap();
    let error = count(place.connector(gone.as_str(), None, false).as_ref()).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
}

#[tokio::test]
async fn a_token_that_expires_in_the_middle_fails_only_what_it_must() {
    let origin = Repo::new();
    origin.fill(3);
    let server = Server::start(&origin, wants(BASIC));
    let place = Place::new(TOKEN);
    let connector = place.connector(&server.url(), None, true);
    let listed = list_container(connector.as_ref(), "").await.unwrap();
    origin.write("more", "more");
    origin.commit("more");
    // The references are still shown, and then no more.
    server.set(|request| match request.method.as_str() {
        "GET" => wants(BASIC)(request),
        _ => Answer::Status(401, "expired".to_owned()),
    });
    let error = count(connector.as_ref()).await.unwrap_err();
    assert!(matches!(error, ConnectorError::Denied { .. }), "{error}");
    // What was listed can still be read, by this connector and by that of another worker.
    for connector in [connector, place.connector(&server.url(), None, true)] {
        for record in &listed {
            read(connector.as_ref(), std::str::from_utf8(&record.name).unwrap()).unwrap();
        }
    }
    let fresh = Place::new(TOKEN);
    let error = count(fresh.connector(&server.url(), None, true).as_ref()).await.unwrap_err();
    assert!(matches!(error, ConnectorError::Denied { .. }), "{error}");
    let left: Vec<_> = fs::read_dir(fresh.state().join("git-mirrors")).unwrap().flatten().collect();
    assert!(left.iter().all(|entry| entry.file_type().unwrap().is_file()), "{left:?}");
}

#[tokio::test]
async fn another_worker_asks_for_what_its_mirror_has_not_and_not_for_each() {
    let origin = Repo::new();
    origin.fill(3);
    let server = Server::start(&origin, |_| Answer::Serve);
    let (here, there) = (Place::new(TOKEN), Place::new(TOKEN));
    let connector = there.connector(&server.url(), None, false);
    // Made when the first object is opened.
    let first = origin.id("main");
    assert_eq!(read(connector.as_ref(), &first).unwrap(), origin.git_bytes(&["cat-file", "commit", &first]));
    let before = server.requests();
    read(connector.as_ref(), &origin.id("main~1")).unwrap();
    assert_eq!(server.requests(), before);
    origin.write("more", "more");
    let more = origin.commit("more");
    assert_eq!(count(here.connector(&server.url(), None, false).as_ref()).await.unwrap(), 12);
    let before = server.requests();
    // A moment after it was asked, it is not asked again.
    for _ in 0..5 {
        assert_eq!(read(connector.as_ref(), &more).unwrap_err().reason, Reason::Vanished);
    }
    assert_eq!(server.requests(), before);
    let restarted = there.connector(&server.url(), None, false);
    read(restarted.as_ref(), &more).unwrap();
    assert!(server.requests() > before);
    // Where nothing can be had, that is said once, and remembered.
    server.set(|_| Answer::Status(403, String::new()));
    let elsewhere = Place::new(TOKEN).connector(&server.url(), None, false);
    let before = server.requests();
    for _ in 0..5 {
        assert_eq!(read(elsewhere.as_ref(), &more).unwrap_err().reason, Reason::PermissionDenied);
    }
    assert!(server.requests() <= before + 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_does_not_wait_any_more_ends_it() {
    let origin = Repo::new();
    origin.fill(2);
    let server = Server::start(&origin, |request| match request.method.as_str() {
        "POST" => Answer::Wait,
        _ => Answer::Serve,
    });
    let place = Place::new(TOKEN);
    let connector = place.connector(&server.url(), None, false);
    let (asked, second) = (Arc::clone(&connector), Arc::clone(&connector));
    let listing = tokio::spawn(async move { count(asked.as_ref()).await });
    server.wait_for(2);
    // Another one waits for the first, and gives up.
    let waiting = tokio::spawn(async move { count(second.as_ref()).await });
    waiting.abort();
    listing.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    assert!(listing.await.unwrap_err().is_cancelled());
    // The lock is free as soon as `git` has ended, though the server never answered.
    server.set(|_| Answer::Serve);
    assert_eq!(count(connector.as_ref()).await.unwrap(), 7);
    server.go_on();
}

#[test]
fn two_who_want_the_same_get_one_mirror() {
    let origin = Repo::new();
    origin.fill(5);
    let server = Server::start(&origin, |_| Answer::Serve);
    let folder = tempfile::tempdir().unwrap();
    let (url, main) = (RemoteUrl::parse(&server.url()).unwrap(), origin.id("main"));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let cache = MirrorCache::new(Some(folder.path().to_owned()), MIRRORS_BYTES);
                let mirror = fetch(&cache, &url).unwrap();
                assert_eq!(Repo::at(mirror.path().to_owned()).id("main"), main);
            });
        }
    });
}

/// The variables that tell the test below what to fetch, when it is run to be killed.
const KILLED_URL: &str = "DOMESDAY_TEST_KILLED_URL";
const KILLED_FOLDER: &str = "DOMESDAY_TEST_KILLED_FOLDER";

#[test]
fn a_process_that_is_killed_while_it_fetches_leaves_nothing_that_hurts() {
    if let (Ok(url), Ok(folder)) = (std::env::var(KILLED_URL), std::env::var(KILLED_FOLDER)) {
        let cache = MirrorCache::new(Some(folder.into()), MIRRORS_BYTES);
        fetch(&cache, &RemoteUrl::parse(&url).unwrap()).unwrap();
        panic!("it should have been killed");
    }
    let origin = Repo::new();
    origin.fill(5);
    let server = Server::start(&origin, |_| Answer::Serve);
    let folder = tempfile::tempdir().unwrap();
    let url = RemoteUrl::parse(&server.url()).unwrap();
    let cache = MirrorCache::new(Some(folder.path().to_owned()), MIRRORS_BYTES);
    // While it is made, and while it is updated.
    for round in 0..2 {
        server.set(|request| if request.method == "POST" { Answer::Wait } else { Answer::Serve });
        let before = server.requests();
        let name = "tests::remote::a_process_that_is_killed_while_it_fetches_leaves_nothing_that_hurts";
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name])
            .env(KILLED_URL, url.as_str())
            .env(KILLED_FOLDER, folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        server.wait_for(before + 2);
        child.kill().unwrap();
        child.wait().unwrap();
        if round == 1 {
            // What a `git` that was killed itself leaves.
            let mirror = cache.held(&url).unwrap().unwrap();
            for left in ["packed-refs.lock", "refs/heads/main.lock", "objects/pack/tmp_pack_x"] {
                fs::create_dir_all(mirror.path().join(left).parent().unwrap()).unwrap();
                fs::write(mirror.path().join(left), "half").unwrap();
            }
        }
        // The `git` that it had started still waits, and holds the lock, until it is let go on.
        let nobody = Alive::new().watch();
        let error = cache.fetch(&url, &Authentication::None, &nobody).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("another process uses it"), "{error}");
        server.go_on();
        server.set(|_| Answer::Serve);
        let mirror = fetch(&cache, &url).unwrap();
        assert_eq!(Repo::at(mirror.path().to_owned()).id("main"), origin.id("main"));
        assert!(!folder.path().join(mirror.path().file_stem().unwrap()).with_extension("new").exists());
        assert!(!mirror.path().join("objects/pack/tmp_pack_x").exists());
        origin.write("more", format!("more {round}"));
        origin.commit("more");
    }
    // Half a mirror, as a computer that lost its power may leave it.
    let mirror = cache.held(&url).unwrap().unwrap().path().to_owned();
    fs::remove_file(mirror.join("HEAD")).unwrap();
    assert!(cache.held(&url).unwrap().is_none());
    let mirror = fetch(&cache, &url).unwrap();
    assert_eq!(Repo::at(mirror.path().to_owned()).id("main"), origin.id("main"));
}

#[tokio::test]
async fn ssh_is_run_with_the_key_and_without_questions() {
    let origin = Repo::new();
    origin.fill(3);
    let place = Place::new("-----BEGIN KEY-----\nnot a real one");
    // In the place of `ssh`: says how it was called, and runs on this machine what it should on the other.
    let (ssh, said) = (place.folder.path().join("fake ssh"), place.folder.path().join("said"));
    let script = format!(
        "#!/bin/sh\n{{ echo \"args: $*\"; echo \"agent: $SSH_AUTH_SOCK\"; test -n \"$DOMESDAY_GIT_KEY\" && \
         {{ stat -c 'mode: %a' \"$DOMESDAY_GIT_KEY\"; cat \"$DOMESDAY_GIT_KEY\"; }}; }} > '{}'\n\
         while test $# -gt 1; do shift; done\nexec sh -c \"$1\"\n",
        said.display()
    );
    fs::write(&ssh, script).unwrap();
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o700)).unwrap();
    let cache =
        MirrorCache::new(Some(place.state()), MIRRORS_BYTES).with_ssh(&format!("'{}'", ssh.display()));
    let alive = Alive::new();
    for address in ["ssh://git@host.example:2222", "git@host.example:"] {
        let url = RemoteUrl::parse(&format!("{address}{}", origin.path.display())).unwrap();
        let access = Access::new(&url, None, &place.surroundings(true)).unwrap();
        let key = access.authentication().await.unwrap();
        assert!(!format!("{key:?}").contains("real"));
        let mirror = cache.fetch(&url, &key, &alive.watch()).unwrap();
        assert_eq!(Repo::at(mirror.path().to_owned()).id("main"), origin.id("main"));
        let said = fs::read_to_string(&said).unwrap();
        for part in [
            "BatchMode=yes",
            "StrictHostKeyChecking=yes",
            "ControlPath=none",
            "IdentitiesOnly=yes",
            "IdentityAgent=none",
            "git@host.example git-upload-pack",
            "mode: 600",
            "BEGIN KEY-----\nnot a real one\n",
        ] {
            assert!(said.contains(part), "no {part} in {said}");
        }
        assert_eq!(said.contains("-p 2222"), address.starts_with("ssh"), "{said}");
        assert!(!said.lines().next().unwrap().contains("real"));
        // Without a key: whatever `ssh` has itself.
        let access = Access::new(&url, None, &place.surroundings(false)).unwrap();
        let none = access.authentication().await.unwrap();
        cache.fetch(&url, &none, &alive.watch()).unwrap();
    }
    let without = fs::read_to_string(&said).unwrap();
    assert!(without.contains("BatchMode=yes") && !without.contains("IdentityAgent"), "{without}");
    assert!(!place.holds("not a real one"), "the key is left behind");
    fs::write(&ssh, "#!/bin/sh\necho 'git@host: Permission denied (publickey).' >&2; exit 255\n").unwrap();
    let url = RemoteUrl::parse("git@host.example:nothing").unwrap();
    let error = ConnectorError::from(fetch(&cache, &url).map(|_| ()).unwrap_err());
    assert!(matches!(error, ConnectorError::Denied { .. }), "{error}");
}

/// A real server of SSH on this machine, which lets the user of this test in by one key.
struct Sshd {
    folder: TempDir,
    server: std::process::Child,
    port: u16,
}

impl Sshd {
    const PROGRAM: &str = "/usr/sbin/sshd";

    fn start() -> Sshd {
        let folder = tempfile::tempdir().unwrap();
        for name in ["host", "user"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]).arg(folder.path().join(name));
            assert!(keygen.status().unwrap().success());
        }
        let at = |name: &str| folder.path().join(name).display().to_string();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let settings = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\n\
             PidFile none\nPermitRootLogin prohibit-password\nPasswordAuthentication no\n",
            at("host"),
            at("user.pub")
        );
        fs::write(folder.path().join("config"), settings).unwrap();
        fs::create_dir_all("/run/sshd").unwrap();
        let mut server = Command::new(Sshd::PROGRAM);
        server.args(["-D", "-e", "-f", &at("config")]).stderr(Stdio::null());
        let sshd = Sshd { server: server.spawn().unwrap(), folder, port };
        for _ in 0..1_000 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return sshd;
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        panic!("sshd does not listen");
    }

    /// `ssh` with the hosts that this file knows, in the place of the user's own.
    fn ssh(&self) -> String {
        let known = self.folder.path().join("known_hosts");
        format!("ssh -F none -o UserKnownHostsFile={} -o GlobalKnownHostsFile=none", known.display())
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[tokio::test]
async fn a_host_that_is_not_known_is_refused_unless_new_ones_are_accepted() {
    if !rustix::process::geteuid().is_root() || !Path::new(Sshd::PROGRAM).exists() {
        return;
    }
    let origin = Repo::new();
    origin.fill(2);
    let sshd = Sshd::start();
    let place = Place::new(&fs::read_to_string(sshd.folder.path().join("user")).unwrap());
    let url = format!("ssh://root@127.0.0.1:{}{}", sshd.port, origin.path.display());
    let url = RemoteUrl::parse(&url).unwrap();
    let access = Access::new(&url, None, &place.surroundings(true)).unwrap();
    let key = access.authentication().await.unwrap();
    let fetch = |ssh_host_keys| {
        let trust = Trust { ssh_host_keys, ..Trust::default() };
        let cache =
            MirrorCache::new(Some(place.state()), MIRRORS_BYTES).with_ssh(&sshd.ssh()).trusting(trust);
        let alive = Alive::new();
        cache.fetch(&url, &key, &alive.watch()).map(|mirror| Repo::at(mirror.path().to_owned()).id("main"))
    };
    let error = ConnectorError::from(fetch(SshHostKeys::Strict).unwrap_err());
    assert!(matches!(error, ConnectorError::Denied { .. }), "{error}");
    let told = error.to_string();
    assert!(
        told.contains("known_hosts") && told.contains("`ssh_host_keys`") && !told.contains('\n'),
        "{told}"
    );
    assert_eq!(fetch(SshHostKeys::AcceptNew).unwrap(), origin.id("main"));
    assert_eq!(fetch(SshHostKeys::Strict).unwrap(), origin.id("main"), "it is known now");
    // Another key under the same name.
    let known = sshd.folder.path().join("known_hosts");
    let user = fs::read_to_string(sshd.folder.path().join("user.pub")).unwrap();
    let other = user.split(' ').nth(1).unwrap();
    fs::write(&known, format!("[127.0.0.1]:{} ssh-ed25519 {other}\n", sshd.port)).unwrap();
    for ssh_host_keys in [SshHostKeys::Strict, SshHostKeys::AcceptNew] {
        assert!(fetch(ssh_host_keys).is_err());
    }
}

#[tokio::test]
async fn git_itself_may_serve_it() {
    let origin = Repo::new();
    origin.fill(2);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("git://127.0.0.1:{}/repo", listener.local_addr().unwrap().port());
    let root = origin.path.parent().unwrap().to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let output = stream.try_clone().unwrap();
            let mut daemon = Command::new("git");
            let base = format!("--base-path={}", root.display());
            daemon.args(["daemon", "--inetd", "--export-all", &base]).arg(&root);
            let mut child =
                daemon.stdin(OwnedFd::from(stream)).stdout(OwnedFd::from(output)).spawn().unwrap();
            child.wait().unwrap();
        }
    });
    let place = Place::new(TOKEN);
    assert_eq!(count(place.connector(&url, None, false).as_ref()).await.unwrap(), 7);
}

#[test]
fn what_takes_too_long_is_ended() {
    let origin = Repo::new();
    origin.fill(2);
    let server = Server::start(&origin, |_| Answer::Wait);
    let folder = tempfile::tempdir().unwrap();
    let cache =
        MirrorCache::new(Some(folder.path().to_owned()), MIRRORS_BYTES).within(Duration::from_millis(300));
    let error = fetch(&cache, &RemoteUrl::parse(&server.url()).unwrap()).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("takes more than"), "{error}");
    server.go_on();
}
