//! The suite every connector must pass: one case a promise of [`Connector`](crate::Connector).
//!
//! A connector's tests implement [`Fixture`] and run [`THEMES`], each case on a source of its own:
//! `domesday_connector::conformance_tests!(new)`. Cases know the traits and nothing behind them; what only one
//! kind promises is tested beside that kind. A case about something a kind cannot do holds by itself, and the
//! fixture says so with `None`.
#![allow(clippy::unwrap_used, reason = "a case fails by panicking")]

mod runner;
mod walk;

pub mod cancelling;
pub mod changing;
pub mod failing;
pub mod listing;
pub mod memory;
pub mod reading;
pub mod resuming;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use domesday_model::ObjectKey;

use crate::Connector;

pub use runner::{alone, broken};
pub use walk::open;

/// A populated source of the kind under test: a few small objects, in several containers where the kind has
/// containers, more than one in each.
#[async_trait]
pub trait Fixture: Send + Sync {
    /// A new connector over the source as it is now, as another process would make it.
    async fn connector(&self) -> Arc<dyn Connector>;

    /// Every object there is now, with its content.
    fn objects(&self) -> BTreeMap<ObjectKey, Vec<u8>>;

    /// Gives an object another content under the same key. `None` where a key is its content.
    async fn change(&self) -> Option<ObjectKey>;

    /// Takes an object away.
    async fn remove(&self) -> Option<ObjectKey>;

    /// Adds an object.
    async fn add(&self) -> Option<ObjectKey> {
        None
    }

    /// A connector whose credential the source refuses. `None` where there are no credentials.
    async fn with_bad_credential(&self) -> Option<Refused>;

    /// A connector to the same source over a way on which answers fail, stall, and are cut short, but not all
    /// of them. `None` where nothing is in between.
    async fn with_flaky_reads(&self) -> Option<Arc<dyn Connector>>;

    /// A source of about `objects` objects, and how many they are. Its own memory must not grow with them:
    /// it is this process that is measured.
    async fn large(&self, objects: u64) -> Option<(Arc<dyn Connector>, u64)>;

    /// Bytes that it holds of a source of so many objects to be faster, within a limit of its own that these do not reach.
    fn held(&self, _objects: u64) -> u64 {
        0
    }

    /// A container that is not there. `None` where the source cannot tell it from an empty one.
    fn missing_container(&self) -> Option<ObjectKey> {
        Some(ObjectKey::new("no-such-container"))
    }

    /// An object that is not there. `None` where every key opens.
    fn missing_object(&self) -> Option<ObjectKey> {
        Some(ObjectKey::new("no-such-object"))
    }

    /// Whether listings know the sizes of objects.
    fn lists_sizes(&self) -> bool {
        true
    }

    /// Whether listings know marks that change with an object.
    fn lists_marks(&self) -> bool {
        true
    }
}

/// A connector that is not let in.
pub struct Refused {
    pub connector: Arc<dyn Connector>,
    /// What it tried; no message may have it.
    pub secret: String,
}

pub type CaseFuture = Pin<Box<dyn Future<Output = ()> + Send>>;
/// Panics when the promise is broken.
pub type CaseFn = fn(Arc<dyn Fixture>) -> CaseFuture;
pub type Case = (&'static str, CaseFn);

/// Every case, by theme.
pub const THEMES: &[(&str, &[Case])] = &[
    ("listing", listing::CASES),
    ("reading", reading::CASES),
    ("resuming", resuming::CASES),
    ("changing", changing::CASES),
    ("failing", failing::CASES),
    ("cancelling", cancelling::CASES),
    ("memory", memory::CASES),
];

/// Lists a theme's cases under the names of their functions.
macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        pub const CASES: &[$crate::conformance::Case] =
            &[$((stringify!($name), |fixture| Box::pin($name(fixture)))),*];
    };
}
use cases;
