//! The beginnings of a packet's objects, asked for before the objects are opened.

use std::sync::Arc;

use domesday_content::ObjectError;
use domesday_model::ListedObject;
use domesday_scheduler::Opened;
use parking_lot::Mutex;

use super::budget::{AHEAD, Bytes};
use super::part::{Object, Pending, Whole};
use super::{AbortOnDrop, Listed, RangeSource, reader, runtime};
use crate::ReadAhead;

/// Bytes that one packet has ahead, at most: 16 MiB. A packet whose turn is far off does not take the room of
/// one that is being read.
const PACKET_AHEAD_MAX: u64 = 16 << 20;
/// What an object counts at least: 64 KiB. A packet of tiny objects has at most 256 ahead.
const OBJECT_LEN_MIN: u64 = 64 << 10;

enum Slot {
    Waiting,
    Asked(Pending),
    Opened,
}

pub(super) struct PacketAhead {
    packet: Arc<Packet>,
    _feeder: AbortOnDrop,
}

struct Packet {
    objects: Vec<Arc<Object>>,
    slots: Mutex<Vec<Slot>>,
}

impl PacketAhead {
    pub fn begin(source: &Arc<dyn RangeSource>, packet: &[ListedObject]) -> Result<PacketAhead, ObjectError> {
        let object = |object: &ListedObject| {
            let listed = Listed { size: object.size, marks: object.marks };
            Object::new(source, object.key.clone(), Some(listed))
        };
        let slots = packet.iter().map(|_| Slot::Waiting).collect();
        let packet =
            Arc::new(Packet { objects: packet.iter().map(object).collect(), slots: Mutex::new(slots) });
        let feeder = runtime()?.spawn(feed(Arc::clone(&packet)));
        Ok(PacketAhead { packet, _feeder: AbortOnDrop(feeder.abort_handle()) })
    }
}

/// Asks for one object after the other, as room comes free.
async fn feed(packet: Arc<Packet>) {
    let window = Bytes::new(PACKET_AHEAD_MAX);
    for (index, object) in packet.objects.iter().enumerate() {
        if object.is_empty() {
            continue;
        }
        let range = reader::first_range(object);
        let len = range.end.max(OBJECT_LEN_MIN);
        let (Some(window), Some(room)) = (window.take(len).await, AHEAD.take(len).await) else { return };
        let mut slots = packet.slots.lock();
        if let slot @ Slot::Waiting = &mut slots[index]
            && let Ok(pending) = object.begin(range, &Whole::default(), vec![window, room])
        {
            *slot = Slot::Asked(pending);
        }
    }
}

impl ReadAhead for PacketAhead {
    fn open(&self, index: usize) -> Result<Opened, ObjectError> {
        let object = Arc::clone(&self.packet.objects[index]);
        let slot = {
            let mut slots = self.packet.slots.lock();
            std::mem::replace(&mut slots[index], Slot::Opened)
        };
        let opened = match slot {
            _ if object.is_empty() => Ok(reader::open_empty()),
            Slot::Asked(pending) => reader::open(object, Some(pending.wait()?)),
            // It was opened sooner than its turn to be read ahead came, or is opened again.
            Slot::Waiting | Slot::Opened => reader::open(object, None),
        };
        opened.map(Opened::Bytes)
    }
}
