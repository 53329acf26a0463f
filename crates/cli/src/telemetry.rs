//! Metrics and health over HTTP, on an address the operator opts in to: `/metrics`, `/healthz` (this process
//! runs) and `/readyz` (it holds its lease). A few lines of HTTP/1.1 that answer one request a connection.
//!
//! Whoever can connect is a stranger: requests are small, soon, and few at once, or not answered.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use domesday_control::Metrics;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Connections at once; further ones wait to be accepted.
const CONNECTIONS_MAX: usize = 16;
/// Bytes of a request's head.
const HEAD_LEN_MAX: usize = 8 << 10;
/// Time for a whole request and its answer.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(5);
/// After an error of the system (too many open files, say), before the next connection is accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Listens for as long as the process runs; the address it got.
pub async fn serve(address: SocketAddr, metrics: Arc<Metrics>) -> Result<SocketAddr> {
    let about = || format!("cannot serve telemetry on {address}");
    let listener = TcpListener::bind(address).await.with_context(about)?;
    let bound = listener.local_addr().with_context(about)?;
    tracing::info!(address = %bound, "telemetry served");
    tokio::spawn(accept(listener, metrics));
    Ok(bound)
}

async fn accept(listener: TcpListener, metrics: Arc<Metrics>) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let metrics = Arc::clone(&metrics);
                tokio::spawn(async move {
                    let _permit = permit;
                    // A client that goes away or takes too long has its answer or none.
                    let _ = timeout(REQUEST_TIME_MAX, answer(stream, &metrics)).await;
                });
            }
            Err(error) => {
                tracing::debug!(%error, "telemetry: no connection accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn answer(mut stream: TcpStream, metrics: &Metrics) -> std::io::Result<()> {
    let mut head = Vec::new();
    let complete = loop {
        let mut part = [0; 1_024];
        let read = stream.read(&mut part).await?;
        head.extend_from_slice(&part[..read]);
        if head.windows(4).any(|end| end == b"\r\n\r\n") {
            break true;
        }
        if read == 0 || head.len() > HEAD_LEN_MAX {
            break false;
        }
    };
    let (status, body) =
        if complete { respond(&head, metrics) } else { ("400 Bad Request", "bad request\n".into()) };
    let text = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; version=0.0.4; charset=utf-8\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await
}

fn respond(head: &[u8], metrics: &Metrics) -> (&'static str, String) {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    match (method, path) {
        (b"GET", b"/metrics") => ("200 OK", metrics.exposition()),
        (b"GET", b"/healthz") => ("200 OK", "alive\n".into()),
        (b"GET", b"/readyz") if metrics.is_ready() => ("200 OK", "ready\n".into()),
        (b"GET", b"/readyz") => ("503 Service Unavailable", "no lease is held\n".into()),
        (b"GET", _) => ("404 Not Found", "there is /metrics, /healthz and /readyz\n".into()),
        _ => ("405 Method Not Allowed", "only GET\n".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ask(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request).await.unwrap();
        let mut answer = String::new();
        // A connection that is closed before all was sent may be reset.
        let _ = stream.read_to_string(&mut answer).await;
        answer
    }

    #[tokio::test]
    async fn requests_are_answered_over_a_real_connection() {
        let address = serve("127.0.0.1:0".parse().unwrap(), Arc::default()).await.unwrap();
        for (request, status, body) in [
            ("GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n", "200 OK", "domesday_lease_held 0\n"),
            ("GET /healthz HTTP/1.1\r\n\r\n", "200 OK", "alive\n"),
            ("GET /readyz?verbose HTTP/1.1\r\n\r\n", "503 Service Unavailable", "no lease is held\n"),
            ("GET / HTTP/1.1\r\n\r\n", "404 Not Found", "/metrics"),
            ("POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed", "only GET"),
            ("nonsense\r\n\r\n", "405 Method Not Allowed", "only GET"),
        ] {
            let answer = ask(address, request.as_bytes()).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{answer}");
            let (head, content) = answer.split_once("\r\n\r\n").unwrap();
            assert!(content.contains(body), "{answer}");
            assert!(head.contains(&format!("content-length: {}\r\n", content.len())), "{head}");
        }
    }

    #[tokio::test]
    async fn a_request_without_end_is_refused() {
        let address = serve("127.0.0.1:0".parse().unwrap(), Arc::default()).await.unwrap();
        let answer = ask(address, &vec![b'x'; HEAD_LEN_MAX + 1]).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400 "), "{answer}");
    }
}
