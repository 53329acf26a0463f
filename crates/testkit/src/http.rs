//! An HTTP/1.1 server on loopback that answers as a test tells it to, well or badly.
//!
//! One closure gets every request and gives its [`Response`], which may be late, slow, cut short or a reset
//! connection. Every request is kept, in the order in which it came.

use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

/// Bytes of one request's head and body, at most.
const REQUEST_BYTES_MAX: u64 = 16 << 20;
/// Bytes of each chunk of a chunked body.
const CHUNK: usize = 8 << 10;

/// A request as it came.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Request {
    pub method: String,
    /// Path and query, as they were sent.
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The value of a query parameter, as it was sent.
    pub fn query(&self, name: &str) -> Option<&str> {
        let (_, query) = self.target.split_once('?')?;
        let mut pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// What a request is answered with.
#[derive(Clone, Debug)]
pub struct Response {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    is_chunked: bool,
    delay: Duration,
    /// Bytes at a time, and the pause after each.
    pace: Option<(usize, Duration)>,
    /// Bytes of the body after which the connection is reset.
    cut: Option<usize>,
    is_reset: bool,
}

impl Response {
    pub fn status(status: u16) -> Response {
        Response {
            status,
            headers: Vec::new(),
            body: Vec::new(),
            is_chunked: false,
            delay: Duration::ZERO,
            pace: None,
            cut: None,
            is_reset: false,
        }
    }

    pub fn ok(body: impl Into<Vec<u8>>) -> Response {
        Response::status(200).body(body)
    }

    /// No answer at all: the connection is reset.
    pub fn reset() -> Response {
        Response { is_reset: true, ..Response::status(200) }
    }

    /// A file below `folder`, or 404. Serves a bare repository to git once `git update-server-info` ran in it.
    pub fn file(folder: &Path, path: &str) -> Response {
        let is_below = path.split('/').all(|part| part != "..");
        match std::fs::read(folder.join(path.trim_start_matches('/'))) {
            Ok(body) if is_below => Response::ok(body),
            _ => Response::status(404),
        }
    }

    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Response {
        self.body = body.into();
        self
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Response {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// With a chunked body, whose length is not said in front.
    #[must_use]
    pub fn chunked(mut self) -> Response {
        self.is_chunked = true;
        self
    }

    /// Not before this time has passed.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Response {
        self.delay = delay;
        self
    }

    /// The body so many bytes at a time, with a pause after each.
    #[must_use]
    pub fn paced(mut self, bytes: usize, pause: Duration) -> Response {
        self.pace = Some((bytes, pause));
        self
    }

    /// Resets the connection after so many bytes of the body.
    #[must_use]
    pub fn cut_at(mut self, bytes: usize) -> Response {
        self.cut = Some(bytes);
        self
    }

    fn head(&self) -> String {
        let mut head = format!("HTTP/1.1 {} Told\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        match self.status {
            204 | 304 => {}
            _ if self.is_chunked => head.push_str("Transfer-Encoding: chunked\r\n"),
            _ => head.push_str(&format!("Content-Length: {}\r\n", self.body.len())),
        }
        head + "\r\n"
    }
}

type Handler = dyn Fn(&Request) -> Response + Send + Sync;

/// A running server; it ends, with all its connections, when this is dropped.
pub struct Server {
    port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Server {
    /// Answers every request with what `handler` gives for it. The handler may block.
    pub fn start(handler: impl Fn(&Request) -> Response + Send + Sync + 'static) -> Server {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(2).thread_name("http").enable_all().build().unwrap();
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (handler, log): (Arc<Handler>, _) = (Arc::new(handler), Arc::clone(&requests));
        runtime.spawn(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serve(client, Arc::clone(&handler), Arc::clone(&log)));
            }
        });
        Server { port, requests, runtime: Some(runtime) }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address of a path here.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// What was asked for so far.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().clone()
    }

    /// How often this path was asked for, whatever the query.
    pub fn count(&self, path: &str) -> usize {
        self.requests().iter().filter(|request| request.path() == path).count()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Without waiting: it may be dropped where waiting is not allowed.
            runtime.shutdown_background();
        }
    }
}

