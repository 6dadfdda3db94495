//! [`Listed`]: everything that a provider holds.

use std::collections::{BTreeMap, HashMap};

use netstead_model::{Name, RecordSet, RecordType};
use netstead_wire::external_dns::Endpoint;

use crate::dns::per_record::{Listing, Record};

/// All endpoints of a provider.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// By name and type; some providers list each value by itself.
    known: BTreeMap<(Name, RecordType), Vec<Endpoint>>,
    /// Names with endpoints of other types.
    others: Vec<Name>,
}

impl Listed {
    pub(super) fn new(endpoints: Vec<Endpoint>) -> Self {
        let mut listed = Self::default();
        for endpoint in endpoints {
            match endpoint.key() {
                Some(key) => listed.known.entry(key).or_default().push(endpoint),
                None => listed.others.extend(endpoint.dns_name.parse::<Name>()),
            }
        }
        listed
    }

    pub(super) fn listing(&self) -> Listing {
        let mut listing = Listing { others: self.others.clone(), ..Listing::default() };
        for ((name, kind), endpoints) in &self.known {
            let sets: Option<Vec<RecordSet>> = endpoints.iter().map(Endpoint::to_set).collect();
            let Some(sets) = sets else {
                listing.opaque.push((name.clone(), *kind));
                continue;
            };
            for set in &sets {
                listing.records.extend(set.values.iter().map(|data| Record {
                    id: String::new(),
                    name: name.clone(),
                    ttl: set.ttl,
                    data: data.clone(),
                    proxied: None,
                }));
            }
        }
        listing
    }

    /// The endpoint of a set as it was listed, with everything that its provider added.
    pub(super) fn endpoint(&self, key: &(Name, RecordType)) -> Option<Endpoint> {
        let mut all = self.known.get(key)?.iter().cloned();
        let first = all.next()?;
        Some(all.fold(first, |mut whole, next| {
            whole.targets.extend(next.targets);
            whole
        }))
    }
}

/// Endpoints by name and type.
pub(super) fn by_key(endpoints: Vec<Endpoint>) -> HashMap<(Name, RecordType), Endpoint> {
    endpoints.into_iter().filter_map(|endpoint| Some((endpoint.key()?, endpoint))).collect()
}
