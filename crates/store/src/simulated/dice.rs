//! Numbers that look random and are the same in each run.

/// A row of numbers from a seed.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let number = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    }

    /// From 0 up to, and without, `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.number() % limit.max(1)
    }

    /// True `chances` times out of a thousand.
    pub fn hits(&mut self, chances: u64) -> bool {
        self.below(1000) < chances
    }

    /// One of them.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        let place = usize::try_from(self.below(from.len() as u64)).unwrap_or_default();
        from.get(place).copied()
    }
}
