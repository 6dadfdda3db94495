//! The loops: they look at the sources, plan for every provider, and carry the plans out.
//!
//! One task per source puts what it sees into the inventory; one per provider brings its server in line with the newest
//! inventory. What they must not forget is in the store before anything depends on it.

mod background_task;
mod doctor;
mod engine;
mod engine_state;
mod engine_time;
mod error;
mod explain;
mod fenced_store;
mod history;
mod inventory_store;
mod keys;
mod ledger_sync;
mod manual_source;
mod metrics;
mod pause;
mod provider;
mod records;
mod setup;
mod source_poller;
mod standby;
mod status;
mod what_if;

pub use self::{
    doctor::{Finding, Grade},
    engine::{Cleaning, Engine, Undone},
    error::EngineError,
    history::{
        Applied, AppliedStep, Change, ChangePage, ChangePosition, ChangeQuery, EngineEvent, EngineEventKind,
        StoredPlanRef,
    },
    keys::PREFIX,
    manual_source::{Manual, ManualRecord},
    metrics::{Observer, Tally},
    pause::{Pause, Scope},
    provider::{AdoptedValue, Adoption, AdoptionReport, LeftValue, PassReport},
    records::{RecordQuery, RecordState, RecordView},
    setup::{Options, ProviderSetup, Setup, SourceSetup, ZoneOf},
    standby::poll_on_standby,
    status::{
        DetachedStatus, EngineStatus, LastPass, ParkedStatus, ProviderStatus, SourceStatus, WaitingSource,
        WorkloadView, ZoneStatus,
    },
    what_if::{WhatIfConfig, WhatIfPlan, WhatIfProvider, WhatIfSource},
};
