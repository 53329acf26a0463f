//! The connection beneath the client: encryption, packets, and servers that are none.

use domesday_testkit::postgres::Certificates;
use domesday_testkit::tds::{Identity, Setup};

use super::*;

struct Encrypted {
    site: Site,
    authority: NamedTempFile,
    stranger: NamedTempFile,
}

fn encrypted(insists: bool) -> Encrypted {
    let certificates = Certificates::generate();
    let server = TdsServer::start(Setup {
        databases: shop(vec![numbered("people", 3_000)]),
        identity: Some(Identity::new(&certificates)),
        insists_on_encryption: insists,
        packet_size: None,
    });
    Encrypted {
        site: Site::of(server),
        authority: secret(&certificates.authority),
        stranger: secret(&certificates.stranger),
    }
}

async fn rows(connector: &dyn Connector) -> usize {
    let record = table(connector, "shop/dbo/people").await;
    read(connector, "shop/dbo/people", &record).unwrap().len()
}

#[tokio::test]
async fn a_connection_is_encrypted_as_far_as_it_is_asked_to_be() {
    let Encrypted { site, authority, stranger } = encrypted(false);
    let file = |file: &NamedTempFile| file.path().display().to_string();
    for (fields, is_encrypted) in [
        (json!({ "tls": "disable" }), false),
        (json!({ "tls": "prefer" }), true),
        (json!({ "tls": "require" }), true),
        (json!({ "tls": "verify-ca", "ca_file": file(&authority) }), true),
        (json!({ "tls": "verify-full", "ca_file": file(&authority) }), true),
        (json!({ "tls": "verify-ca", "ca_file": file(&authority), "host": "127.0.0.1" }), true),
    ] {
        assert_eq!(rows(&*site.connector(fields.clone())).await, 3_000, "{fields}");
        assert_eq!(site.server.logins().last().unwrap().is_encrypted, is_encrypted, "{fields}");
    }
    let before = site.server.logins().len();
    for fields in [
        json!({ "tls": "verify-ca", "ca_file": file(&stranger) }),
        json!({ "tls": "verify-full", "ca_file": file(&stranger) }),
        // Signed by the right one, for another name.
        json!({ "tls": "verify-full", "ca_file": file(&authority), "host": "127.0.0.1" }),
    ] {
        let told = site.connector(fields.clone()).test().await.unwrap_err().to_string();
        assert!(told.contains("cannot encrypt"), "{fields}: {told}");
    }
    for fields in [json!({ "tls": "verify-full", "ca_file": "/no/such/file" })] {
        let told = site.connector(fields).test().await.unwrap_err().to_string();
        assert!(told.contains("field `ca_file`"), "{told}");
    }
    // Nobody who was not trusted was told the password.
    assert_eq!(site.server.logins().len(), before);
}

#[tokio::test]
async fn both_sides_may_insist() {
    let Encrypted { site, .. } = encrypted(true);
    let told = site.connector(json!({ "tls": "disable" })).test().await.unwrap_err().to_string();
    assert!(told.contains("insists on encryption"), "{told}");
    assert_eq!(rows(&*site.connector(json!({}))).await, 3_000);

    let plain = Site::new(shop(vec![numbered("people", 3_000)]));
    let told = plain.connector(json!({ "tls": "require" })).test().await.unwrap_err().to_string();
    assert!(told.contains("cannot encrypt, and `tls` insists"), "{told}");
    assert_eq!(plain.server.logins(), []);
    for fields in [json!({ "tls": null }), json!({ "tls": "prefer" })] {
        let told = plain.connector(fields).test().await.unwrap_err().to_string();
        assert!(told.contains("password in clear text") && told.contains("`tls` to `disable`"), "{told}");
    }
    assert_eq!(plain.server.logins(), [], "the password is in no log-in");
    assert_eq!(rows(&*plain.connector(json!({ "tls": "disable" }))).await, 3_000);
}

#[tokio::test]
async fn packets_may_be_as_small_as_the_protocol_has_them() {
    let server = TdsServer::start(Setup {
        databases: shop(vec![numbered("people", 3_000)]),
        packet_size: Some(512),
        ..Setup::default()
    });
    assert_eq!(rows(&*Site::of(server).connector(json!({ "tls": "disable" }))).await, 3_000);
}

#[tokio::test]
async fn what_is_no_sql_server_is_told_apart() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answering = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    });
    let file = secret(PASSWORD);
    let reference = format!("file:{}", file.path().display());
    let surroundings = Surroundings::default().with_typed(reference.parse().unwrap());
    let configuration = json!({ "host": "127.0.0.1", "port": port, "user": USER });
    let connector = FACTORY.create(&configuration, &surroundings).unwrap();
    let told = connector.test().await.unwrap_err().to_string();
    assert!(told.contains("no SQL Server answers"), "{told}");
    answering.join().unwrap();
}
