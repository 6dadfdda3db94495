//! Counts calls to servers, by provider, and to platforms, by source.

use netstead_api::Meter;
use netstead_model::Ident;
use netstead_providers::{Call, CallObserver};

/// Counts each call of one provider.
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

/// Counts each call of one source.
#[derive(Debug)]
pub(super) struct SourceCallMetrics {
    pub(super) source: Ident,
    pub(super) meter: Meter,
}

impl CallObserver for SourceCallMetrics {
    fn called(&self, call: Call) {
        let Call { operation, outcome, took } = call;
        self.meter.source_called(self.source.as_str(), operation, outcome.as_str(), took);
    }
}
