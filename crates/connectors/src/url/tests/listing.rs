//! Listing: given addresses, lists, sitemaps, and links.

use std::io::Write;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn an_address_has_the_marks_that_its_server_gives() {
    let server = Server::start(|request| {
        let response = Response::ok("content");
        match request.path() {
            "/tagged" => response.header("ETag", "\"v1\""),
            "/dated" => response.header("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
            "/get-only" if request.method == "HEAD" => Response::status(405),
            _ => response,
        }
    });
    let all = ["/tagged", "/dated", "/get-only", "/plain", "/tagged#part"];
    let addresses: Vec<String> = all.iter().map(|path| server.url(path)).collect();
    let records = list(connector(json!({ "addresses": addresses })).as_ref()).await.unwrap();
    assert_eq!(records.len(), 4, "what is the same is listed once");
    assert!(records[0].marks.tag.is_some() && records[0].size == 7);
    let dated = records[1].marks;
    assert_eq!(
        (dated.tag, dated.mtime_ns, dated.ctime_ns),
        (None, 784_111_777_000_000_000, 784_111_777_000_000_000)
    );
    assert_eq!((records[2].marks, records[2].size), (Default::default(), 0));
    assert_eq!((records[3].marks, records[3].size), (Default::default(), 7));
    assert!(server.requests().iter().all(|request| request.method == "HEAD"));
}

#[tokio::test]
async fn a_list_is_read_from_a_file_or_an_address() {
    let text = "\u{feff}http://a.test/0\n# a list\n\nhttp://a.test/1\n  http://u:s3cret@a.test/2 \r\n\
                http://a.test/1#x\nnot an address\nu:s3cret@b\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list.txt");
    fs::write(&path, text).unwrap();
    let server = Server::start(move |request| match request.path() {
        "/list.gz" => Response::ok(gzip(text)),
        _ => Response::status(404),
    });
    let expected = ["http://a.test/0", "http://a.test/1", "http://a.test/2", "not an address", "b"];
    assert_eq!(paths(&server, json!({ "list": path })).await, expected);
    assert_eq!(paths(&server, json!({ "list": server.url("/list.gz") })).await, expected);
    let error = read_error(&connector(json!({ "list": path })), "not an address").await;
    assert_eq!(error.reason, Reason::Vanished);
    for (list_at, reason) in [
        (server.url("/none"), Reason::Vanished),
        (folder.path().join("no").display().to_string(), Reason::Vanished),
    ] {
        let error = list(connector(json!({ "list": list_at })).as_ref()).await.unwrap_err();
        assert_eq!(error.reason(), reason, "{error}");
    }
}

#[tokio::test]
async fn sitemaps_lead_to_sitemaps_and_one_that_fails_is_named() {
    let server = Server::start(|request| {
        let site = format!("http://{}", request.header("host").unwrap());
        let locations = |tag: &str, paths: &[&str]| {
            let of = |path: &&str| format!("<x><loc>{site}{path}</loc></x>");
            format!("<{tag}>{}</{tag}>", paths.iter().map(of).collect::<String>())
        };
        match request.path() {
            "/index.xml" => Response::ok(locations("sitemapindex", &["/a.xml.gz", "/gone.xml", "/b.xml"])),
            "/a.xml.gz" => Response::ok(gzip(&locations("urlset", &["/1", "/2?x&amp;y"]))),
            "/b.xml" => Response::ok(locations("urlset", &["/2?x&amp;y", "/3"])),
            "/loop.xml" => Response::ok(locations("sitemapindex", &["/loop.xml", "/b.xml"])),
            "/0.xml" => Response::ok(locations("sitemapindex", &["/1.xml"])),
            "/1.xml" => Response::ok(locations("sitemapindex", &["/2.xml"])),
            "/2.xml" => Response::ok(locations("sitemapindex", &["/3.xml"])),
            "/page" => Response::ok("<html></html>"),
            "/later" => Response::status(503).header("Retry-After", "120"),
            _ => Response::status(404),
        }
    });
    let of = |path: &str| json!({ "sitemap": server.url(path) });
    assert_eq!(paths(&server, of("/index.xml")).await, ["/1", "/2?x&y", "/gone.xml", "/3"]);
    assert_eq!(
        read_error(&connector(of("/index.xml")), &server.url("/gone.xml")).await.reason,
        Reason::Vanished
    );
    assert_eq!(paths(&server, of("/loop.xml")).await, ["/2?x&y", "/3"], "it is read once");
    let deep = list(connector(of("/0.xml")).as_ref()).await.unwrap();
    assert_eq!((deep.len(), deep[0].reason), (1, Some(Reason::AddressLimit)));
    let error = list(connector(of("/page")).as_ref()).await.unwrap_err();
    assert!(error.to_string().contains("not a sitemap"), "{error}");
    let error = list(connector(of("/later")).as_ref()).await.unwrap_err();
    assert!(matches!(&error, ConnectorError::Wait { after, .. } if after.as_secs() == 120), "{error}");
}

