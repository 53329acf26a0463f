//! The proxy in front of a real server.

use tokio_postgres::{Client, NoTls};

use super::*;
use crate::postgres::Server;

const ADDED: Duration = Duration::from_millis(200);

/// A database with an empty table, a proxy in front of it, and the database's name.
fn place() -> (Proxy, String, String) {
    let server = Server::shared();
    let url = server.create_database();
    let name = url.rsplit('/').next().unwrap().split('?').next().unwrap().to_owned();
    server.psql(&name, "CREATE TABLE seen (number bigint)");
    let proxy = Proxy::start(server.port());
    let url = proxy.through(&url);
    (proxy, url, name)
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

fn rows(database: &str) -> String {
    Server::shared().psql(database, "SELECT count(*) FROM seen")
}

/// A transaction with a prepared COMMIT, as the store sends it.
async fn write(client: &Client) -> Result<u64, tokio_postgres::Error> {
    let commit = client.prepare("COMMIT").await?;
    client.batch_execute("BEGIN; INSERT INTO seen VALUES (1)").await?;
    client.execute(&commit, &[]).await
}

#[tokio::test]
async fn a_reset_before_the_commit_leaves_nothing() {
    let (proxy, url, name) = place();
    let client = connect(&url).await;
    write(&client).await.unwrap();
    proxy.reset_next_commit(Reset::BeforeCommit);
    assert!(write(&client).await.is_err());
    assert!(client.is_closed());
    assert_eq!(rows(&name), "1");
    let counts = proxy.counts();
    assert_eq!((counts.connections, counts.commits), (1, 2));
    assert_eq!((counts.resets_before, counts.resets_after), (1, 0));
}

#[tokio::test]
async fn a_reset_after_the_commit_only_loses_the_answer() {
    let (proxy, url, name) = place();
    let client = connect(&url).await;
    proxy.reset_next_commit(Reset::AfterCommit);
    assert!(write(&client).await.is_err());
    let seen = crate::wait::until(DRAIN_MAX, || (rows(&name) == "1").then_some(()));
    assert!(seen.is_some(), "the server did not commit");
    // Also in the simple protocol, and with several statements under way.
    let client = connect(&url).await;
    proxy.reset_next_commit(Reset::AfterCommit);
    let sent = tokio::join!(
        client.batch_execute("BEGIN"),
        client.batch_execute("INSERT INTO seen VALUES (2)"),
        client.batch_execute("COMMIT"),
    );
    assert!(sent.2.is_err());
    let seen = crate::wait::until(DRAIN_MAX, || (rows(&name) == "2").then_some(()));
    assert!(seen.is_some(), "the server did not commit the pipeline");
    assert_eq!(proxy.counts().resets_after, 2);
}

#[tokio::test]
async fn the_same_seed_hits_the_same_commits() {
    let (proxy, url, _) = place();
    let mut hit = Vec::new();
    for _ in 0..2 {
        proxy.reset_commits(300, 7);
        let mut series = Vec::new();
        for _ in 0..20 {
            let client = connect(&url).await;
            series.push(write(&client).await.is_err());
        }
        hit.push(series);
    }
    assert_eq!(hit[0], hit[1]);
    assert!(hit[0].contains(&true) && hit[0].contains(&false), "{hit:?}");
    proxy.reset_commits(0, 0);
    write(&connect(&url).await).await.unwrap();
}

/// Only that it is not faster than the line is: how fast it is, a benchmark says.
#[tokio::test]
async fn a_slow_line_delays_each_round_trip_and_not_each_statement() {
    let (proxy, url, _) = place();
    let client = connect(&url).await;
    proxy.set_round_trip(ADDED);
    let before = proxy.counts().round_trips;
    let begun = Instant::now();
    client.batch_execute("SELECT 1").await.unwrap();
    assert!(begun.elapsed() >= ADDED);
    assert_eq!(proxy.counts().round_trips, before + 1);
    // Sent together, they are one round trip.
    let pipelined = (0..50).map(|_| client.simple_query("SELECT 1"));
    let mut running: Vec<_> = pipelined.map(Box::pin).collect();
    std::future::poll_fn(|context| {
        for query in &mut running {
            assert!(query.as_mut().poll(context).is_pending());
        }
        std::task::Poll::Ready(())
    })
    .await;
    for query in running {
        query.await.unwrap();
    }
    assert_eq!(proxy.counts().round_trips, before + 2);
}

#[tokio::test]
async fn a_cut_ends_every_connection_and_the_next_ones_work() {
    let (proxy, url, _) = place();
    let (first, second) = (connect(&url).await, connect(&url).await);
    proxy.cut();
    assert!(first.batch_execute("SELECT 1").await.is_err());
    assert!(second.batch_execute("SELECT 1").await.is_err());
    connect(&url).await.batch_execute("SELECT 1").await.unwrap();
    assert!(proxy.counts().bytes_to_client > 0 && proxy.counts().bytes_to_server > 0);
}
