//! A network between a process and PostgreSQL that is as slow and as unreliable as a test asks for.
//!
//! A proxy on loopback, plain TCP only. Latency is a delay line in each direction: bytes arrive late, and as
//! many may be under way as a pipeline sends. A connection can be reset in the middle of a COMMIT, before it
//! reaches the server or after, when only its answer is lost: that is the one place where a client cannot
//! know what happened. Everything is counted.

mod frontend;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use frontend::Frontend;

/// Bytes read at once.
const CHUNK: usize = 64 << 10;
/// Chunks under way in one direction of a connection, at most: what a slow line holds.
const CHUNKS_MAX: usize = 256;
/// How long a server whose client is gone may take to do what it was told.
const DRAIN_MAX: Duration = Duration::from_secs(60);
const PER_MILLE: u64 = 1_000;

/// Where in a COMMIT a connection breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reset {
    /// The server never sees it.
    BeforeCommit,
    /// The server does it, and the client does not hear of it.
    AfterCommit,
}

/// What went through so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    pub connections: u64,
    pub commits: u64,
    pub resets_before: u64,
    pub resets_after: u64,
    /// Times a client spoke after it had heard the server.
    pub round_trips: u64,
    pub bytes_to_server: u64,
    pub bytes_to_client: u64,
}

/// A running proxy; it ends, with all its connections, when this is dropped.
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    runtime: Option<tokio::runtime::Runtime>,
}

struct Shared {
    upstream: SocketAddr,
    /// In microseconds, one way.
    delay: AtomicU64,
    plan: Mutex<Plan>,
    counters: Counters,
    /// Every change resets all connections there are.
    cut: watch::Sender<u64>,
}

#[derive(Default)]
struct Counters {
    connections: AtomicU64,
    commits: AtomicU64,
    resets_before: AtomicU64,
    resets_after: AtomicU64,
    round_trips: AtomicU64,
    bytes_to_server: AtomicU64,
    bytes_to_client: AtomicU64,
}

/// Which commits are hit.
#[derive(Default)]
struct Plan {
    /// The next ones, in this order.
    next: VecDeque<Reset>,
    /// Of the others so many in a thousand, by chance.
    per_mille: u64,
    chance: u64,
}

impl Plan {
    fn draw(&mut self) -> Option<Reset> {
        if let Some(reset) = self.next.pop_front() {
            return Some(reset);
        }
        if self.per_mille == 0 {
            return None;
        }
        // SplitMix64: the same seed, the same commits.
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.chance ^ (self.chance >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let kind = if mixed >> 63 == 0 { Reset::BeforeCommit } else { Reset::AfterCommit };
        (mixed % PER_MILLE < self.per_mille).then_some(kind)
    }
}

impl Proxy {
    /// A proxy in front of the server at this loopback port.
    pub fn start(upstream_port: u16) -> Proxy {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).thread_name("proxy").enable_all().build().unwrap();
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            upstream: (Ipv4Addr::LOCALHOST, upstream_port).into(),
            delay: AtomicU64::new(0),
            plan: Mutex::default(),
            counters: Counters::default(),
            cut: watch::Sender::new(0),
        });
        let accepting = Arc::clone(&shared);
        runtime.spawn(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serve(Arc::clone(&accepting), client));
            }
        });
        Proxy { port, shared, runtime: Some(runtime) }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// A server's URL, by way of this proxy.
    pub fn through(&self, url: &str) -> String {
        url.replace(&format!(":{}/", self.shared.upstream.port()), &format!(":{}/", self.port))
    }

    /// What is added to every round trip from now on.
    pub fn set_round_trip(&self, added: Duration) {
        let one_way = u64::try_from(added.as_micros() / 2).unwrap_or(u64::MAX);
        self.shared.delay.store(one_way, Ordering::Relaxed);
    }

    /// Breaks the connection of the next COMMIT, whoever sends it.
    pub fn reset_next_commit(&self, reset: Reset) {
        self.shared.plan.lock().next.push_back(reset);
    }

    /// Breaks so many of a thousand commits, half of them before and half after; 0 ends it, and forgets those
    /// that were still to come.
    pub fn reset_commits(&self, per_mille: u64, seed: u64) {
        *self.shared.plan.lock() = Plan { next: VecDeque::new(), per_mille, chance: seed };
    }

    /// Resets every connection there is.
    pub fn cut(&self) {
        self.shared.cut.send_modify(|count| *count += 1);
    }

    pub fn counts(&self) -> Counts {
        let Counters {
            connections,
            commits,
            resets_before,
            resets_after,
            round_trips,
            bytes_to_server,
            bytes_to_client,
        } = &self.shared.counters;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            connections: read(connections),
            commits: read(commits),
            resets_before: read(resets_before),
            resets_after: read(resets_after),
            round_trips: read(round_trips),
            bytes_to_server: read(bytes_to_server),
            bytes_to_client: read(bytes_to_client),
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Without waiting: it may be dropped where waiting is not allowed.
            runtime.shutdown_background();
        }
    }
}

