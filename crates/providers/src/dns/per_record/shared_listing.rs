//! [`SharedListing`]: one listing of a server without zones, which serves all domains.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use netstead_model::{ChangeSign, Name, Zone, ZoneContent};

use super::record::Listing;

/// A listing that `zones` made. It serves one read of each zone, because a pass asks for the zones before it reads them.
#[derive(Debug, Clone, Default)]
pub(in crate::dns) struct SharedListing {
    domains: Vec<Name>,
    unread: BTreeSet<Name>,
    listing: Arc<Listing>,
}

impl SharedListing {
    pub(in crate::dns) fn new(domains: &[Name], listing: Listing) -> Self {
        let (unread, listing) = (domains.iter().cloned().collect(), Arc::new(listing));
        Self { domains: domains.to_vec(), unread, listing }
    }

    /// Each domain as a zone. A digest over its records is the sign of change.
    pub(in crate::dns) fn zones(&self) -> Vec<Zone> {
        let zone = |name: &Name| Zone { name: name.clone(), sign: Some(sign_of(&self.part(name))) };
        self.domains.iter().map(zone).collect()
    }

    pub(in crate::dns) fn content(&self, zone: &Name) -> ZoneContent {
        let part = self.part(zone);
        ZoneContent { sign: Some(sign_of(&part)), sets: part.found().into_sets() }
    }

    /// The listing, unless the zone was read from it before.
    pub(in crate::dns) fn unread(&mut self, zone: &Name) -> Option<Self> {
        self.unread.remove(zone).then(|| self.clone())
    }

    /// The records that belong to `zone` and to no domain below it.
    fn part(&self, zone: &Name) -> Listing {
        let zone_of = |name: &Name| {
            let above = std::iter::successors(Some(name.clone()), Name::parent);
            above.into_iter().find(|above| self.domains.contains(above))
        };
        self.listing.filter(|name| zone_of(name).as_ref() == Some(zone))
    }
}

/// A digest over the records, whatever their order.
fn sign_of(listing: &Listing) -> ChangeSign {
    let mut digests: Vec<u64> = Vec::with_capacity(listing.records.len());
    for record in &listing.records {
        let mut hasher = DefaultHasher::new();
        (record.name.as_str(), record.ttl, record.data.to_string(), record.proxied).hash(&mut hasher);
        digests.push(hasher.finish());
    }
    digests.sort_unstable();
    let mut hasher = DefaultHasher::new();
    digests.hash(&mut hasher);
    ChangeSign::Opaque(format!("{:016x}", hasher.finish()))
}
