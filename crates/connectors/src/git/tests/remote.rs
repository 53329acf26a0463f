//! Mirrors of remote repositories: over `file`, and over HTTP from a server that wants a token.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};

use domesday_connector::credentials::Secret;

use super::*;
use crate::git::remote::{MIRRORS_BYTES, MirrorCache, RemoteUrl, Token};

/// A token that is nowhere else.
const TOKEN: &str = "tok-5f2a9c";

fn file_url(repo: &Repo) -> RemoteUrl {
    RemoteUrl::parse(&format!("file://{}", repo.path.display())).unwrap()
}

#[tokio::test]
async fn a_mirror_is_made_and_follows_its_remote() {
    let origin = Repo::new();
    origin.fill(5);
    let folder = tempfile::tempdir().unwrap();
    let cache = MirrorCache::new(folder.path().join("mirrors"), MIRRORS_BYTES);
    let mirror = cache.fetch(&file_url(&origin), None).unwrap();
    assert_eq!(check_everything(&Repo::at(mirror.path().to_owned())).await, 16);
    origin.write("more", "more");
    origin.commit("more");
    origin.git(&["tag", "-d", "heavy"]);
    let again = cache.fetch(&file_url(&origin), None).unwrap();
    assert_eq!(again.path(), mirror.path());
    assert_eq!(check_everything(&Repo::at(mirror.path().to_owned())).await, 18);
    assert_eq!(Repo::at(mirror.path().to_owned()).git(&["tag"]), "light");
    assert!(!mirror.path().join("hooks").exists());
}

#[tokio::test]
async fn a_remote_is_scanned_through_its_mirror() {
    let origin = Repo::new();
    origin.fill(4);
    let state = tempfile::tempdir().unwrap();
    let surroundings = Surroundings { own_state: Some(state.path().to_owned()), ..Surroundings::default() };
    let configuration = serde_json::json!({ "url": file_url(&origin).as_str(), "range": "light~2..light" });
    let connector = GitFactory.create(&configuration, &surroundings).unwrap();
    let mut listing = connector.list(&ObjectKey::default(), None).await.unwrap();
    let records = listing.next_batch(100).await.unwrap();
    // Two commits, with a version of each of two files.
    assert_eq!(records.len(), 6);
    for record in records {
        let id = String::from_utf8(record.name).unwrap();
        let kind = origin.git(&["cat-file", "-t", &id]);
        assert_eq!(read(connector.as_ref(), &id).unwrap(), origin.git_bytes(&["cat-file", &kind, &id]));
    }
    assert!(GitFactory.create(&configuration, &Surroundings::default()).is_err(), "nowhere to keep it");
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
    let cache = MirrorCache::new(folder.path().to_owned(), ROOM);
    let held = cache.fetch(&file_url(&repos[0]), None).unwrap();
    let freed = cache.fetch(&file_url(&repos[1]), None).unwrap().path().to_owned();
    assert!(freed.exists(), "the one that was just made stays");
    let last = cache.fetch(&file_url(&repos[2]), None).unwrap();
    assert!(held.path().exists(), "it is in use");
    assert!(last.path().exists());
    assert!(!freed.exists());
    assert!(cache.fetch(&file_url(&repos[1]), None).unwrap().path().exists(), "made again");
    let small = MirrorCache::new(folder.path().join("small"), FILE_LEN as u64 / 2);
    let error = small.fetch(&file_url(&repos[0]), None).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("beyond the limit"), "{error}");
    assert_eq!(fs::read_dir(folder.path().join("small")).unwrap().count(), 2, "only locks are left");
}

#[test]
fn a_remote_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let cache = MirrorCache::new(folder.path().to_owned(), MIRRORS_BYTES);
    let url = RemoteUrl::parse(&format!("file://{}/nothing", folder.path().display())).unwrap();
    let error = cache.fetch(&url, None).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("git clone of file://") && error.contains("nothing"), "{error}");
}

#[test]
fn a_token_reaches_the_server_and_nothing_else() {
    let origin = Repo::new();
    origin.fill(3);
    let bare = Repo::with(&["clone", "-q", "--bare", origin.path.to_str().unwrap()]);
    bare.git(&["update-server-info"]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let admitted = Arc::new(AtomicUsize::new(0));
    let (root, count) = (bare.path.clone(), Arc::clone(&admitted));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            serve(stream, &root, &count);
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let cache = MirrorCache::new(folder.path().to_owned(), MIRRORS_BYTES);
    let url = RemoteUrl::parse(&format!("http://127.0.0.1:{port}/repo.git")).unwrap();
    let error = cache.fetch(&url, None).map(|_| ()).unwrap_err().to_string();
    assert_eq!(admitted.load(Ordering::Relaxed), 0, "{error}");
    let token = Token::new("anyone", Secret::new(TOKEN.into())).unwrap();
    assert!(!format!("{token:?}").contains(TOKEN));
    let mirror = cache.fetch(&url, Some(&token)).unwrap();
    assert!(admitted.load(Ordering::Relaxed) > 0);
    assert_eq!(Repo::at(mirror.path().to_owned()).id("main"), origin.id("main"));
    let found =
        Command::new("grep").args(["-r", TOKEN]).arg(folder.path()).stdout(Stdio::null()).status().unwrap();
    assert_eq!(found.code(), Some(1), "the token is in a file of the mirror");
    let wrong = Token::new("anyone", Secret::new(b"tok-wrong".to_vec())).unwrap();
    let error = cache.fetch(&url, Some(&wrong)).map(|_| ()).unwrap_err().to_string();
    assert!(!error.contains("tok-wrong"), "{error}");
}

/// Serves the files of a repository to whoever has the token: git's older, plainer HTTP.
fn serve(stream: TcpStream, root: &Path, admitted: &AtomicUsize) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut request, mut authorised) = (String::new(), false);
    reader.read_line(&mut request).unwrap();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
            break;
        }
        // `anyone:tok-5f2a9c` in base64.
        authorised |= line.trim_end() == "Authorization: Basic YW55b25lOnRvay01ZjJhOWM=";
    }
    let path = request.split(' ').nth(1).unwrap_or_default().trim_start_matches("/repo.git/");
    let path = path.split('?').next().unwrap_or_default();
    let (status, body) = match fs::read(root.join(path)) {
        _ if !authorised => ("401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"git\"", Vec::new()),
        Ok(body) => ("200 OK", body),
        Err(_) => ("404 Not Found", Vec::new()),
    };
    admitted.fetch_add(usize::from(authorised), Ordering::Relaxed);
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    let _ = (&stream).write_all(head.as_bytes());
    let _ = (&stream).write_all(&body);
}
