//! [`Guard`]: what the guards remember from pass to pass.

use std::collections::BTreeSet;

use netstead_model::{Name, Span};
use serde::{Deserialize, Serialize};

use crate::{Digest, Now};

/// How long parked changes may be approved.
const OFFERED: Span = Span::from_secs(24 * 3600);
/// So many offers are remembered.
const MOST_OFFERS: usize = 20;

/// The state of one provider's guards, kept in the store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Guard {
    /// The number of the newest plan that was carried out.
    pub generation: u64,
    /// Recent changes that sources caused.
    pub window: Vec<Counted>,
    /// Parked changes that may be approved, the newest last.
    pub offers: Vec<Offer>,
    pub approved: Vec<Approval>,
    /// Ownership was learned from marks: the first plan after that waits for a person as a whole.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub recovered: bool,
    /// Added to the store's epoch in every fence: the server has seen later epochs than a store that was restored or
    /// began anew.
    #[serde(skip_serializing_if = "is_zero")]
    pub lift: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over by reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Changes of one zone that count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    pub at: u64,
    pub zone: Name,
    pub changes: u32,
}

/// Parked changes under the hash that approves them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    pub hash: Digest,
    pub since: u64,
    /// They are parked in the newest plan.
    pub current: bool,
    pub changes: BTreeSet<Digest>,
}

/// Changes that a person let pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    pub hash: Digest,
    pub until: u64,
    pub changes: BTreeSet<Digest>,
}

/// Why an approval is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ApproveError {
    #[error("nothing is parked under `{0}`; it may be done already, or was planned anew")]
    Unknown(Digest),
    #[error("`{0}` was parked over 24 h ago; see what is parked now")]
    Expired(Digest),
}

impl Guard {
    /// Lets exactly the changes parked under `hash` pass, once.
    pub fn approve(&mut self, hash: Digest, now: Now) -> Result<(), ApproveError> {
        let at =
            self.offers.iter().position(|offer| offer.hash == hash).ok_or(ApproveError::Unknown(hash))?;
        let offer = self.offers.remove(at);
        if now.since(offer.since) > OFFERED {
            return Err(ApproveError::Expired(hash));
        }
        let until = offer.since.saturating_add(OFFERED.as_millis());
        self.approved.push(Approval { hash, until, changes: offer.changes });
        Ok(())
    }

    /// Whether a person let this change pass.
    pub(crate) fn allows(&self, change: Digest, now: Now) -> bool {
        self.approved.iter().any(|one| now.millis <= one.until && one.changes.contains(&change))
    }

    /// Whether this change is parked. It stays so until a person decides or no workload wants it any more.
    pub(crate) fn holds(&self, change: Digest) -> bool {
        self.offers.iter().any(|offer| offer.current && offer.changes.contains(&change))
    }

    /// When changes were parked first under this hash.
    pub(crate) fn parked_since(&self, hash: Digest, now: Now) -> u64 {
        self.offers.iter().find(|offer| offer.hash == hash).map_or(now.millis, |offer| offer.since)
    }

    /// Remembers what the newest plan parks.
    pub(crate) fn offer(&mut self, parked: Option<(Digest, BTreeSet<Digest>)>, now: Now) {
        self.offers.retain(|offer| now.since(offer.since) <= OFFERED);
        self.offers.iter_mut().for_each(|offer| offer.current = false);
        if let Some((hash, changes)) = parked {
            let since = self.parked_since(hash, now);
            self.offers.retain(|offer| offer.hash != hash);
            self.offers.push(Offer { hash, since, current: true, changes });
        }
        let surplus = self.offers.len().saturating_sub(MOST_OFFERS);
        self.offers.drain(..surplus);
        self.approved.retain(|one| now.millis <= one.until && !one.changes.is_empty());
    }

    /// The change was tried: its approval is used up.
    pub(crate) fn use_up(&mut self, change: Digest) {
        self.approved.iter_mut().for_each(|one| {
            one.changes.remove(&change);
        });
        self.approved.retain(|one| !one.changes.is_empty());
    }

    /// Counted changes since the window began: of one zone, and of all.
    pub(crate) fn counted(&self, zone: Option<&Name>, window: Span, now: Now) -> u64 {
        let fresh = self.window.iter().filter(|one| now.since(one.at) < window);
        fresh.filter(|one| zone.is_none_or(|zone| one.zone == *zone)).map(|one| u64::from(one.changes)).sum()
    }

    pub(crate) fn count(&mut self, zone: &Name, changes: u32, window: Span, now: Now) {
        self.window.retain(|one| now.since(one.at) < window);
        match self.window.iter_mut().find(|one| one.at == now.millis && one.zone == *zone) {
            Some(one) => one.changes = one.changes.saturating_add(changes),
            None => self.window.push(Counted { at: now.millis, zone: zone.clone(), changes }),
        }
    }
}
