//! Passwords: where they are found, and that they go to nobody who should not have them.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use super::*;

const PASSWORD: &str = "hunter2-hunter2";

/// A server that has no TLS and asks for the password in clear text; what it was told.
fn nosy() -> (u16, std::thread::JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let listening = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let (mut told, mut buffer) = (Vec::new(), [0; 4096]);
        let (mut has_asked, is_tls_request) = (false, |told: &[u8]| told.starts_with(&[0, 0, 0, 8]));
        loop {
            match socket.read(&mut buffer) {
                Ok(0) | Err(_) => return told,
                Ok(count) => told.extend_from_slice(&buffer[..count]),
            }
            if told.len() == 8 && is_tls_request(&told) {
                socket.write_all(b"N").unwrap();
            } else if !has_asked {
                has_asked = true;
                socket.write_all(b"R\0\0\0\x08\0\0\0\x03").unwrap();
            } else {
                return told;
            }
        }
    });
    (port, listening)
}

#[tokio::test]
async fn a_password_goes_in_clear_text_only_when_that_is_spelled_out() {
    for (query, is_sent) in
        [("", false), ("?sslmode=prefer", false), ("?sslmode=require", false), ("?sslmode=disable", true)]
    {
        let (port, listening) = nosy();
        let url = format!("postgresql://ann:{PASSWORD}@127.0.0.1:{port}/book{query}");
        let refused = config::Target::parse(&url).unwrap().connect().await.err().unwrap().to_string();
        let told = listening.join().unwrap();
        let found = told.windows(PASSWORD.len()).any(|part| part == PASSWORD.as_bytes());
        assert_eq!(found, is_sent, "{query}: {refused}");
        assert!(is_sent || refused.contains("sslmode to `disable`"), "{refused}");
        assert!(!refused.contains(PASSWORD), "{refused}");
    }
}

#[tokio::test]
async fn the_password_file_opens_the_book_unless_others_can_read_it() {
    let server = Server::start(None);
    server.psql("postgres", &format!("CREATE ROLE ann LOGIN PASSWORD '{PASSWORD}'"));
    let rules = server.folder().join("data/pg_hba.conf");
    let before = std::fs::read_to_string(&rules).unwrap();
    std::fs::write(&rules, format!("host all ann all scram-sha-256\n{before}")).unwrap();
    server.psql("postgres", "SELECT pg_reload_conf()");
    let file = tempfile::NamedTempFile::new().unwrap();
    let line = format!("localhost:{}:postgres:ann:{PASSWORD}\n", server.port());
    std::fs::write(file.path(), line).unwrap();
    let url = format!("postgresql://ann@localhost:{}/postgres", server.port());
    let mut target = config::Target::parse(&url).unwrap();
    target.pass_file = None;
    // The server may still be at its old rules.
    while target.connect().await.is_ok() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    target.pass_file = Some(file.path().to_owned());
    target.connect().await.map(drop).unwrap();
    std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o640)).unwrap();
    let refused = target.connect().await.err().unwrap().to_string();
    assert!(refused.contains("chmod 600") && !refused.contains(PASSWORD), "{refused}");
}
