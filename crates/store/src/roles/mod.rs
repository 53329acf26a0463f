//! The verbs of the book, by the role that uses them. Each verb is one transaction: all of it happened, or none.
//!
//! Whoever works on the book is given one of these traits, so that a signature says what its code may do:
//!
//! | trait | given to | includes |
//! |---|---|---|
//! | [`WorkerStore`] | workers | [`LeaseStore`], [`SharedStore`] |
//! | [`OrchestratorStore`] | orchestrators, the coordinator | [`LeaseStore`], [`ComposerStore`] |
//! | [`ComposerStore`] | whoever starts and directs jobs | [`ReportStore`] |
//! | [`AdminStore`] | administrative commands | [`ReportStore`] |
//! | [`ReportStore`] | reports, commands that show something | [`SharedStore`] |
//!
//! [`Store`] is all of them, for the wiring of a process and the conformance suite. A backend implements the
//! seven traits, each in a file of the same name as here, and gets it for free.

mod administering;
mod composing;
mod leasing;
mod orchestrating;
mod reporting;
mod shared;
mod working;

pub use administering::AdminStore;
pub use composing::ComposerStore;
pub use leasing::LeaseStore;
pub use orchestrating::OrchestratorStore;
pub use reporting::ReportStore;
pub use shared::SharedStore;
pub use working::WorkerStore;

use crate::error::StoreError;

type Result<T> = std::result::Result<T, StoreError>;

/// The whole book. Only the wiring of a process and tests hold it; they hand out the role that is needed.
pub trait Store: WorkerStore + OrchestratorStore + AdminStore {}

impl<S: WorkerStore + OrchestratorStore + AdminStore> Store for S {}
