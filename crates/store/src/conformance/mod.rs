//! The suite every backend must pass, unchanged: one case a promise of [`Store`](crate::Store).
//!
//! A backend implements [`Harness`] and runs [`THEMES`], each case on a book of its own. Cases know the
//! verbs and nothing behind them; what only one backend promises is tested beside that backend. The cases
//! of [`fence`] must turn red when the fence is taken out, and a backend's tests show that they do.
#![allow(clippy::unwrap_used, reason = "a case fails by panicking")]

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::roles::Store;

mod book;
mod runner;

pub mod batches;
pub mod checkpoints;
pub mod commands;
pub mod datasources;
pub mod events;
pub mod fan_out;
pub mod fence;
pub mod incremental;
pub mod jobs;
pub mod lost_answers;
pub mod operations;
pub mod origins;
pub mod pages;
pub mod prior;
pub mod prune;
pub mod reaper;
pub mod results;
pub mod retries;
pub mod sessions;
pub mod tables;
pub mod targets;
pub mod tasks;
pub mod templates;
pub mod units;

pub use book::Book;
pub use runner::{LoseOne, Loss, broken};

/// A new, empty book on the backend under test, and what the suite does to it from outside.
#[async_trait]
pub trait Harness: Send + Sync {
    fn store(&self) -> Arc<dyn Store>;
    /// Lets go of the store and opens the same book again.
    async fn reopen(&self);
    /// Moves the store's clock.
    fn advance(&self, by: Duration);
    /// The next call of `verb` gets `CommitUnknown`, and was committed or was not.
    fn lose_answer(&self, verb: &'static str, committed: bool);
}

pub type CaseFuture = Pin<Box<dyn Future<Output = ()> + Send>>;
/// Panics when the promise is broken.
pub type CaseFn = fn(Book) -> CaseFuture;
pub type Case = (&'static str, CaseFn);

/// Every case, by theme.
pub const THEMES: &[(&str, &[Case])] = &[
    ("jobs", jobs::CASES),
    ("commands", commands::CASES),
    ("tasks", tasks::CASES),
    ("units", units::CASES),
    ("fan_out", fan_out::CASES),
    ("reaper", reaper::CASES),
    ("results", results::CASES),
    ("checkpoints", checkpoints::CASES),
    ("sessions", sessions::CASES),
    ("events", events::CASES),
    ("fence", fence::CASES),
    ("lost_answers", lost_answers::CASES),
    ("datasources", datasources::CASES),
    ("templates", templates::CASES),
    ("operations", operations::CASES),
    ("prune", prune::CASES),
    ("pages", pages::CASES),
    ("targets", targets::CASES),
    ("batches", batches::CASES),
    ("origins", origins::CASES),
    ("incremental", incremental::CASES),
    ("prior", prior::CASES),
    ("tables", tables::CASES),
    ("retries", retries::CASES),
];

/// Lists a theme's cases under the names of their functions.
macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        pub const CASES: &[$crate::conformance::Case] =
            &[$((stringify!($name), |book| Box::pin($name(book)))),*];
    };
}
use cases;