/// How a connection ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Closed,
    Reset(Reset),
    Cut,
}

/// Bytes, and when they arrive.
type Late = (Instant, Vec<u8>);

async fn serve(shared: Arc<Shared>, mut client: TcpStream) {
    count(&shared.counters.connections, 1);
    let mut cut = shared.cut.subscribe();
    let Ok(mut server) = TcpStream::connect(shared.upstream).await else {
        let _ = client.set_zero_linger();
        return;
    };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let fate = {
        let (client, server) = (client.split(), server.split());
        let heard = AtomicBool::new(true);
        let mut up = std::pin::pin!(forward_up(&shared, client.0, server.1, &heard));
        let mut down = std::pin::pin!(forward_down(&shared, server.0, client.1, &heard));
        tokio::select! {
            fate = &mut up => {
                // A client that was killed may be reset; the server must not wait for it.
                let fate = fate.unwrap_or(Fate::Cut);
                // A client that said good-bye still hears the server out.
                if fate == Fate::Closed {
                    let _ = down.await;
                }
                fate
            }
            _ = &mut down => Fate::Closed,
            _ = cut.changed() => Fate::Cut,
        }
    };
    match fate {
        Fate::Closed => {}
        Fate::Cut | Fate::Reset(Reset::BeforeCommit) => {
            let _ = (client.set_zero_linger(), server.set_zero_linger());
        }
        Fate::Reset(Reset::AfterCommit) => {
            let _ = client.set_zero_linger();
            drop(client);
            // In order and not by a reset, so that the server does all that it was told.
            let _ = tokio::time::timeout(DRAIN_MAX, drain(&mut server)).await;
        }
    }
}

async fn drain(server: &mut TcpStream) -> io::Result<()> {
    server.shutdown().await?;
    let mut ignored = vec![0; CHUNK];
    while server.read(&mut ignored).await? > 0 {}
    Ok(())
}

/// From the client to the server, with an eye on commits.
async fn forward_up(
    shared: &Shared,
    client: ReadHalf<'_>,
    mut server: WriteHalf<'_>,
    heard: &AtomicBool,
) -> io::Result<Fate> {
    let (late, mut arriving) = mpsc::channel::<Late>(CHUNKS_MAX);
    let counters = &shared.counters;
    let read = read(shared, client, late, |bytes| {
        count(&counters.bytes_to_server, bytes);
        count(&counters.round_trips, u64::from(heard.swap(false, Ordering::Relaxed)));
    });
    let write = async {
        let mut frontend = Frontend::default();
        while let Some((due, bytes)) = arriving.recv().await {
            tokio::time::sleep_until(due).await;
            if let Some(commit) = frontend.take(&bytes) {
                count(&counters.commits, 1);
                let reset = shared.plan.lock().draw();
                match reset {
                    Some(Reset::BeforeCommit) => {
                        count(&counters.resets_before, 1);
                        server.write_all(&bytes[..commit.max(0).unsigned_abs()]).await?;
                    }
                    Some(Reset::AfterCommit) => {
                        count(&counters.resets_after, 1);
                        server.write_all(&bytes).await?;
                    }
                    None => {}
                }
                if let Some(reset) = reset {
                    return Ok(Fate::Reset(reset));
                }
            }
            server.write_all(&bytes).await?;
        }
        server.shutdown().await?;
        Ok(Fate::Closed)
    };
    both(read, write).await
}

async fn forward_down(
    shared: &Shared,
    server: ReadHalf<'_>,
    mut client: WriteHalf<'_>,
    heard: &AtomicBool,
) -> io::Result<Fate> {
    let (late, mut arriving) = mpsc::channel::<Late>(CHUNKS_MAX);
    let read = read(shared, server, late, |bytes| {
        count(&shared.counters.bytes_to_client, bytes);
        heard.store(true, Ordering::Relaxed);
    });
    let write = async {
        while let Some((due, bytes)) = arriving.recv().await {
            tokio::time::sleep_until(due).await;
            client.write_all(&bytes).await?;
        }
        client.shutdown().await?;
        Ok(Fate::Closed)
    };
    both(read, write).await
}

/// Reads until the end, and passes on each part with the time it arrives at.
async fn read(
    shared: &Shared,
    mut from: ReadHalf<'_>,
    late: mpsc::Sender<Late>,
    mut saw: impl FnMut(u64),
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let length = from.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        saw(length as u64);
        let due = Instant::now() + Duration::from_micros(shared.delay.load(Ordering::Relaxed));
        // The writer is gone only when the connection is.
        if late.send((due, buffer[..length].to_vec())).await.is_err() {
            return Ok(());
        }
    }
}

/// The writer decides; a reader that fails ends both.
async fn both(
    read: impl Future<Output = io::Result<()>>,
    write: impl Future<Output = io::Result<Fate>>,
) -> io::Result<Fate> {
    let (mut read, mut write) = (std::pin::pin!(read), std::pin::pin!(write));
    tokio::select! {
        ended = &mut read => {
            ended?;
            write.await
        }
        ended = &mut write => ended,
    }
}

fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}
