//! The three things an executor thread does. An enum and not a closure: its size is known and small,
//! a queue of it is one allocation, and what waits can be told apart.

use std::sync::Arc;

use crate::buffer::TsBufferHandle;
use crate::fetch::Fetch;
use crate::object::ObjectRef;
use crate::packet::PacketCtx;
use crate::scan::ChunkPlace;
use crate::source::{EnumCursor, ObjectDescriptor};

/// The largest task, in bytes: queues hold tasks by value, and each is moved several times.
pub const TASK_LEN_MAX: usize = 48;
/// The largest descriptor, in bytes.
pub const DESCRIPTOR_LEN_MAX: usize = 64;
/// Descriptors asked of a source at once.
pub const ENUM_BATCH_SIZE: usize = 32;
/// Objects one step of enumeration hands to fetch, at most; then other tasks get their turn.
pub const MAX_FETCH_SPAWNS_PER_ENUM: usize = ENUM_BATCH_SIZE;

pub enum Task {
    /// Lists objects: those of the packet's source, or those inside a container.
    Enumerate {
        packet: Arc<PacketCtx>,
        cursor: EnumCursor,
        /// What is listed and not yet handed to fetch, the next one last.
        rest: Vec<ObjectDescriptor>,
    },
    /// Reads the next chunk of an object.
    FetchSync { obj: ObjectRef, fetch: Fetch },
    /// Matches one chunk.
    Scan { obj: ObjectRef, chunk: Box<BufferedChunk> },
}

/// A chunk on its way to whoever scans it. Boxed: few objects have more than one, and all tasks would be larger.
pub struct BufferedChunk {
    pub(crate) buffer: TsBufferHandle,
    pub(crate) place: ChunkPlace,
}

const _: () = assert!(size_of::<Task>() <= TASK_LEN_MAX);
const _: () = assert!(size_of::<ObjectDescriptor>() <= DESCRIPTOR_LEN_MAX);
const _: () = assert!(size_of::<ObjectRef>() == 8);

impl Task {
    /// The object to blame when the task panics; `None` for the enumeration of a source.
    pub(crate) fn object(&self) -> Option<&ObjectRef> {
        match self {
            Task::FetchSync { obj, .. } | Task::Scan { obj, .. } => Some(obj),
            Task::Enumerate { cursor: EnumCursor::Continue(state), .. } => match &**state {
                crate::source::CursorState::Container(walk) => Some(walk.container()),
                _ => None,
            },
            Task::Enumerate { .. } => None,
        }
    }

    pub(crate) fn packet(&self) -> &Arc<PacketCtx> {
        match self {
            Task::Enumerate { packet, .. } => packet,
            Task::FetchSync { obj, .. } | Task::Scan { obj, .. } => obj.packet(),
        }
    }
}
