//! Netstead's own nameserver. What can fail there is the store under it.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use netstead_model::DnsProvider;
use netstead_nameserver::{Builtin, builtin};
use netstead_providers::BuildContext;
use netstead_store::{
    MemoryStore,
    faults::{Fault, FaultyStore},
};

use super::{Backend, Failure};
use crate::support::zone;

pub struct OwnNameserver {
    store: Arc<FaultyStore>,
    failed: Arc<AtomicUsize>,
}

impl Backend for OwnNameserver {
    const KIND: &'static str = builtin::KIND.name;
    const HAS_CREDENTIALS: bool = false;

    fn start() -> Option<Self> {
        let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
        Some(Self { store, failed: Arc::default() })
    }

    fn open(&self, context: &BuildContext) -> Arc<dyn DnsProvider> {
        Arc::new(Builtin::new(self.store.clone(), context.clock.clone(), vec![zone()]))
    }

    fn revoke(&mut self, _: bool) {}

    fn stop(&mut self) {
        self.store.set_outage(Some("the disk is gone"));
    }

    fn restart(&mut self) {
        self.store.set_outage(None);
    }

    fn cut_listings(&mut self) {
        self.stop();
    }

    fn fail_change(&mut self, passing: usize, failure: Failure) {
        let fault = match failure {
            Failure::Busy | Failure::Broken => Fault::Fail,
            Failure::Dropped => Fault::LoseUnknown,
            Failure::Lost | Failure::Half => Fault::LandUnknown,
        };
        let (mut left, failed) = (passing + 1, Arc::clone(&self.failed));
        self.store.decide(move |_, _| {
            if left == 1 {
                failed.fetch_add(1, Ordering::SeqCst);
            }
            let now = if left == 1 { fault } else { Fault::Pass };
            left = left.saturating_sub(1);
            now
        });
    }

    fn failed(&self) -> usize {
        self.failed.load(Ordering::SeqCst)
    }

    fn heal(&mut self) {
        self.store.script([]);
        self.restart();
    }
}
