//! Netstead's own nameserver. What can fail there is the store under it.

use std::sync::Arc;

use netstead_model::DnsProvider;
use netstead_nameserver::{Builtin, builtin};
use netstead_providers::BuildContext;
use netstead_store::{
    MemoryStore,
    faults::{Fault, FaultyStore},
};

use super::{Backend, Failure};
use crate::support::zone;

pub struct OwnNameserver(Arc<FaultyStore>);

impl Backend for OwnNameserver {
    const KIND: &'static str = builtin::KIND.name;
    const HAS_CREDENTIALS: bool = false;

    fn start() -> Option<Self> {
        Some(Self(Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())))))
    }

    fn open(&self, context: &BuildContext) -> Arc<dyn DnsProvider> {
        Arc::new(Builtin::new(self.0.clone(), context.clock.clone(), vec![zone()]))
    }

    fn revoke(&mut self, _: bool) {}

    fn stop(&mut self) {
        self.0.set_outage(Some("the disk is gone"));
    }

    fn restart(&mut self) {
        self.0.set_outage(None);
    }

    fn cut_listings(&mut self) {
        self.stop();
    }

    fn fail_change(&mut self, passing: usize, failure: Failure) -> bool {
        let fault = match failure {
            Failure::Busy | Failure::Broken => Fault::Fail,
            Failure::Dropped => Fault::LoseUnknown,
            Failure::Lost | Failure::Half => Fault::LandUnknown,
        };
        self.0.script(std::iter::repeat_n(Fault::Pass, passing).chain([fault]));
        true
    }

    fn heal(&mut self) {
        self.0.script([]);
        self.restart();
    }
}
