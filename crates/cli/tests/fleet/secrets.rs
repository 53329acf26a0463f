//! What must be nowhere: the fingerprint key, the database's password, the values that were found, and what was read on
//! the way to them.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use domesday_testkit::http::{Response, Server as Web};
use domesday_testkit::postgres::Server;

use crate::common::KEY;
use crate::place::{FINGERPRINT_KEY, PASSWORD, Place};

#[test]
fn secrets_are_in_no_log_no_table_and_no_command_line() {
    let place = Place::new();
    let tree = place.tree("tree", 30);
    place.source("tree", "eu", &tree, &[]);
    place.template("all", &["tree"]);
    let job = place.job("all");
    let debug = ["--log", "debug"];
    let processes = [
        place.fleet.orchestrator("orchestrator", "eu", &debug),
        place.fleet.worker("worker", "eu", &[&["--slots", "2"], &debug[..]].concat()),
        // One that cannot reach the database complains, and does not quote the URL.
        {
            let mut command = place.fleet.command(["orchestrator", "--node-group", "eu", "--log", "debug"]);
            command.env(
                "DOMESDAY_STORE",
                format!("postgresql://postgres:{PASSWORD}@localhost:1/x?sslmode=disable"),
            );
            place.fleet.start("unreachable", command)
        },
    ];
    place.wait_for_status(&job, "COMPLETED");
    place.wait("a complaint", || !processes[2].log().is_empty());
    let status = place.run(&["status"]);
    let mut places = vec![("the book".to_owned(), place.dump()), ("the status".to_owned(), status)];
    for process in &processes {
        let arguments = fs::read(format!("/proc/{}/cmdline", process.id())).unwrap_or_default();
        places.push((
            format!("arguments of {}", process.name()),
            String::from_utf8_lossy(&arguments).into_owned(),
        ));
    }
    for entry in fs::read_dir(place.fleet.folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let said = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            places.push((path.display().to_string(), said));
        }
    }
    assert!(places.iter().any(|(_, text)| text.contains("COMPLETED")), "nothing was looked at");
    for (name, text) in places {
        for secret in [FINGERPRINT_KEY, PASSWORD, KEY] {
            assert!(!text.contains(secret), "{secret} is in {name}");
        }
    }
}

/// Data that no rule knows, from a database, a web site and a rule file, by way of a fleet.
#[test]
fn what_workers_read_is_in_no_log_and_not_in_the_dump_of_the_book() {
    const KEY_OF_ROW: &str = "mrk1-primary-key";
    const COMMENT: &str = concat!("gh", "p_mrk2comment0123456789abcdef");
    const LINK: &str = "mrk3linktoken";
    const ERROR: &str = "mrk4-in-an-error";
    const ALLOWED: &str = "mrk5-allowed-value";
    const CONFIGURED: &str = "mrk6configured";
    let markers = [KEY_OF_ROW, COMMENT, LINK, ERROR, ALLOWED, CONFIGURED, KEY];

    let place = Place::new();
    let server = Server::shared();
    let url = server.create_database();
    let database = url.rsplit('/').next().unwrap().split('?').next().unwrap().to_owned();
    server.psql(
        &database,
        &format!(
            "CREATE TABLE people (who text PRIMARY KEY, note text);
             COMMENT ON TABLE people IS 'made with {COMMENT}';
             INSERT INTO people SELECT '{KEY_OF_ROW}-' || n, CASE n % 50 WHEN 0 THEN '{KEY}' ELSE '-' END
                 FROM generate_series(1, 500) n;
             ANALYZE people;
             CREATE FUNCTION fails() RETURNS text LANGUAGE plpgsql AS $$BEGIN RAISE 'cannot read {ERROR}'; END$$;
             CREATE VIEW failing AS SELECT fails() AS x;"
        ),
    );
    let web = Web::start(|request| match request.path() {
        "/" => {
            Response::ok(format!("<a href='/page?token={LINK}'>a</a>")).header("Content-Type", "text/html")
        }
        "/page" if request.query("token") == Some(LINK) => Response::ok(format!("{KEY}\n")),
        _ => Response::status(404),
    });
    let own = place.path("own.toml");
    fs::write(&own, format!("[[allow]]\nvalues = [\"{ALLOWED}\"]\n")).unwrap();

    let (port, address) = (format!("port={}", server.port()), web.url(&format!("/?magic={CONFIGURED}")));
    let databases = format!("databases=[\"{database}\"]");
    let addresses = format!("addresses=[\"{address}\"]");
    let table = ["host=127.0.0.1", &port, "user=postgres", &databases, "mode=full", "part_rows=100"];
    let pages = [addresses.as_str(), "crawl={\"depth\":2}", "allow_private=true"];
    let add = |name: &str, kind: &str, fields: &[&str], with_key: bool| {
        let mut command =
            place.fleet.command(["datasource", "add", name, "--kind", kind, "--node-group", "eu"]);
        fields.iter().for_each(|field| _ = command.args(["--set", field]));
        if with_key {
            command.env("DOMESDAY_FINGERPRINT_KEY", FINGERPRINT_KEY);
        }
        command.output().unwrap()
    };
    // Without the key it would have to be kept as it is.
    let refused = String::from_utf8(add("web", "url", &pages, false).stderr).unwrap();
    assert!(refused.contains("DOMESDAY_FINGERPRINT_KEY") && !refused.contains(CONFIGURED), "{refused}");
    for (name, kind, fields) in [("web", "url", &pages[..]), ("people", "postgres", &table)] {
        let added = add(name, kind, fields, true);
        assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    }
    let mut command = place.fleet.command(["template", "add", "all", "--datasource", "*", "--rules"]);
    let added = command.arg(&own).env("DOMESDAY_FINGERPRINT_KEY", FINGERPRINT_KEY).output().unwrap();
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));

    let job = place.job("all");
    let metrics = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let trace = ["--log", "trace"];
    let processes = [
        place.fleet.orchestrator("orchestrator", "eu", &trace),
        place.fleet.worker("worker", "eu", &["--slots", "2", "--telemetry", &metrics, "--log", "trace"]),
    ];
    place.wait_for_status(&job, "PARTIALLY_COMPLETED");
    let report = place.run_any(&["findings", "--job", &job, "--format", "json"]);
    assert!(
        report.contains("page?token=~sealed.") && report.matches("people!/note").count() >= 10,
        "{report}"
    );
    assert!(web.requests().iter().any(|request| request.query("token") == Some(LINK)));
    let mut places = vec![("the book".to_owned(), place.dump()), ("the report".to_owned(), report)];
    for process in &processes {
        let arguments = fs::read(format!("/proc/{}/cmdline", process.id())).unwrap();
        places.push((process.name().to_owned(), String::from_utf8_lossy(&arguments).into_owned()));
    }
    let mut client = TcpStream::connect(&metrics).unwrap();
    client.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    let mut told = String::new();
    client.read_to_string(&mut told).unwrap();
    assert!(told.contains("domesday_"), "{told}");
    places.push(("metrics".to_owned(), told));
    for command in [
        &["problems"][..],
        &["target", "list"],
        &["catalog"],
        &["datasource", "list"],
        &["template", "show", "all"],
    ] {
        places.push((command.join(" "), place.run_any(command)));
    }
    for entry in fs::read_dir(place.fleet.folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            places.push((
                path.display().to_string(),
                String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned(),
            ));
        }
    }
    for (name, text) in places {
        for marker in markers {
            let at = text
                .find(marker)
                .map(|at| text[at.saturating_sub(200)..].chars().take(400).collect::<String>());
            assert_eq!(at, None, "{marker} is in {name}");
        }
    }
}
