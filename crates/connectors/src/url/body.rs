//! Objects on their way: fetched on the runtime, read by a thread that may block.
//!
//! Between the two is a channel of a few pieces: a thread that reads slowly slows its fetch down, and nothing
//! piles up. A fetch that is cut short begins again, passes over what was read already, and makes sure that
//! it is the same. Dropping the reader ends the fetch.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};

use domesday_connector::{ReadAhead, remote};
use domesday_content::ObjectError;
use domesday_model::Reason;
use domesday_scheduler::{OpenBytes, Opened, waiting};
use parking_lot::Mutex;
use reqwest::{Method, Url};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::fetch::{ATTEMPTS_MAX, FetchError, Fetched, Fetcher, passing};
use super::text::describe;

/// Pieces of one object that wait to be read; each is what the network brought at once, some 400 KB at most.
const PIECES_MAX: usize = 4;
/// Objects of a packet that are fetched before they are asked for.
const AHEAD_MAX: usize = 8;

/// Some bytes of an object, or why there are no more. An empty one is its end: a fetch that was ended from
/// outside has none, and what came of it must not pass for the whole.
type Piece = Result<Vec<u8>, ObjectError>;

/// Ends a fetch when nobody wants it any more.
struct EndOnDrop(AbortHandle);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// An object under way.
struct Fetching {
    /// Its size, if the answer tells it.
    head: oneshot::Receiver<Result<Option<u64>, ObjectError>>,
    pieces: mpsc::Receiver<Piece>,
    fetch: EndOnDrop,
    /// Of one that nobody asked for yet: given back when somebody does, for until then its bytes pile up.
    _permit: Option<OwnedSemaphorePermit>,
}

impl Fetching {
    fn begin(
        runtime: &Handle,
        fetcher: Arc<Fetcher>,
        address: Url,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Fetching {
        let (told, head) = oneshot::channel();
        let (sender, pieces) = mpsc::channel(PIECES_MAX);
        let fetch = Fetch { fetcher, address, told: Some(told), sender, seen: Seen::default() };
        let fetch = EndOnDrop(runtime.spawn(fetch.run()).abort_handle());
        Fetching { head, pieces, fetch, _permit: permit }
    }

    /// Waits until the answer begins.
    fn open(mut self, runtime: &Handle) -> Result<OpenBytes, ObjectError> {
        let size =
            wait_for(runtime, async || (&mut self.head).await).ok_or_else(ended)?.map_err(|_| ended())??;
        let reader = PieceReader {
            runtime: runtime.clone(),
            pieces: self.pieces,
            piece: Vec::new(),
            at: 0,
            is_over: false,
            _fetch: self.fetch,
        };
        Ok(OpenBytes::stream(Box::new(reader), size))
    }
}

/// Waits for what comes from the runtime, as long as the packet is not cancelled. What is asked for again must not lose
/// what came meanwhile.
fn wait_for<T>(runtime: &Handle, mut ask: impl AsyncFnMut() -> T) -> Option<T> {
    loop {
        match runtime.block_on(async { timeout(waiting::LOOK_EVERY, ask()).await }) {
            Ok(answer) => return Some(answer),
            Err(_) if waiting::is_cancelled() => return None,
            Err(_) => {}
        }
    }
}

fn ended() -> ObjectError {
    ObjectError::new(Reason::ReadError, "the fetch was ended")
}

/// Opens one object now.
pub(super) fn open(runtime: &Handle, fetcher: &Arc<Fetcher>, address: Url) -> Result<OpenBytes, ObjectError> {
    Fetching::begin(runtime, Arc::clone(fetcher), address, None).open(runtime)
}

/// What was handed over of an object.
#[derive(Default)]
struct Seen {
    bytes: u64,
    hash: blake3::Hasher,
}

/// One object's fetch, on the runtime.
struct Fetch {
    fetcher: Arc<Fetcher>,
    address: Url,
    told: Option<oneshot::Sender<Result<Option<u64>, ObjectError>>>,
    sender: mpsc::Sender<Piece>,
    seen: Seen,
}

impl Fetch {
    async fn run(mut self) {
        let mut attempt = 0;
        let mut left = self.fetcher.timeout;
        loop {
            attempt += 1;
            let begun = Instant::now();
            let fetched = match self.fetcher.get_within(left, Method::GET, &self.address).await {
                Ok(fetched) => fetched,
                Err(error) => return self.fail(error.into_object_error()).await,
            };
            left = left.saturating_sub(begun.elapsed());
            match self.hand_over(fetched, &mut left).await {
                Ok(()) => return drop(self.sender.send(Ok(Vec::new())).await),
                Err(FetchError::Passing { .. }) if attempt < ATTEMPTS_MAX && !left.is_zero() => {
                    remote::rest(self.fetcher.backoff.after(attempt)).await;
                }
                Err(error) => return self.fail(error.into_object_error()).await,
            }
        }
    }

