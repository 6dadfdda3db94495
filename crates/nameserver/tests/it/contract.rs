use std::sync::Arc;

use netstead_model::{DnsProvider as _, ManualClock, SystemClock};
use netstead_nameserver::Builtin;
use netstead_providers::contract::{self, Subject};
use netstead_store::MemoryStore;

use crate::fixture::name;

#[tokio::test]
async fn builtin_keeps_what_every_server_promises() {
    for clock in [SystemClock::shared(), ManualClock::default().shared()] {
        let builtin = Builtin::new(Arc::new(MemoryStore::new()), clock, vec![name("example.test")]);
        builtin.prepare().await.unwrap();
        contract::all(&Subject::inside(Arc::new(builtin), name("example.test"))).await;
    }
}
