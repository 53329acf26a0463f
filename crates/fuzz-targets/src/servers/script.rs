//! The server's side: a thread that plays a script to whoever connects.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

use super::protocol::Protocol;
use crate::records::records;

/// A packet, whose head is made.
pub const PACKET: u8 = 0;
/// What was said so far is sent, and the client's turn is waited for.
pub const TURN: u8 = 1;
/// Bytes as they are.
pub const RAW: u8 = 2;
/// The connection ends, and the script goes on with the next.
pub const RECONNECT: u8 = 3;
const KINDS: u8 = 4;

/// Bytes of a client's turn that are read at once.
const REQUEST_MAX: usize = 64 << 10;

/// Where scripts are played.
pub struct Stage {
    script: Arc<Mutex<Script>>,
    port: u16,
    played: AtomicU32,
}

struct Script {
    protocol: Protocol,
    steps: std::vec::IntoIter<(u8, Vec<u8>)>,
}

impl Stage {
    /// Scripts are over when a client takes longer than this for its turn: it waits for more of ours.
    pub fn open(turn_max: Duration) -> Stage {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let empty = Script { protocol: Protocol::Mysql, steps: Vec::new().into_iter() };
        let script = Arc::new(Mutex::new(empty));
        let played = Arc::clone(&script);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // The client is gone, or says what the script has no answer to.
                let _ = played.lock().play(client, turn_max);
            }
        });
        Stage { script, port, played: AtomicU32::new(0) }
    }

    /// Plays this to those who connect from now on; where they connect to. Each time it is another address of this machine:
    /// ports of connections that ended are not free again at once.
    pub fn set(&self, protocol: Protocol, input: &[u8]) -> (String, u16) {
        let steps: Vec<_> =
            records(input).map(|record| (record.kind % KINDS, record.bytes.to_vec())).collect();
        *self.script.lock() = Script { protocol, steps: steps.into_iter() };
        let [_, _, high, low] = self.played.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        (format!("127.1.{high}.{}", low.clamp(1, 254)), self.port)
    }
}

impl Script {
    fn play(&mut self, mut client: TcpStream, turn_max: Duration) -> io::Result<()> {
        client.set_read_timeout(Some(turn_max))?;
        client.set_nodelay(true)?;
        let (mut reply, mut number) = (Vec::new(), 0);
        while let Some((kind, bytes)) = self.steps.next() {
            match kind {
                PACKET => {
                    self.protocol.frame(&bytes, number, &mut reply);
                    number = number.wrapping_add(1);
                }
                RAW => reply.extend_from_slice(&bytes),
                TURN => {
                    client.write_all(&reply)?;
                    reply.clear();
                    let mut request = vec![0; REQUEST_MAX];
                    match client.read(&mut request)? {
                        0 => return self.skip(),
                        len => number = self.protocol.answer_number(&request[..len]),
                    }
                }
                _ => break,
            }
        }
        client.write_all(&reply)?;
        // A socket that is closed with unread bytes takes back what was sent.
        client.shutdown(Shutdown::Write)?;
        while client.read(&mut [0; 4 << 10])? > 0 {}
        Ok(())
    }

    /// Goes on where the next connection begins.
    fn skip(&mut self) -> io::Result<()> {
        self.steps.by_ref().find(|(kind, _)| *kind == RECONNECT);
        Ok(())
    }
}
