//! Questions to a server beside its loop.

use std::collections::BTreeSet;

use netstead_model::{Name, ProviderError, Zone};

use super::{
    ProviderHandle,
    actual::{domains, needed},
};

impl ProviderHandle {
    /// The zones it holds that matter, asked now.
    pub(crate) async fn zones(&self) -> Result<Vec<Zone>, ProviderError> {
        let (desired, owned) = {
            let seen = self.outlook.read();
            (seen.desired.clone(), seen.owned.clone())
        };
        let asked = domains(&self.setup.settings, &owned, &desired);
        self.setup.provider.zones(&asked).await
    }

    /// Those of them in which something is wanted or ours.
    pub(crate) fn used(&self, zones: &[Zone]) -> BTreeSet<Name> {
        let seen = self.outlook.read();
        needed(zones, &seen.desired, &seen.owned)
    }
}
