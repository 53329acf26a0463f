//! An object store in this process: S3's protocol as `s3s` speaks it, signatures included, over a bucket in memory
//! that can hold any key; and a network in front of it that fails as a test asks for.
//!
//! Everything is counted, so that a test can say what a resumed listing or a zip file costs.

mod bucket;
mod fault;

use std::net::Ipv4Addr;
use std::ops::Bound;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use s3s::auth::{S3Auth, SecretKey};
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{S3Result, s3_error};
use tokio::net::TcpListener;

pub use bucket::{Generated, Memory, Stored};
pub use fault::Faults;

/// The one bucket there is.
pub const BUCKET: &str = "shop";
pub const ACCESS_KEY_ID: &str = "AKIAFAKEFAKEFAKEFAKE";
pub const SECRET_ACCESS_KEY: &str = "fake/secret/of/the/testkit";

/// What a server was asked so far, and what it did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Pages of listings given.
    pub pages: u64,
    /// Keys on them.
    pub keys: u64,
    /// Ranges of objects given.
    pub reads: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Requests that were made to fail.
    pub faults: u64,
}

/// The keys of a bucket, in their order, and their objects.
pub trait Keys: Send + Sync + 'static {
    /// The first key at or after a bound.
    fn first(&self, from: Bound<&str>) -> Option<String>;
    fn get(&self, key: &str) -> Option<Stored>;
}

struct Shared {
    counts: Mutex<Counts>,
    faults: Mutex<Faults>,
    secret: Mutex<String>,
    manners: Mutex<Manners>,
}

/// What stores of this protocol do in different ways.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Manners {
    /// `start-after` gives that key itself, too.
    pub is_inclusive: bool,
    /// The bucket keeps versions.
    pub is_versioned: bool,
}

/// A running server; it ends when this is dropped.
pub struct Server {
    port: u16,
    shared: Arc<Shared>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Server {
    /// Serves a bucket to whoever signs with [`ACCESS_KEY_ID`] and [`SECRET_ACCESS_KEY`].
    pub fn start(keys: Arc<dyn Keys>) -> Server {
        Server::begin(keys, true)
    }

    /// Serves a bucket to anybody.
    pub fn start_public(keys: Arc<dyn Keys>) -> Server {
        Server::begin(keys, false)
    }

    fn begin(keys: Arc<dyn Keys>, is_private: bool) -> Server {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("testkit-s3")
            .enable_all()
            .build()
            .expect("a runtime for the S3 server");
        let shared = Arc::new(Shared {
            counts: Mutex::default(),
            faults: Mutex::default(),
            secret: Mutex::new(SECRET_ACCESS_KEY.into()),
            manners: Mutex::default(),
        });
        let mut builder = S3ServiceBuilder::new(bucket::Bucket { keys, shared: Arc::clone(&shared) });
        if is_private {
            builder.set_auth(Auth(Arc::clone(&shared)));
        }
        let service = builder.build();
        // Bound here and not by the runtime: a test that starts a server may be on one of its own.
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port on loopback");
        listener.set_nonblocking(true).expect("a socket that does not block");
        let port = listener.local_addr().expect("a bound socket has an address").port();
        runtime.spawn(accept(listener, service, Arc::clone(&shared)));
        Server { port, shared, runtime: Some(runtime) }
    }

    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn counts(&self) -> Counts {
        *self.shared.counts.lock()
    }

    /// Lets in only who signs with this from now on.
    pub fn set_secret(&self, secret_access_key: &str) {
        *self.shared.secret.lock() = secret_access_key.into();
    }

    /// Answers as such a store does from now on.
    pub fn set_manners(&self, manners: Manners) {
        *self.shared.manners.lock() = manners;
    }

    /// Makes requests fail from now on.
    pub fn set_faults(&self, faults: Faults) {
        *self.shared.faults.lock() = faults;
    }
}

/// Knows the one key there is, with the secret it has now.
struct Auth(Arc<Shared>);

#[async_trait::async_trait]
impl S3Auth for Auth {
    async fn get_secret_key(&self, access_key: &str) -> S3Result<SecretKey> {
        if access_key != ACCESS_KEY_ID {
            return Err(s3_error!(InvalidAccessKeyId));
        }
        Ok(self.0.secret.lock().as_str().into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn accept(listener: std::net::TcpListener, service: S3Service, shared: Arc<Shared>) {
    let listener = TcpListener::from_std(listener).expect("a listening socket");
    while let Ok((stream, _)) = listener.accept().await {
        // Or small answers wait for the client to acknowledge the last one.
        let _ = stream.set_nodelay(true);
        let (service, shared) = (service.clone(), Arc::clone(&shared));
        let answer = service_fn(move |request| {
            let (service, shared) = (service.clone(), Arc::clone(&shared));
            async move { fault::answer(&service, &shared, request).await }
        });
        tokio::spawn(async move {
            // A connection that ends in an error is one that a fault or its client broke.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}
