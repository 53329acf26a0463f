//! What goes wrong: refusals, errors, connections that break or fall silent, and readers that go away.

use domesday_connector::ConnectorError;
use domesday_testkit::tds::{Fault, ServerError};

use super::*;

fn error(number: u32, class: u8, message: &str) -> Fault {
    Fault::Error(ServerError::new(number, class, message))
}

/// A site with one table, and what reading it says.
async fn read_after(
    fault: Fault,
    times: usize,
    fields: serde_json::Value,
) -> (Site, Result<usize, ObjectError>) {
    let site = Site::new(shop(vec![numbered("people", 2_000)]));
    let connector = site.connector(fields);
    let record = table(&*connector, "shop/dbo/people").await;
    site.server.fail("FROM [dbo].[people]", times, fault);
    let outcome = read(&*connector, "shop/dbo/people", &record).map(|rows| rows.len());
    (site, outcome)
}

#[tokio::test]
async fn a_wrong_password_is_refused_and_never_told() {
    let site = Site::new(shop(Vec::new()));
    let wrong = secret("hunter2-and-more");
    let connector = site.connector_with(json!({}), &wrong);
    let told = connector.test().await.unwrap_err();
    assert!(matches!(told, ConnectorError::Denied { .. }), "{told:?}");
    assert!(told.to_string().contains("Login failed for user 'auditor'"), "{told}");
    assert!(!format!("{told:?}").contains("hunter2"), "{told:?}");
    assert_eq!(site.server.logins()[0].password, "hunter2-and-more");
}

#[tokio::test]
async fn a_missing_user_or_password_is_said_before_anything_is_sent() {
    let site = Site::new(Vec::new());
    let configuration = json!({ "host": "localhost", "port": site.server.port() });
    let connector = FACTORY.create(&configuration, &Surroundings::default()).unwrap();
    let told = connector.test().await.unwrap_err().to_string();
    assert!(told.contains("field `user`"), "{told}");
    assert_eq!(site.server.logins(), []);
}

#[tokio::test]
async fn refusals_have_their_reasons() {
    for (fault, reason, part) in [
        (
            error(229, 14, "The SELECT permission was denied on 'people'."),
            Reason::PermissionDenied,
            "denied on",
        ),
        (error(1222, 16, "Lock request time out period exceeded."), Reason::Locked, "Lock request"),
        (error(208, 16, "Invalid object name 'people'."), Reason::Vanished, "Invalid object"),
        (error(207, 16, "Invalid column name 'mail'."), Reason::Changed, "Invalid column"),
        (error(245, 16, "Conversion failed: 'user1@example.org'."), Reason::ReadError, "error 245"),
        (error(823, 24, "I/O error on 'user1@example.org'."), Reason::ReadError, "severity 24"),
    ] {
        let (_, outcome) = read_after(fault.clone(), usize::MAX, json!({})).await;
        let told = outcome.unwrap_err();
        assert_eq!(told.reason, reason, "{told}");
        assert!(told.detail.contains(part) && !told.detail.contains("example.org"), "{told}");
    }
}

#[tokio::test]
async fn what_passes_is_tried_again_before_the_first_row_is_seen() {
    for fault in [Fault::Cut(0), Fault::Cut(1), error(1205, 13, "deadlock victim")] {
        let (_, outcome) = read_after(fault, 1, json!({})).await;
        assert_eq!(outcome.unwrap(), 2_000);
    }
}

#[tokio::test]
async fn a_connection_that_breaks_again_and_again_fails_the_table_alone() {
    let (site, outcome) = read_after(Fault::Cut(1), usize::MAX, json!({})).await;
    let told = outcome.unwrap_err();
    assert_eq!(told.reason, Reason::Unavailable, "{told}");
    assert!(told.detail.contains("connection was lost"), "{told}");
    let connector = site.connector(json!({}));
    assert!(connector.test().await.is_ok());
}

#[tokio::test]
async fn an_error_among_rows_fails_the_table() {
    let fault = Fault::ErrorAfter(5, ServerError::new(3314, 21, "corrupt"));
    let (_, outcome) = read_after(fault, usize::MAX, json!({})).await;
    assert_eq!(outcome.unwrap_err().reason, Reason::ReadError);
}

#[tokio::test]
async fn a_silent_server_is_given_up_on() {
    let (_, outcome) =
        read_after(Fault::Silence, usize::MAX, json!({ "statement_timeout_seconds": 1 })).await;
    assert_eq!(outcome.unwrap_err().reason, Reason::TimedOut);
    let site = Site::new(shop(vec![numbered("people", 1)]));
    site.server.fail("sys.schemas", usize::MAX, Fault::Silence);
    let connector = site.connector(json!({ "statement_timeout_seconds": 1 }));
    let told = connector.list(&ObjectKey::new("shop"), None).await.err().unwrap();
    assert_eq!(told.reason(), Reason::TimedOut, "{told}");
}

