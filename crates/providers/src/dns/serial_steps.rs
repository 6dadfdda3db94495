//! Counts how far our own writes moved the serials of zones.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use netstead_model::{ChangeSign, Name};

/// For servers that count a zone's serial up by one with every change they take. If the serial moved by as many changes as
/// they took of us since the zone was read, no other client changed anything; after any other step (a serial made of the
/// date, a signer at work) the zone is read.
#[derive(Debug, Default)]
pub(super) struct SerialSteps(Mutex<BTreeMap<Name, u32>>);

impl SerialSteps {
    /// The zone is read now: counting begins anew.
    pub(super) fn forget(&self, zone: &Name) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(zone);
    }

    /// The server took one more change.
    pub(super) fn add(&self, zone: &Name) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(zone.clone()).or_default() += 1;
    }

    /// Whether our own changes moved the serial from `before` to `after`. If so, counting goes on from there.
    pub(super) fn explain(&self, zone: &Name, before: &ChangeSign, after: &ChangeSign) -> bool {
        let (Some(before), Some(after)) = (before.serial(), after.serial()) else { return false };
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let explained = counted.get(zone).is_some_and(|steps| before.wrapping_add(*steps) == after);
        if explained {
            counted.remove(zone);
        }
        explained
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_number_of_our_own_steps_is_explained() {
        let (steps, zone): (SerialSteps, Name) = (SerialSteps::default(), "example.test".parse().unwrap());
        let explain = |before: u32, after: u32| steps.explain(&zone, &before.into(), &after.into());
        assert!(!explain(7, 7), "a write that did nothing explains nothing");
        steps.add(&zone);
        steps.add(&zone);
        for after in [7, 8, 10] {
            assert!(!explain(7, after));
        }
        assert!(explain(7, 9) && !explain(9, 9), "counting goes on from there");
        steps.add(&zone);
        steps.add(&zone);
        assert!(explain(u32::MAX, 1), "a chain of writes counts as a whole");
        steps.add(&zone);
        steps.forget(&zone);
        assert!(!explain(1, 2));
    }
}
