//! Containers: an object whose content is objects.
//!
//! A container is walked by an `Enumerate` of its own, whose children take permits of their own. When
//! none is free, a child is fetched and scanned right here, under its parent's permit: so nesting
//! completes even with a frontier of one. An archive that can only be read from front to back has its
//! entries read here in any case, and what is nested in them too, because the next entry comes only when
//! this one is finished; their chunks are still scanned by whoever is free. The depth of that recursion is
//! bounded by the depth limit of the budget, which all objects under one root share.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use domesday_content::{Archive, Budget, ContentError, Entry, Format, Input, Unwrapped, unwrap};
use domesday_model::NestedStep;

use crate::executor::WorkerCtx;
use crate::fetch::{Fetch, Pace};
use crate::object::{ObjectCtx, ObjectRef};
use crate::opened::OpenBytes;
use crate::source::{CursorState, EnumCursor};
use crate::task::{MAX_FETCH_SPAWNS_PER_ENUM, Task};

/// An archive that is being walked.
pub struct ContainerWalk {
    container: ObjectRef,
    archive: Archive,
    budget: Arc<Budget>,
    depth: u32,
    /// Entries met: the place of a flaw in the archive itself.
    met: u64,
}

impl ContainerWalk {
    pub(crate) fn container(&self) -> &ObjectRef {
        &self.container
    }
}

impl WorkerCtx {
    /// Opens what was recognised as a container.
    pub(crate) fn open_container(
        &mut self,
        obj: &ObjectRef,
        input: Input,
        format: Format,
        size: Option<u64>,
        pace: Pace,
    ) {
        let (budget, depth) = obj.budget(size);
        let unwrapped = self.timed(obj, || unwrap(input, Some(format), &budget, depth));
        match unwrapped {
            Err(error) => obj.flaw(0, error.into()),
            Ok((chain, Unwrapped::Plain(reader))) => self.fetch_unpacked(obj, reader, None, chain, pace),
            Ok((chain, Unwrapped::Tables(file))) => {
                self.open_table_file(obj, file, chain, (budget, depth), pace);
            }
            Ok((_, Unwrapped::Archive(archive))) => {
                let mut walk = ContainerWalk { container: Arc::clone(obj), archive, budget, depth, met: 0 };
                match pace {
                    Pace::Inline => while self.walk(&mut walk, pace) {},
                    Pace::Spawn => self.spawn_walk(Box::new(CursorState::Container(walk))),
                }
            }
        }
    }

    /// Does one step of a container's `Enumerate`.
    pub(crate) fn enumerate_container(&mut self, mut state: Box<CursorState>) {
        let CursorState::Container(walk) = &mut *state else { return };
        self.metrics().enumerate_count.add(1);
        if self.walk(walk, Pace::Spawn) {
            self.spawn_walk(state);
        }
    }

    fn spawn_walk(&mut self, state: Box<CursorState>) {
        let CursorState::Container(walk) = &*state else { return };
        let packet = Arc::clone(walk.container.packet());
        self.spawn(Task::Enumerate { packet, cursor: EnumCursor::Continue(state), rest: Vec::new() });
    }

    /// Deals with the next entries; says whether there may be more.
    fn walk(&mut self, walk: &mut ContainerWalk, pace: Pace) -> bool {
        for _ in 0..MAX_FETCH_SPAWNS_PER_ENUM {
            if walk.container.packet().is_cancelled() {
                return false;
            }
            let next = self.timed(&walk.container, || walk.archive.next_entry());
            walk.met += 1;
            match next {
                None => {
                    // An archive read to its end was read, even if it is empty.
                    walk.container.touch();
                    if let Some(format) = walk.archive.document() {
                        walk.container.not_read(format);
                    }
                    return false;
                }
                Some(Ok(entry)) => self.enter(walk, entry, pace),
                Some(Err(error)) => self.lose(walk, error),
            }
        }
        true
    }

    /// Hands an entry to fetch, or fetches it here.
    fn enter(&mut self, walk: &ContainerWalk, entry: Entry, pace: Pace) {
        // The declared size is not trusted: an entry's reader knows where it ends.
        let Entry { name, ordinal, depth, input, size: _ } = entry;
        let permit = self.shared().frontier.try_acquire_ctx();
        let metrics = self.metrics();
        metrics.objects_discovered.add(1);
        metrics.enumerate_backpressure.add(u64::from(permit.is_none()));
        let step = NestedStep { name, ordinal };
        walk.container.touch();
        let child = ObjectCtx::nested(&walk.container, step, Arc::clone(&walk.budget), depth, permit);
        let opened = open_entry(input);
        if pace == Pace::Spawn && walk.archive.independent() && child.has_permit() {
            self.spawn(Task::FetchSync { obj: child, fetch: Fetch::Entry(Box::new(opened)) });
        } else {
            // A child that panics fails alone: its parent goes on with the next one.
            let fetch = AssertUnwindSafe(|| self.fetch_object(&child, opened, Pace::Inline));
            if let Err(panic) = catch_unwind(fetch) {
                self.blame(&child, &*panic);
            }
        }
    }

    /// Reports what cannot be read: one entry, or the rest of the archive.
    fn lose(&self, walk: &ContainerWalk, error: ContentError) {
        match error.entry() {
            Some(step) => {
                walk.container.touch();
                let (step, budget) = (step.clone(), Arc::clone(&walk.budget));
                ObjectCtx::nested(&walk.container, step, budget, walk.depth, None).flaw(0, error.into());
            }
            None => walk.container.flaw(walk.met, error.into()),
        }
    }
}

fn open_entry(input: Input) -> OpenBytes {
    let random = match &input {
        Input::Seekable(bytes) => Some(Arc::clone(bytes)),
        Input::Stream(_) => None,
    };
    OpenBytes { reader: input.into_read(), random, size: None, delta_reuse: None }
}
