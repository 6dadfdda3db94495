//! Counts calls to servers, by provider.

use netstead_api::Meter;
use netstead_model::Ident;
use netstead_providers::{Call, CallObserver};

/// Tells the meter of each call of one provider.
#[derive(Debug)]
pub(super) struct CallMetrics {
    pub(super) provider: Ident,
    pub(super) meter: Meter,
}

impl CallObserver for CallMetrics {
    fn called(&self, call: Call) {
        let Call { operation, outcome, took } = call;
        self.meter.called(self.provider.as_str(), operation, outcome.as_str(), took);
    }
}
