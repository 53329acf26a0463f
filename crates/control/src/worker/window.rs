//! How many packets a worker holds at once: enough that the scan core never waits for the book, and no more,
//! so that others get their share. At the end of a job every packet that waits here is one that nobody scans.
//!
//! Near the book two packets per slot are enough: one is scanned while the next is on its way. Far from it,
//! the window grows each time the core runs short although tasks were ready, and shrinks again while more
//! packets wait than are needed.

/// Which window a packet belongs to: packets that wait for the same thing share one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Slots {
    /// Of packets that ask a source for something themselves, and the book in between.
    Source,
    /// Of packets in the scan core, and on their way to it or back.
    Core,
}

/// How large a window may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowLimits {
    pub least: usize,
    pub most: usize,
}

impl WindowLimits {
    /// A window that stays as it is.
    pub fn fixed(size: usize) -> WindowLimits {
        WindowLimits { least: size, most: size }
    }
}

#[derive(Debug)]
pub(crate) struct Window {
    limits: WindowLimits,
    size: usize,
    /// Packets in a row that ended while others waited.
    in_plenty: usize,
}

impl Window {
    pub fn new(limits: WindowLimits) -> Window {
        Window { limits, size: limits.least.max(1), in_plenty: 0 }
    }

    pub fn size(&self) -> usize {
        self.size
    }

    /// How many to claim while `held` are held; none until it is worth a round trip.
    pub fn room(&self, held: usize) -> usize {
        let room = self.size.saturating_sub(held);
        if room * 4 >= self.size { room } else { 0 }
    }

    /// A packet has ended and `left` are ready or running where `slots` can run at once; `more` when the book
    /// has tasks that were not claimed yet. Whether that means the window was too small.
    pub fn ended(&mut self, left: usize, slots: usize, more: bool) -> bool {
        if left > slots {
            self.in_plenty += 1;
            if self.in_plenty > self.size {
                self.in_plenty = 0;
                self.size = (self.size - 1).max(self.limits.least).max(1);
            }
            return false;
        }
        self.in_plenty = 0;
        let starved = left < slots && more;
        if starved {
            self.grow();
        }
        starved
    }

    pub fn grow(&mut self) {
        self.size = (self.size + (self.size / 2).max(1)).min(self.limits.most.max(1));
    }

    pub fn reset(&mut self) {
        self.size = self.limits.least.max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: WindowLimits = WindowLimits { least: 4, most: 64 };

    #[test]
    fn a_window_grows_while_the_core_starves_and_shrinks_in_plenty() {
        let mut window = Window::new(LIMITS);
        assert!(!window.ended(0, 2, false), "nothing was ready: no window would have helped");
        assert_eq!(window.size(), 4);
        assert!(window.ended(1, 2, true));
        assert_eq!(window.size(), 6);
        for _ in 0..20 {
            window.ended(0, 2, true);
        }
        assert_eq!(window.size(), LIMITS.most);
        window.ended(2, 2, true);
        assert_eq!(window.size(), LIMITS.most, "just right");
        for _ in 0..10_000 {
            window.ended(3, 2, true);
        }
        assert_eq!(window.size(), LIMITS.least);
    }

    #[test]
    fn a_fixed_window_stays() {
        let mut window = Window::new(WindowLimits::fixed(3));
        for left in [0, 0, 5, 5, 5, 5, 5, 5, 0] {
            window.ended(left, 2, true);
            assert_eq!(window.size(), 3);
        }
    }

    #[test]
    fn claims_wait_until_they_are_worth_it() {
        let window = Window { limits: LIMITS, size: 40, in_plenty: 0 };
        assert_eq!((window.room(40), window.room(35), window.room(30), window.room(0)), (0, 0, 10, 40));
        let small = Window::new(WindowLimits::fixed(2));
        assert_eq!((small.room(2), small.room(1), small.room(5)), (0, 1, 0));
    }
}
