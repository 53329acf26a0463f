//! The scan core: the task graph that takes the objects of a work packet and turns them into findings.
//!
//! ```text
//! Enumerate ──permit──▶ FetchSync ──buffer──▶ Scan ──▶ sink
//!     ▲  parked while       │ next chunk: FetchSync
//!     │  no permit is free  └ a container: Enumerate of its own
//! ```
//!
//! A large object that can be read at any place is read in pieces by all threads: `FetchSync` reads and scans one.
//! A table is read in batches of rows instead of chunks, and scanned by the thread that reads it.
//!
//! Threads steal work from each other and never block on one another: who finds no permit parks its
//! cursor, who finds no buffer scans where it is. Everything in flight is bounded: objects by the
//! [`ObjectFrontier`], chunks by the [`BufferPool`], what is inside containers by its budget. The results
//! of a packet depend on its objects only, not on threads, chunk sizes or luck.
//!
//! This crate must not know SQL or connectors: objects come from an [`ObjectSource`], results go to a
//! [`ResultSink`].

mod buffer;
mod cells;
mod checkpoint;
mod container;
mod core;
mod executor;
mod fetch;
mod frontier;
#[doc(hidden)]
pub mod gate;
#[doc(hidden)]
pub mod idle;
mod metrics;
#[cfg(feature = "micro")]
#[doc(hidden)]
pub mod micro;
mod object;
mod occurrences;
mod opened;
mod packet;
mod pieces;
mod position;
mod reader;
mod rows;
mod scan;
mod separated;
mod source;
mod stream;
mod sync;
mod tables;
mod task;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
pub mod waiting;

pub use buffer::{BUFFER_LEN_MAX, BufferPool, TsBufferHandle};
pub use checkpoint::CHECKPOINT_DISTANCE;
pub use core::{CHUNK_SIZE, CHUNK_SIZE_MAX, CHUNK_SIZE_MIN, CoreConfig, ScanCore};
pub use domesday_engine::{CopiedRange, PathKind, ReusableHits};
pub use frontier::{ObjectFrontier, Permit};
pub use metrics::{BusyTimes, KIND_SLOTS, KindSlot, Metrics, Queues};
pub use opened::{DeltaBase, DeltaReuse, HitsSlot, OpenBytes, Opened};
pub use packet::{Moved, Packet, PacketHandle, PacketOptions, PacketTotals, RawValue, ResultSink};
pub use source::{CursorState, EnumCursor, ObjectDescriptor, ObjectSource};
pub use task::{ENUM_BATCH_SIZE, MAX_FETCH_SPAWNS_PER_ENUM};
