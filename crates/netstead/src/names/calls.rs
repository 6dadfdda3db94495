//! Calls to servers, counted under the name of their provider.

use netstead_api::Meter;
use netstead_model::Ident;
use netstead_providers::{Call, Observer};

/// Tells the meter of each call of one provider.
#[derive(Debug)]
pub(super) struct Calls {
    pub(super) provider: Ident,
    pub(super) meter: Meter,
}

impl Observer for Calls {
    fn called(&self, call: Call) {
        let Call { operation, outcome, took } = call;
        self.meter.called(self.provider.as_str(), operation, outcome.as_str(), took);
    }
}
