//! Decoded objects that others are made from, shared by the threads of one repository.
//!
//! Objects come in delta order, so that a base was decoded shortly before what is made from it. What was
//! not used since it was put in goes first (second chance), so that bases outlive the objects at the end
//! of chains.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use domesday_scheduler::{HitsSlot, ReusableHits};
use parking_lot::Mutex;

use super::bytes::Bytes;
use crate::id::ObjectKind;

/// Bytes of decoded objects held per repository: 32 MiB.
const CACHE_BYTES: usize = 32 << 20;
/// Parts with a lock each.
const SHARDS: usize = 4;
const SHARD_BYTES: usize = CACHE_BYTES / SHARDS;
/// What an entry costs beside its bytes.
const ENTRY_OVERHEAD: usize = 128;

/// Pack and offset.
pub(super) type CacheKey = (u32, u64);

/// A decoded object.
#[derive(Clone)]
pub(crate) struct Decoded {
    pub kind: ObjectKind,
    pub data: Arc<Bytes>,
    /// What its scan keeps for those that are deltas of it.
    pub hits: HitsSlot,
}

impl Decoded {
    pub fn new(kind: ObjectKind, data: Vec<u8>) -> Decoded {
        Decoded { kind, data: Arc::new(Bytes::new(data)), hits: HitsSlot::default() }
    }
}

pub(super) struct BaseCache {
    shards: [Mutex<Shard>; SHARDS],
    /// How often an object was decoded.
    #[cfg(test)]
    pub decoded: std::sync::atomic::AtomicUsize,
}

#[derive(Default)]
struct Shard {
    entries: HashMap<CacheKey, Entry>,
    /// Every key once, the one that goes next in front.
    order: VecDeque<CacheKey>,
    bytes: usize,
}

struct Entry {
    decoded: Decoded,
    used: bool,
}

impl BaseCache {
    pub fn new() -> BaseCache {
        BaseCache {
            shards: std::array::from_fn(|_| Mutex::default()),
            #[cfg(test)]
            decoded: 0.into(),
        }
    }

    pub fn get(&self, key: CacheKey) -> Option<Decoded> {
        let mut shard = self.shard(key).lock();
        let entry = shard.entries.get_mut(&key)?;
        entry.used = true;
        Some(entry.decoded.clone())
    }

    pub fn put(&self, key: CacheKey, decoded: &Decoded) {
        #[cfg(test)]
        self.decoded.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let cost = cost(decoded);
        if cost > SHARD_BYTES {
            return;
        }
        // What goes is freed after the lock.
        let mut gone = Vec::new();
        let mut shard = self.shard(key).lock();
        if shard.entries.contains_key(&key) {
            return;
        }
        while shard.bytes + cost > SHARD_BYTES {
            gone.extend(shard.evict());
        }
        shard.entries.insert(key, Entry { decoded: decoded.clone(), used: false });
        shard.order.push_back(key);
        shard.bytes += cost;
        drop(shard);
    }

    /// Neighbours in a pack are asked for by different threads at the same time: their low bits tell
    /// them apart.
    fn shard(&self, (pack, offset): CacheKey) -> &Mutex<Shard> {
        let mixed = (offset ^ u64::from(pack)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &self.shards[(mixed >> 32) as usize % SHARDS]
    }
}

impl Shard {
    fn evict(&mut self) -> Option<Decoded> {
        let key = self.order.pop_front().expect("a shard with bytes has entries");
        let entry = self.entries.get_mut(&key).expect("every key in the order has an entry");
        if std::mem::take(&mut entry.used) {
            self.order.push_back(key);
            return None;
        }
        let entry = self.entries.remove(&key)?;
        self.bytes -= cost(&entry.decoded);
        Some(entry.decoded)
    }
}

fn cost(decoded: &Decoded) -> usize {
    decoded.data.room() + ReusableHits::bytes_max(decoded.data.len()) + ENTRY_OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(len: usize) -> Decoded {
        Decoded::new(ObjectKind::Blob, vec![0; len])
    }

    fn bytes(cache: &BaseCache) -> usize {
        cache.shards.iter().map(|shard| shard.lock().bytes).sum()
    }

    #[test]
    fn holds_no_more_than_its_limit_and_keeps_what_is_used() {
        let cache = BaseCache::new();
        let base = (0, 7);
        cache.put(base, &decoded(1 << 20));
        for offset in 100..400 {
            cache.put((0, offset), &decoded(1 << 20));
            assert!(cache.get(base).is_some(), "the base went at {offset}");
            assert!(bytes(&cache) <= CACHE_BYTES);
        }
        assert!(cache.get((0, 100)).is_none(), "what was never used goes first");
    }

    #[test]
    fn what_is_larger_than_a_shard_is_not_held() {
        let cache = BaseCache::new();
        cache.put((0, 1), &decoded(SHARD_BYTES));
        assert!(cache.get((0, 1)).is_none());
        assert_eq!(bytes(&cache), 0);
    }
}
