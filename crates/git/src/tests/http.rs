//! Git's own HTTP backend behind a small server that can refuse, break and wait.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use super::*;

/// Everything that is waited for here comes long before this.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a request looks like from outside.
pub struct Request {
    pub method: String,
    /// With the query.
    pub target: String,
    pub headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

impl Request {
    pub fn authorization(&self) -> &str {
        self.headers.get("authorization").map_or("", String::as_str)
    }
}

/// What becomes of a request.
pub enum Answer {
    /// What git says.
    Serve,
    /// A status, with these words in the body.
    Status(u16, String),
    /// The connection is cut before anything is said.
    Reset,
    /// What git says, cut in the middle.
    Cut,
    /// Nothing until the server is let go on, then what git says.
    Wait,
}

type Rule = Box<dyn Fn(&Request) -> Answer + Send>;

pub struct Server {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    /// The folder whose repositories are served.
    root: PathBuf,
    rule: Mutex<Rule>,
    /// Requests so far, and how often those that wait were let go on.
    counted: Mutex<(usize, usize)>,
    changed: Condvar,
}

impl Server {
    /// Serves the repository, which is called `repo`, by this rule.
    pub fn start(repo: &Repo, rule: impl Fn(&Request) -> Answer + Send + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let shared = Arc::new(Shared {
            root: repo.path.parent().unwrap().to_owned(),
            rule: Mutex::new(Box::new(rule)),
            counted: Mutex::default(),
            changed: Condvar::new(),
        });
        let server = Server { port: listener.local_addr().unwrap().port(), shared: Arc::clone(&shared) };
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                // A client that goes away is no fault of the server's.
                std::thread::spawn(move || drop(shared.serve(stream)));
            }
        });
        server
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/repo", self.port)
    }

    pub fn set(&self, rule: impl Fn(&Request) -> Answer + Send + 'static) {
        *self.shared.rule.lock().unwrap() = Box::new(rule);
    }

    pub fn requests(&self) -> usize {
        self.shared.counted.lock().unwrap().0
    }

    /// Waits until there were this many requests, and not for ever: whoever asks may have ended.
    pub fn wait_for(&self, count: usize) {
        let counted = self.shared.counted.lock().unwrap();
        let is_early = |(seen, _): &mut (usize, usize)| *seen < count;
        let waited = self.shared.changed.wait_timeout_while(counted, PATIENCE, is_early).unwrap();
        assert!(!waited.1.timed_out(), "no {count} requests within {PATIENCE:?}");
    }

    /// Lets the requests that wait go on; those that come wait again.
    pub fn go_on(&self) {
        self.shared.counted.lock().unwrap().1 += 1;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        let request = read_request(&stream)?;
        let answer = self.rule.lock().unwrap()(&request);
        let mut counted = self.counted.lock().unwrap();
        counted.0 += 1;
        let turn = counted.1;
        drop(counted);
        self.changed.notify_all();
        match answer {
            Answer::Serve => self.backend(&request, stream, usize::MAX),
            Answer::Cut => self.backend(&request, stream, 200),
            Answer::Wait => {
                let counted = self.counted.lock().unwrap();
                drop(self.changed.wait_while(counted, |(_, now)| *now == turn).unwrap());
                self.backend(&request, stream, usize::MAX)
            }
            Answer::Reset => stream.shutdown(Shutdown::Both),
            Answer::Status(status, words) => {
                let challenge = if status == 401 { "WWW-Authenticate: Basic realm=\"git\"\r\n" } else { "" };
                write!(
                    stream,
                    "HTTP/1.1 {status} Said\r\n{challenge}Content-Type: text/plain\r\n\
                     Content-Length: {}\r\nConnection: close\r\n\r\n{words}",
                    words.len()
                )
            }
        }
    }

    /// Has git answer, of which at most `max` bytes are passed on, in chunks.
    fn backend(&self, request: &Request, mut stream: TcpStream, max: usize) -> io::Result<()> {
        let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
        let header = |name: &str| request.headers.get(name).map_or("", String::as_str);
        let mut child = Command::new("git")
            .arg("http-backend")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_PROJECT_ROOT", &self.root)
            .env("GIT_HTTP_EXPORT_ALL", "1")
            .env("PATH_INFO", path)
            .env("QUERY_STRING", query)
            .env("REQUEST_METHOD", &request.method)
            .env("CONTENT_TYPE", header("content-type"))
            .env("CONTENT_LENGTH", request.body.len().to_string())
            .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
            .env("GIT_PROTOCOL", header("git-protocol"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut input = child.stdin.take().unwrap();
        let body = request.body.clone();
        let writer = std::thread::spawn(move || drop(input.write_all(&body)));
        let mut output = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut output)?;
        writer.join().unwrap();
        child.wait()?;
        let end = output.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(output.len());
        let head = String::from_utf8_lossy(&output[..end]).into_owned();
        let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
        write!(
            stream,
            "HTTP/1.1 {status}\r\n{head}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        )?;
        let body = &output[(end + 4).min(output.len())..];
        for chunk in body[..body.len().min(max)].chunks(4_000) {
            write!(stream, "{:x}\r\n", chunk.len())?;
            stream.write_all(chunk)?;
            stream.write_all(b"\r\n")?;
        }
        if body.len() <= max {
            stream.write_all(b"0\r\n\r\n")?;
        }
        Ok(())
    }
}

fn read_request(stream: &TcpStream) -> io::Result<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split(' ').map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line == "\r\n" {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.insert(name.to_lowercase(), value.trim().to_owned());
        }
    }
    let mut body = Vec::new();
    if headers.get("transfer-encoding").is_some_and(|encoding| encoding == "chunked") {
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let len = u64::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
            reader.by_ref().take(len).read_to_end(&mut body)?;
            reader.read_line(&mut String::new())?;
            if len == 0 {
                break;
            }
        }
    } else if let Some(len) = headers.get("content-length") {
        reader.take(len.parse().map_err(io::Error::other)?).read_to_end(&mut body)?;
    }
    Ok(Request { method, target, headers, body })
}
