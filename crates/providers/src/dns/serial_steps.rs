//! Counts how far our own writes moved the serials of zones.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use netstead_model::Name;

/// For servers that count a zone's serial up by one with every change they take. If the serial moved by as much as the
/// last write had changes, no other client changed anything; after any other step (a serial made of the date, a signer at
/// work) the zone is read.
#[derive(Debug, Default)]
pub(super) struct SerialSteps(Mutex<BTreeMap<Name, u32>>);

impl SerialSteps {
    /// A write begins, or made no change that counts.
    pub(super) fn forget(&self, zone: &Name) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(zone);
    }

    /// The server took one more change of the write that runs.
    pub(super) fn add(&self, zone: &Name) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(zone.clone()).or_default() += 1;
    }

    pub(super) fn explain(&self, zone: &Name, before: u32, after: u32) -> bool {
        let steps = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(zone).copied();
        steps.is_some_and(|steps| before.wrapping_add(steps) == after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_number_of_our_own_steps_is_explained() {
        let (steps, zone): (SerialSteps, Name) = (SerialSteps::default(), "example.test".parse().unwrap());
        assert!(!steps.explain(&zone, 7, 7), "a write that did nothing explains nothing");
        steps.add(&zone);
        steps.add(&zone);
        assert!(steps.explain(&zone, 7, 9) && steps.explain(&zone, u32::MAX, 1));
        for after in [7, 8, 10] {
            assert!(!steps.explain(&zone, 7, after));
        }
        steps.forget(&zone);
        assert!(!steps.explain(&zone, 7, 9));
    }
}