    /// Hands an answer's pieces over. Only the time that the network takes counts, not the reader's.
    async fn hand_over(&mut self, mut fetched: Fetched, left: &mut Duration) -> Result<(), FetchError> {
        if let Some(told) = self.told.take() {
            let size = fetched.response.content_length().filter(|size| *size <= self.fetcher.max_size);
            let _ = told.send(Ok(size));
        }
        // What was handed over before is passed over, and must be the same.
        let (mut known, mut hash) = (self.seen.bytes, blake3::Hasher::new());
        loop {
            let begun = Instant::now();
            let piece = timeout(*left, fetched.response.chunk()).await;
            *left = left.saturating_sub(begun.elapsed());
            let mut piece: Vec<u8> = match piece {
                Ok(Ok(Some(piece))) => piece.into(),
                Ok(Ok(None)) if known > 0 => return Err(self.changed()),
                Ok(Ok(None)) => return Ok(()),
                Ok(Err(error)) => return Err(passing(&self.address, &describe(&error))),
                Err(_) => {
                    let limit = self.fetcher.timeout.as_secs();
                    return Err(passing(&self.address, &format!("not all of it came within {limit} s")));
                }
            };
            if known > 0 {
                let len = piece.len().min(usize::try_from(known).unwrap_or(usize::MAX));
                hash.update(&piece[..len]);
                piece.drain(..len);
                known -= len as u64;
                if known == 0 && hash.finalize() != self.seen.hash.finalize() {
                    return Err(self.changed());
                }
            }
            let room = usize::try_from(self.fetcher.max_size - self.seen.bytes).unwrap_or(usize::MAX);
            let is_too_much = piece.len() > room;
            piece.truncate(room);
            self.seen.bytes += piece.len() as u64;
            self.seen.hash.update(&piece);
            if !piece.is_empty() && self.sender.send(Ok(piece)).await.is_err() {
                return Ok(());
            }
            if is_too_much {
                let detail =
                    format!("more than `max_size`, {} bytes; the rest was left", self.fetcher.max_size);
                return Err(self.ends(Reason::ByteLimit, &detail));
            }
        }
    }

    fn changed(&self) -> FetchError {
        self.ends(Reason::Changed, "cut short, and changed when it was asked for again")
    }

    fn ends(&self, reason: Reason, detail: &str) -> FetchError {
        let error = ObjectError::new(reason, format!("{}: {detail}", self.address));
        FetchError::Final { error, status: None, is_authenticated: false }
    }

    async fn fail(mut self, error: ObjectError) {
        // Whoever opens it is told, or whoever reads it; if nobody is there any more, nobody needs to be.
        match self.told.take() {
            Some(told) => drop(told.send(Err(error))),
            None => drop(self.sender.send(Err(error)).await),
        }
    }
}

/// Reads the pieces of an object. Must not be read on the runtime's own threads.
struct PieceReader {
    runtime: Handle,
    pieces: mpsc::Receiver<Piece>,
    piece: Vec<u8>,
    at: usize,
    is_over: bool,
    _fetch: EndOnDrop,
}

impl Read for PieceReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.at == self.piece.len() && !self.is_over {
            let pieces = &mut self.pieces;
            let piece = wait_for(&self.runtime, async || pieces.recv().await);
            let piece = piece.flatten().unwrap_or_else(|| Err(ended()));
            (self.piece, self.at) = (piece.map_err(io::Error::other)?, 0);
            self.is_over = self.piece.is_empty();
        }
        let len = buf.len().min(self.piece.len() - self.at);
        buf[..len].copy_from_slice(&self.piece[self.at..self.at + len]);
        self.at += len;
        Ok(len)
    }
}

/// The objects of a packet: some are fetched before they are asked for.
pub(super) struct Packet {
    shared: Arc<Shared>,
    _feeder: EndOnDrop,
}

struct Shared {
    runtime: Handle,
    fetcher: Arc<Fetcher>,
    /// In the order of the packet, each with its place.
    objects: Vec<(Url, Mutex<Place>)>,
}

/// How far an object is. One that is asked for before its turn is fetched then and there: those before it may
/// wait for readers that come later.
enum Place {
    Waiting,
    Under(Fetching),
    Taken,
}

impl Packet {
    pub fn begin(runtime: Handle, fetcher: Arc<Fetcher>, addresses: Vec<Url>) -> Packet {
        let objects = addresses.into_iter().map(|address| (address, Mutex::new(Place::Waiting))).collect();
        let shared = Arc::new(Shared { runtime, fetcher, objects });
        let feeder = shared.runtime.spawn(feed(Arc::clone(&shared)));
        Packet { shared, _feeder: EndOnDrop(feeder.abort_handle()) }
    }
}

async fn feed(shared: Arc<Shared>) {
    let permits = Arc::new(Semaphore::new(AHEAD_MAX));
    for (address, place) in &shared.objects {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        let mut place = place.lock();
        if matches!(*place, Place::Waiting) {
            let fetcher = Arc::clone(&shared.fetcher);
            *place = Place::Under(Fetching::begin(&shared.runtime, fetcher, address.clone(), Some(permit)));
        }
    }
}

impl ReadAhead for Packet {
    fn open(&self, index: usize) -> Result<Opened, ObjectError> {
        let Some((address, place)) = self.shared.objects.get(index) else {
            return Err(ObjectError::new(Reason::Vanished, format!("the packet has no object {index}")));
        };
        let mut place = place.lock();
        let opened = match std::mem::replace(&mut *place, Place::Taken) {
            Place::Under(fetching) => {
                drop(place);
                fetching.open(&self.shared.runtime)
            }
            Place::Waiting | Place::Taken => {
                drop(place);
                open(&self.shared.runtime, &self.shared.fetcher, address.clone())
            }
        };
        opened.map(Opened::Bytes)
    }
}