#[tokio::test]
async fn a_database_without_snapshots_of_a_table_is_read_without() {
    let fault = error(41332, 16, "Memory optimized tables cannot be accessed under SNAPSHOT.");
    let (site, outcome) = read_after(fault, 1, json!({})).await;
    assert_eq!(outcome.unwrap(), 2_000);
    let sent = site.server.requests();
    assert!(sent.iter().any(|request| request.sql == "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"));
}

#[tokio::test]
async fn a_server_without_room_is_left_alone_for_a_while() {
    let site = Site::new(shop(Vec::new()));
    site.server.fail("sys.databases AS d\nORDER", 1, error(10928, 16, "Resource limit reached."));
    let told = site.connector(json!({})).list(&ObjectKey::default(), None).await.err().unwrap();
    assert!(matches!(told, ConnectorError::Wait { .. }), "{told:?}");
}

#[tokio::test]
async fn a_listing_that_fails_says_why() {
    let site = Site::new(shop(vec![numbered("people", 1)]));
    site.server.fail("sys.extended_properties", 1, error(297, 16, "The user does not have permission."));
    let connector = site.connector(json!({}));
    let mut listing = connector.list(&ObjectKey::new("shop/dbo"), None).await.unwrap();
    assert_eq!(listing.next_batch(10).await.unwrap_err().reason(), Reason::PermissionDenied);
}

/// More rows are there than the server's count said, and more than are wanted: the rest is called off, and the
/// connection is used again.
#[tokio::test]
async fn what_is_not_wanted_any_more_is_called_off() {
    let site = Site::new(shop(vec![numbered("big", 20_000), numbered("small", 10)]));
    let connector = site.connector(json!({ "sample_rows": 100 }));
    let found = walk(&*connector).await;
    let listed = |name: &str| {
        let key = format!("shop/dbo/{name}");
        let metadata = found[&key].as_ref().unwrap().metadata.as_deref().unwrap();
        let metadata = metadata.replace("\"row_estimate\":20000", "\"row_estimate\":101");
        let object = ListedObject::by_key(ObjectKey::new(key));
        ListedObject { kind: RecordKind::Table, metadata: Some(metadata.into()), ..object }
    };
    let logins = site.server.logins().len();
    let ahead = connector.read_ahead(&[listed("big"), listed("small")].into()).unwrap();
    for (place, expected) in [(0, 200), (1, 10)] {
        let mut open = ahead.open(place).and_then(Opened::into_rows).unwrap();
        let (mut batch, mut rows) = (RowBatch::new(2), 0);
        loop {
            open.rows.fill(&mut batch).unwrap();
            if batch.rows() == 0 {
                break;
            }
            rows += batch.rows();
            batch.clear();
        }
        assert_eq!(rows, expected);
    }
    assert_eq!((site.server.logins().len() - logins, site.server.attentions()), (1, 1));
}

/// Nobody listens any more: the connection ends, and what the server does on it.
#[tokio::test]
async fn a_reader_that_is_dropped_stands_in_nobodys_way() {
    let site = Site::new(shop(vec![numbered("big", 60_000)]));
    let connector = site.connector(json!({ "mode": "full" }));
    let record = table(&*connector, "shop/dbo/big").await;
    drop(connector.open(&object("shop/dbo/big", &record)).unwrap());
    assert_eq!(read(&*connector, "shop/dbo/big", &record).unwrap().len(), 60_000);
}

#[tokio::test]
async fn a_column_that_the_server_cannot_give_costs_only_itself() {
    for (number, reason) in [(245, Reason::ReadError), (230, Reason::PermissionDenied)] {
        let site = Site::new(shop(vec![numbered("people", 300)]));
        for fields in [json!({}), json!({ "sample_rows": 10 }), json!({ "mode": "full" })] {
            let connector = site.connector(fields);
            let record = table(&*connector, "shop/dbo/people").await;
            site.server.fail("[mail]", usize::MAX, error(number, 14, "not 'mail'"));
            let mut open = connector.open(&object("shop/dbo/people", &record)).unwrap().into_rows().unwrap();
            let mut batch = RowBatch::new(2);
            open.rows.fill(&mut batch).unwrap();
            assert!(batch.rows() > 0 && batch.columns[0].get(0).is_some());
            assert!((0..batch.rows()).all(|row| batch.columns[1].get(row).is_none()));
            batch.clear();
            let told = open.rows.fill(&mut batch).unwrap_err();
            assert_eq!(told.reason, reason, "{told}");
            assert!(told.detail.contains("column mail cannot be read"), "{told}");
        }
    }
}