/// A site of pages that link to each other, with rules.
fn site() -> Server {
    Server::start(|request| {
        let page = |links: &[&str]| {
            let links: String = links.iter().map(|link| format!("<a href='{link}'>x</a>")).collect();
            Response::ok(format!("<html>{links}</html>")).header("Content-Type", "text/html; charset=utf-8")
        };
        match request.path() {
            "/robots.txt" => Response::ok("User-agent: *\nDisallow: /private\nAllow: /private/not\n"),
            "/" => page(&[
                "/a",
                "b",
                "/private/x",
                "/private/not",
                "http://elsewhere.test/",
                "/a#x",
                "mailto:x@y",
            ]),
            "/a" => page(&["/", "/b", "/c", "/app.js"]),
            "/b" => page(&["/moved"]),
            "/c" => page(&["/d"]),
            "/d" => page(&["/e"]),
            "/moved" => Response::status(302).header("Location", "/new"),
            "/new" => page(&["/from-new", "/new"]),
            "/docs/" => page(&["/docs/1", "/docs2", "/a"]),
            "/app.js" => Response::ok("'<a href=/no>'"),
            _ => Response::status(404),
        }
    })
}

#[tokio::test]
async fn links_are_followed_within_the_site_its_rules_and_the_limits() {
    let server = site();
    let crawl = |crawl: Value| json!({ "addresses": [server.url("/")], "crawl": crawl });
    let first = ["/", "/a", "/b", "-/private/x", "/private/not"];
    assert_eq!(paths(&server, crawl(json!({ "depth": 1 }))).await, first);
    let listed = list(connector(crawl(json!({ "depth": 1 }))).as_ref()).await.unwrap();
    let reasons: Vec<Reason> = listed.into_iter().filter_map(|record| record.reason).collect();
    assert_eq!(reasons, [Reason::Robots]);
    let second = [&first[..], &["/c", "/app.js", "/moved"]].concat();
    assert_eq!(paths(&server, crawl(json!({ "depth": 2 }))).await, second);
    let third = [&second[..], &["/d", "/from-new"]].concat();
    assert_eq!(paths(&server, crawl(json!({}))).await, third, "where a redirect leads is read once");
    assert_eq!(server.requests().iter().filter(|request| request.path() == "/no").count(), 0);
    assert_eq!(paths(&server, crawl(json!({ "max_pages": 3 }))).await, first[..4]);
    let addresses = [server.url("/private/x"), server.url("/docs/")];
    let given = json!({ "addresses": addresses, "crawl": { "scope": server.url("/docs/") } });
    assert_eq!(
        paths(&server, given).await,
        ["/private/x", "/docs/", "/docs/1"],
        "what is given is not asked about"
    );
}

#[tokio::test]
async fn a_page_is_fetched_once_for_its_links() {
    let server = site();
    let connector = connector(json!({ "addresses": [server.url("/")], "crawl": { "depth": 5 } }));
    list(connector.as_ref()).await.unwrap();
    for path in ["/robots.txt", "/", "/a", "/b", "/c", "/d", "/moved"] {
        let fetched =
            server.requests().iter().filter(|asked| asked.path() == path && asked.method == "GET").count();
        assert_eq!(fetched, 1, "{path}");
    }
    let gets =
        |path: &str| server.requests().iter().any(|asked| asked.path() == path && asked.method == "GET");
    assert!(!gets("/app.js") && !gets("/private/x"));
}

#[tokio::test]
async fn a_site_that_wants_pauses_or_does_not_answer_is_let_alone() {
    let slow = Server::start(|request| match request.path() {
        "/robots.txt" => Response::ok("User-agent: *\nCrawl-delay: 0.3\n"),
        "/" => Response::ok("<a href=/a><a href=/b>").header("Content-Type", "text/html"),
        _ => Response::ok("x").header("Content-Type", "text/html"),
    });
    let begun = Instant::now();
    let crawl = json!({ "addresses": [slow.url("/")], "crawl": { "depth": 2 } });
    assert_eq!(paths(&slow, crawl).await, ["/", "/a", "/b"]);
    assert!(begun.elapsed() >= Duration::from_millis(900), "a pause before each of three pages");
    assert!(slow.requests().iter().filter(|request| request.method == "HEAD").count() <= 1);
    let closed = Server::start(|request| match request.path() {
        "/robots.txt" => Response::status(500),
        _ => Response::ok("<a href=/a>").header("Content-Type", "text/html"),
    });
    let crawl = json!({ "addresses": [closed.url("/")], "crawl": {} });
    assert_eq!(paths(&closed, crawl).await, ["/", "-/a"]);
}
