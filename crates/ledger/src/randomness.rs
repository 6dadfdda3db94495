//! The source of random numbers: ids, and the order `random`.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

/// Draws numbers: by default those of the machine. From a seed they are the same in each run, so that a test whose time
/// and store repeat themselves repeats everything. Clones of a seeded one draw from the same row.
#[derive(Debug, Clone, Default)]
pub struct Randomness(Option<Arc<AtomicU64>>);

impl Randomness {
    pub fn seeded(seed: u64) -> Self {
        Self(Some(Arc::new(AtomicU64::new(seed))))
    }

    pub(crate) fn number(&self) -> u64 {
        match &self.0 {
            None => rand::random(),
            Some(state) => spread(state.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed)),
        }
    }

    /// For the id of a ledger.
    pub(crate) fn id(&self) -> u32 {
        u32::try_from(self.number() >> 32).unwrap_or_default()
    }
}

/// How `SplitMix64` goes from a number to one that looks like no relation of it.
fn spread(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_the_same_row_each_time_and_the_machine_never() {
        let row = |chance: &Randomness| -> Vec<u64> { (0..4).map(|_| chance.number()).collect() };
        assert_eq!(row(&Randomness::seeded(7)), row(&Randomness::seeded(7)));
        assert_ne!(row(&Randomness::seeded(7)), row(&Randomness::seeded(8)));
        assert_ne!(row(&Randomness::default()), row(&Randomness::default()));
    }
}