/// One connection, request by request, until either side ends it.
async fn serve(client: TcpStream, handler: Arc<Handler>, log: Arc<Mutex<Vec<Request>>>) {
    // Head and body are written apart, and must not wait for one another.
    let _ = client.set_nodelay(true);
    let mut client = BufReader::new(client);
    while let Ok(Some(request)) = read_request(&mut client).await {
        log.lock().push(request.clone());
        let is_head = request.method == "HEAD";
        let handler = Arc::clone(&handler);
        // A handler that panics is a reset connection: the test sees that, and the panic in its output.
        let response = tokio::task::spawn_blocking(move || handler(&request)).await;
        let answered = match response {
            Ok(response) => answer(client.get_mut(), response, is_head).await,
            Err(_) => Ok(false),
        };
        if !answered.unwrap_or(false) {
            let _ = client.get_ref().set_zero_linger();
            return;
        }
    }
}

async fn read_request(client: &mut BufReader<TcpStream>) -> io::Result<Option<Request>> {
    let mut client = client.take(REQUEST_BYTES_MAX);
    let mut line = String::new();
    client.read_line(&mut line).await?;
    let mut words = line.split_ascii_whitespace();
    let (Some(method), Some(target)) = (words.next(), words.next()) else { return Ok(None) };
    let mut request = Request { method: method.into(), target: target.into(), ..Request::default() };
    loop {
        let mut line = String::new();
        if client.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        request.headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    request.body = vec![0; length];
    client.read_exact(&mut request.body).await?;
    Ok(Some(request))
}

/// Sends an answer; whether the connection can go on.
async fn answer(client: &mut TcpStream, response: Response, is_head: bool) -> io::Result<bool> {
    sleep(response.delay).await;
    if response.is_reset {
        return Ok(false);
    }
    client.write_all(response.head().as_bytes()).await?;
    if is_head || matches!(response.status, 204 | 304) {
        return Ok(true);
    }
    let sent = &response.body[..response.cut.unwrap_or(usize::MAX).min(response.body.len())];
    let (piece, pause) = response.pace.unwrap_or((CHUNK, Duration::ZERO));
    for piece in sent.chunks(piece.max(1)) {
        if response.is_chunked {
            client.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).await?;
        }
        client.write_all(piece).await?;
        if response.is_chunked {
            client.write_all(b"\r\n").await?;
        }
        if !pause.is_zero() {
            client.flush().await?;
            sleep(pause).await;
        }
    }
    if response.cut.is_some() {
        return Ok(false);
    }
    if response.is_chunked {
        client.write_all(b"0\r\n\r\n").await?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    fn ask(server: &Server, request: &str) -> String {
        let mut client = std::net::TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        let mut said = Vec::new();
        let _ = client.read_to_end(&mut said);
        String::from_utf8(said).unwrap()
    }

    #[test]
    fn answers_as_it_was_told_and_remembers_what_was_asked() {
        let server = Server::start(|request| match request.path() {
            "/whole" => Response::ok("body").header("X-Test", "1"),
            "/chunked" => Response::ok("body").chunked(),
            "/cut" => Response::ok("body").cut_at(2),
            "/reset" => Response::reset(),
            _ => Response::status(404),
        });
        let two = "GET /whole?a=1&b HTTP/1.1\r\nAccept: x\r\n\r\n\
                   POST /chunked HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi";
        let said = ask(&server, two);
        assert_eq!(
            said,
            "HTTP/1.1 200 Told\r\nX-Test: 1\r\nContent-Length: 4\r\n\r\nbody\
             HTTP/1.1 200 Told\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"
        );
        assert!(!ask(&server, "GET /cut HTTP/1.1\r\n\r\n").ends_with("body"));
        assert_eq!(ask(&server, "GET /reset HTTP/1.1\r\n\r\n"), "");
        assert!(ask(&server, "GET /nothing HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        let requests = server.requests();
        assert_eq!((requests[0].query("a"), requests[0].query("b")), (Some("1"), Some("")));
        assert_eq!(requests[0].header("accept"), Some("x"));
        assert_eq!(requests[1].body, b"hi");
        assert_eq!(server.count("/cut"), 1);
    }
}
