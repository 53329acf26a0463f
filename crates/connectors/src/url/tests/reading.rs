//! Reading: redirects, credentials, limits, and servers that fail.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::*;

fn here(server: &Server) -> Arc<dyn Connector> {
    connector(json!({ "addresses": [server.url("/")] }))
}

/// Answers a path's requests one after the other, the last for ever.
fn scripted(answers: Vec<Response>) -> Server {
    let next = AtomicUsize::new(0);
    Server::start(move |request| {
        let at = if request.method == "GET" { next.fetch_add(1, Ordering::Relaxed) } else { 0 };
        answers[at.min(answers.len() - 1)].clone()
    })
}

#[tokio::test]
async fn what_is_there_is_read_whatever_the_way() {
    let body: Vec<u8> = (0..300_000u32).flat_map(u32::to_le_bytes).collect();
    let sent = body.clone();
    let server = Server::start(move |request| match request.path() {
        "/whole" => Response::ok(sent.clone()),
        "/chunked" => Response::ok(sent.clone()).chunked(),
        "/moved" => Response::status(301).header("Location", "/found"),
        "/found" => Response::status(307).header("Location", "whole?x#part"),
        "/empty" => Response::ok(""),
        "/nothing" => Response::status(204),
        _ => Response::status(404),
    });
    let connector = here(&server);
    for path in ["/whole", "/chunked", "/moved"] {
        assert!(read(&connector, &server.url(path)).await == (body.clone(), Ok(())), "{path}");
    }
    assert_eq!(server.requests().last().unwrap().target, "/whole?x");
    for path in ["/empty", "/nothing"] {
        assert_eq!(read(&connector, &server.url(path)).await, (Vec::new(), Ok(())), "{path}");
    }
}

#[tokio::test]
async fn each_refusal_has_its_reason() {
    let server = Server::start(|request| match request.path() {
        "/gone" => Response::status(410),
        "/login" => Response::status(401),
        "/secret" => Response::status(403),
        "/teapot" => Response::status(418),
        "/loop" => Response::status(302).header("Location", "/loop"),
        "/away" => Response::status(302).header("Location", "ftp://example.com/"),
        "/nowhere" => Response::status(302),
        "/brotli" => Response::ok("x").header("Content-Encoding", "br"),
        "/later" => Response::status(429).header("Retry-After", "3600"),
        "/broken" => Response::status(503),
        _ => Response::status(404),
    });
    let connector = here(&server);
    for (path, reason, said) in [
        ("/missing", Reason::Vanished, "404"),
        ("/gone", Reason::Vanished, "410"),
        ("/login", Reason::PermissionDenied, "401"),
        ("/secret", Reason::PermissionDenied, "403"),
        ("/teapot", Reason::ReadError, "418"),
        ("/loop", Reason::ReadError, "more than 10 times"),
        ("/away", Reason::ReadError, "no web address"),
        ("/nowhere", Reason::ReadError, "no web address"),
        ("/brotli", Reason::ReadError, "packed with `br`"),
        ("/later", Reason::Unavailable, "429"),
        ("/broken", Reason::Unavailable, "503"),
    ] {
        let error = read_error(&connector, &server.url(path)).await;
        assert_eq!(error.reason, reason, "{error}");
        assert!(error.detail.contains(said), "{error}");
    }
    assert_eq!((server.count("/later"), server.count("/broken"), server.count("/loop")), (1, 4, 11));
    assert_eq!(read_error(&connector, "no address").await.reason, Reason::Vanished);
}

#[tokio::test]
async fn what_is_packed_for_the_way_is_handed_on_as_it_comes() {
    let packed = zstd::encode_all(&b"content"[..], 1).unwrap();
    let sent = packed.clone();
    let server = Server::start(move |_| Response::ok(sent.clone()).header("Content-Encoding", "zstd"));
    let connector = here(&server);
    assert_eq!(read(&connector, &server.url("/")).await, (packed, Ok(())));
    assert_eq!(server.requests()[0].header("accept-encoding"), Some("gzip, zstd"));
}

#[tokio::test]
async fn an_answer_that_is_cut_short_goes_on_where_it_ended() {
    let body: Vec<u8> = (0..200_000).map(|byte| (byte % 251) as u8).collect();
    let whole = || Response::ok(body.clone());
    let server = scripted(vec![
        Response::status(500),
        Response::reset(),
        Response::status(429).header("Retry-After", "0"),
        whole().cut_at(100_000),
        whole().chunked().cut_at(50_000),
        Response::status(502),
        whole(),
    ]);
    let connector = here(&server);
    assert!(read(&connector, &server.url("/")).await == (body.clone(), Ok(())));
    let mut changed = body.clone();
    changed[0] = 7;
    let server = scripted(vec![whole().cut_at(100_000), Response::ok(changed)]);
    let (bytes, ended) = read(&here(&server), &server.url("/")).await;
    assert!(body.starts_with(&bytes));
    // All that was sent may have been lost with the connection: then nothing tells that it changed.
    if !bytes.is_empty() {
        assert_eq!(ended.unwrap_err().reason, Reason::Changed);
    }
    let server = scripted(vec![whole().cut_at(1_000)]);
    let (bytes, ended) = read(&here(&server), &server.url("/")).await;
    assert!(body.starts_with(&bytes));
    assert_eq!(ended.unwrap_err().reason, Reason::Unavailable);
}

