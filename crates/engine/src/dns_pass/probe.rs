//! Reads from a server for the doctor, beside the passes.

use std::collections::BTreeSet;

use netstead_model::{Name, ProviderError, Zone};

use super::{
    ProviderHandle,
    zone_cache::{domains_to_list, needed_zones},
};

impl ProviderHandle {
    /// The zones it holds that matter, asked now.
    pub(crate) async fn zones(&self) -> Result<Vec<Zone>, ProviderError> {
        let (desired, owned) = {
            let seen = self.snapshot.read();
            (seen.desired.clone(), seen.owned.clone())
        };
        let asked = domains_to_list(&self.setup.settings, &owned, &desired);
        self.setup.provider.zones(&asked).await
    }

    /// Those of them in which something is wanted or ours.
    pub(crate) fn used_zones(&self, zones: &[Zone]) -> BTreeSet<Name> {
        let seen = self.snapshot.read();
        needed_zones(zones, &seen.desired, &seen.owned)
    }
}
