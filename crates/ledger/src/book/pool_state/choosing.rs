//! Chooses the next free address, by the order of the pool.

use netstead_model::Order;

use super::{PoolState, host_mask};

impl PoolState {
    /// The address the pool's order gives next.
    pub fn pick(&self, length: u8, random: u64) -> Option<u128> {
        match self.pool.spec.order {
            Order::Lowest => self.free.first(length),
            Order::Next => {
                let pointer = self.handed_out.last_key_value().and_then(|(_, last)| last.checked_add(1));
                self.round_from(pointer.unwrap_or(0), length)
            }
            Order::Random => {
                let mut random = random;
                for _ in 0..8 {
                    let spot = self.spot(&mut random)? & !host_mask(self.bits(), length);
                    if self.free.contains(spot, length) {
                        return Some(spot);
                    }
                }
                self.round_from(self.spot(&mut random)?, length)
            }
            Order::FreedFirst => {
                let freed = self.freed.iter().find(|number| self.free.contains(**number, length)).copied();
                freed.or_else(|| {
                    let pointer = self.generated.last().and_then(|last| last.checked_add(1));
                    self.round_from(pointer.unwrap_or(0), length)
                })
            }
        }
    }

    fn round_from(&self, from: u128, length: u8) -> Option<u128> {
        self.free.first_from(from, length).or_else(|| self.free.first(length))
    }

    /// A number of the pool, each as likely as any other.
    fn spot(&self, random: &mut u64) -> Option<u128> {
        let mut offset = (u128::from(mix(random)) << 64 | u128::from(mix(random))) % self.size.max(1);
        for (first, last) in &self.usable {
            let len = (last - first).saturating_add(1);
            if offset < len {
                return Some(first + offset);
            }
            offset -= len;
        }
        None
    }

    /// The address that has rested longest, when it has rested `cooldown_min` and is wanted because nothing is free.
    pub fn pick_early(&self, length: u8, now: u64) -> Option<u128> {
        let least = self.pool.spec.cooldown_min.as_millis();
        let rested = self.resting.iter().take_while(|(freed, _)| freed.saturating_add(least) <= now);
        rested.map(|(_, number)| *number).find(|number| self.only_rests(*number, length, now))
    }

    /// Whether nothing but its own rest keeps what stands at `number` from being handed out.
    pub(super) fn only_rests(&self, number: u128, length: u8, now: u64) -> bool {
        let last = number | host_mask(self.bits(), length);
        let same = self.slots.get(&number).is_some_and(|slot| slot.length().unwrap_or(self.bits()) == length);
        // Part of a resting prefix, or a larger one around it, may be held by a forced claim.
        let alone = || self.busy_in(number, last, now).all(|slot| slot.address().number() == number);
        same && self.contains_usable(number, last)
            && self.reservation_at(number, last).is_none()
            && self.observed_in(number, last).is_none()
            && alone()
    }
}

/// One step of splitmix64: enough for an order that is not guessed by habit, and the same for the same seed.
fn mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
