//! Pools with a backend: each rule of how claims are asked for, bound and given back.

mod answers;
mod branch;
mod drift;
mod faults;
mod load;
mod model;
mod rules;
mod simulation;

use std::sync::Arc;

use netstead_ledger::{
    Caller, LedgerBackend,
    contract::{self, FaultyBackend, Subject},
};

use crate::support::{House, PATIENCE, restless};

#[tokio::test]
async fn the_ledger_itself_keeps_the_contract_of_pool_backends() {
    let house = House::new().await;
    house.make_so("lan", "10.0.3.50-10.0.3.54", restless).await;
    let caller = Caller::new("branch");
    let backend = Arc::new(LedgerBackend { ledger: house.ledger.clone(), caller, patience: PATIENCE });
    let (pool, outside) = ("lan".into(), "10.0.9.1".parse().unwrap());
    contract::pools(&Subject { backend, pool, size: 5, outside }).await;
}

#[tokio::test]
async fn the_backend_that_breaks_down_keeps_the_contract_while_it_does_not() {
    let backend = Arc::new(FaultyBackend::new("10.0.3.50-10.0.3.54".parse().unwrap()));
    let (pool, outside) = ("lan".into(), "10.0.9.1".parse().unwrap());
    contract::pools(&Subject { backend, pool, size: 5, outside }).await;
}