#[tokio::test]
async fn size_and_time_have_their_limits() {
    let server = Server::start(|request| match request.path() {
        "/large" => Response::ok(vec![b'x'; 100_000]),
        "/endless" => Response::ok(vec![b'x'; 100_000]).chunked(),
        _ => Response::ok(vec![b'x'; 1_000]).paced(1, Duration::from_millis(50)),
    });
    let connector =
        connector(json!({ "addresses": [server.url("/large")], "max_size": 70_000, "timeout_s": 1 }));
    for path in ["/large", "/endless"] {
        let (bytes, ended) = read(&connector, &server.url(path)).await;
        assert_eq!((bytes.len(), ended.unwrap_err().reason), (70_000, Reason::ByteLimit), "{path}");
    }
    let (bytes, ended) = read(&connector, &server.url("/slow")).await;
    let error = ended.unwrap_err();
    assert!(!bytes.is_empty() && bytes.len() < 1_000 && error.detail.contains("within 1 s"), "{error}");
}

#[tokio::test]
async fn a_credential_goes_where_it_was_configured_for_and_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = Server::start(|request| match request.query("to") {
        Some(to) => Response::status(302).header("Location", to),
        None => Response::ok("elsewhere"),
    });
    let away = elsewhere.url("/");
    let server = Server::start(move |request| match request.path() {
        "/away" => Response::status(302).header("Location", away.clone()),
        "/near" => Response::status(302).header("Location", "/x"),
        "/and-back" => {
            let back = format!("{away}?to=http://{}/x", request.header("host").unwrap());
            Response::status(302).header("Location", back)
        }
        // `jo:tok-1` in base64.
        _ if request.header("authorization") == Some("Basic am86dG9rLTE=") => Response::ok("inside"),
        _ => Response::status(401),
    });
    let surroundings = with_secret(folder.path(), "jo:tok-1");
    let configuration = json!({ "addresses": [server.url("/")] });
    let connector = connector_in(configuration.clone(), &surroundings);
    assert_eq!(read(&connector, &server.url("/x")).await.0, b"inside");
    assert_eq!(read(&connector, &server.url("/near")).await.0, b"inside");
    assert_eq!(read(&connector, &server.url("/away")).await.0, b"elsewhere");
    assert!(
        read_error(&connector, &server.url("/and-back")).await.detail.contains("401"),
        "not by others' word"
    );
    assert_eq!(read(&connector, &elsewhere.url("/y")).await.0, b"elsewhere");
    assert!(elsewhere.requests().iter().all(|request| request.header("authorization").is_none()));
    assert_eq!(list(connector.as_ref()).await.unwrap().len(), 1);
    // A new secret holds at once, and a wrong one is told.
    let _ = with_secret(folder.path(), "jo:tok-2");
    let error = list(connector.as_ref()).await.unwrap_err();
    assert!(matches!(error, ConnectorError::Denied { .. }) && !error.to_string().contains("tok-"), "{error}");
    let bearer = json!({ "addresses": [server.url("/")], "authentication": "bearer" });
    let bearer = connector_in(bearer, &surroundings);
    assert_eq!(read_error(&bearer, &server.url("/x")).await.reason, Reason::PermissionDenied);
    assert_eq!(server.requests().last().unwrap().header("authorization"), Some("Bearer jo:tok-2"));
    for (configuration, said) in [
        (json!({ "addresses": ["http://example.com"] }), "https only"),
        (json!({ "list": "/srv/list" }), "`addresses`"),
    ] {
        let error = UrlFactory.create(&configuration, &surroundings).map(drop).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[tokio::test]
async fn what_is_read_ahead_is_bounded() {
    let server = Server::start(|request| Response::ok(request.path().repeat(10_000)));
    let connector = here(&server);
    let object = |number| ListedObject::by_key(ObjectKey::new(server.url(&format!("/{number:02}"))));
    let ahead = connector.read_ahead(&(0..40).map(object).collect()).unwrap();
    let reads = move || {
        // The last first: nobody reads those before it yet.
        for index in [39, 0, 20, 20] {
            let mut bytes = Vec::new();
            ahead.open(index).and_then(Opened::into_bytes).unwrap().reader.read_to_end(&mut bytes).unwrap();
            assert_eq!(bytes, format!("/{index:02}").repeat(10_000).into_bytes());
        }
        assert!(ahead.open(40).is_err());
    };
    tokio::task::spawn_blocking(reads).await.unwrap();
    let asked = server.requests().len();
    assert!(asked <= 4 + 2 * 8, "some that were read, and some ahead of them: {asked}");
    let nonsense: Arc<[ListedObject]> = Arc::new([ListedObject::by_key(ObjectKey::new("x"))]);
    assert!(connector.read_ahead(&nonsense).is_none());
}

#[test]
fn what_ends_with_its_runtime_does_not_pass_for_the_whole() {
    let server =
        Server::start(|_| Response::ok(vec![b'x'; 1_000]).chunked().paced(1, Duration::from_millis(20)));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let connector = runtime.block_on(async { here(&server) });
    let mut opened = open(&*connector, &ObjectKey::new(server.url("/"))).unwrap();
    opened.reader.read_exact(&mut [0; 1]).unwrap();
    runtime.shutdown_background();
    let ended = opened.reader.read_to_end(&mut Vec::new()).map_err(ObjectError::from);
    assert_eq!(ended.unwrap_err().reason, Reason::ReadError);
    assert!(open(&*connector, &ObjectKey::new(server.url("/"))).is_err());
}
