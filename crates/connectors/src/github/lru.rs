//! A few values, of which the one that was not used for longest makes room.

use std::collections::VecDeque;

/// Looked through from end to end: for capacities of some dozens.
pub(super) struct Lru<K, V> {
    /// The one used last is at the back.
    entries: VecDeque<(K, V)>,
    capacity: usize,
}

impl<K: PartialEq, V: Clone> Lru<K, V> {
    pub fn new(capacity: usize) -> Lru<K, V> {
        Lru { entries: VecDeque::new(), capacity }
    }

    pub fn get(&mut self, key: &K) -> Option<V> {
        let at = self.entries.iter().position(|(held, _)| held == key)?;
        let entry = self.entries.remove(at)?;
        let value = entry.1.clone();
        self.entries.push_back(entry);
        Some(value)
    }

    pub fn put(&mut self, key: K, value: V) {
        self.entries.retain(|(held, _)| *held != key);
        if self.entries.len() >= self.capacity {
            self.entries.pop_front();
        }
        self.entries.push_back((key, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_for_longest_goes() {
        let mut lru = Lru::new(2);
        lru.put("a", 1);
        lru.put("b", 2);
        assert_eq!(lru.get(&"a"), Some(1));
        lru.put("c", 3);
        assert_eq!((lru.get(&"a"), lru.get(&"b"), lru.get(&"c")), (Some(1), None, Some(3)));
        lru.put("c", 4);
        assert_eq!((lru.get(&"a"), lru.get(&"c")), (Some(1), Some(4)));
    }
}
