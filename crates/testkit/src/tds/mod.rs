//! A server that speaks enough of TDS 7.4, the protocol of SQL Server, for its data source to be tested where no real
//! one can be had: log-in, encryption, batches, calls with parameters, result sets of every type, errors, attention.
//!
//! Written from the protocol's public description. It holds a small model of databases and answers the connector's
//! catalogue statements and one-table `SELECT`s from it; anything else is a syntax error. That it is understood by
//! other clients than ours is tested next door (`tests/tds.rs`); that a real server takes the same statements is not.

mod catalogue;
mod evaluate;
pub mod examples;
mod login;
pub mod model;
mod request;
mod session;
mod sql;
#[cfg(test)]
mod tests;
mod text;
mod tls;
mod values;
mod wire;

use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

pub use evaluate::Rows;
pub use login::Login;
use model::Database;
use parking_lot::Mutex;
pub use request::Request;
pub use tls::Identity;
pub use values::{Type, Value};

/// The one user, who may log in.
pub const USER: &str = "auditor";
/// And with what. Quotes, a bracket and characters beyond ASCII have to survive the way.
pub const PASSWORD: &str = "p]w'\";ä日";

/// What a server tells its clients when it will not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerError {
    pub number: u32,
    pub class: u8,
    pub message: String,
}

impl ServerError {
    pub fn new(number: u32, class: u8, message: &str) -> ServerError {
        ServerError { number, class, message: message.to_owned() }
    }

    fn syntax(message: &str) -> ServerError {
        ServerError::new(102, 15, message)
    }
}

/// What goes wrong with a statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    Error(ServerError),
    /// The connection is cut after so many packets of the answer.
    Cut(usize),
    /// An error after so many rows.
    ErrorAfter(usize, ServerError),
    /// Nothing is said until the client gives up.
    Silence,
}

/// How the server is set up.
#[derive(Default)]
pub struct Setup {
    pub databases: Vec<Database>,
    /// With one, it can encrypt; and then it insists on it if asked to.
    pub identity: Option<Identity>,
    pub insists_on_encryption: bool,
    /// Bytes of its packets, at most, whatever a client asks for.
    pub packet_size: Option<u32>,
}

/// A running server. Ends when it is dropped.
pub struct TdsServer {
    port: u16,
    shared: Arc<Shared>,
    listening: Option<JoinHandle<()>>,
}

struct Shared {
    setup: Setup,
    is_ending: AtomicBool,
    log: Mutex<Log>,
}

/// What happened, and what is to happen.
#[derive(Default)]
struct Log {
    sockets: Vec<TcpStream>,
    logins: Vec<Login>,
    requests: Vec<Request>,
    attentions: usize,
    /// Part of the statement, how often still, and what.
    faults: Vec<(String, usize, Fault)>,
}

impl Shared {
    /// The fault that is to befall a statement, once.
    fn fault(&self, sql: &str) -> Option<Fault> {
        let mut log = self.log.lock();
        let (_, left, fault) =
            log.faults.iter_mut().find(|(part, left, _)| *left > 0 && sql.contains(part.as_str()))?;
        *left -= 1;
        Some(fault.clone())
    }
}

impl TdsServer {
    pub fn start(setup: Setup) -> TdsServer {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared { setup, is_ending: AtomicBool::new(false), log: Mutex::default() });
        let listening = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        TdsServer { port, shared, listening: Some(listening) }
    }

    /// A server of these databases that cannot encrypt.
    pub fn plain(databases: Vec<Database>) -> TdsServer {
        TdsServer::start(Setup { databases, ..Setup::default() })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Who logged in, or tried to.
    pub fn logins(&self) -> Vec<Login> {
        self.shared.log.lock().logins.clone()
    }

    /// Every statement, in the order in which they came.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.log.lock().requests.clone()
    }

    /// How often a client called off what it had asked for.
    pub fn attentions(&self) -> usize {
        self.shared.log.lock().attentions
    }

    /// The next statements with this text in them go wrong, so often.
    pub fn fail(&self, part: &str, times: usize, fault: Fault) {
        self.shared.log.lock().faults.push((part.to_owned(), times, fault));
    }
}

impl Drop for TdsServer {
    fn drop(&mut self) {
        self.shared.is_ending.store(true, Ordering::SeqCst);
        for socket in &self.shared.log.lock().sockets {
            // It may be closed already.
            let _ = socket.shutdown(Shutdown::Both);
        }
        // Wakes the listener up.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        if let Some(listening) = self.listening.take() {
            let _ = listening.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    loop {
        let accepted = listener.accept();
        if shared.is_ending.load(Ordering::SeqCst) {
            return;
        }
        let Ok((socket, _)) = accepted else { continue };
        let Ok(kept) = socket.try_clone() else { continue };
        shared.log.lock().sockets.push(kept);
        let shared = Arc::clone(shared);
        std::thread::spawn(move || {
            let Ok(closing) = socket.try_clone() else { return };
            let ended = session::serve(socket, &shared);
            // A client that does what this server does not know is a test that is wrong.
            if let Err(error) = ended
                && matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::Other)
            {
                eprintln!("the scripted server gave up on a client: {error}");
            }
            // Copies of the socket would keep it open.
            let _ = closing.shutdown(Shutdown::Both);
        });
    }
}
