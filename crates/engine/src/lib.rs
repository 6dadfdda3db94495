//! The engine: the loops that bring DNS servers in line with what runs. It runs on the leader only.
//!
//! ```text
//!  Source ──report──► SourcePoller ─┐                        ┌─► provider Worker ──► DnsProvider
//!  Source ──report──► SourcePoller ─┼─► Inventory (watch) ───┼─► provider Worker ──► DnsProvider
//!  manual, ledger ───► SourcePoller ┘         │              └─► LedgerSync ───────► Ledger (addresses in use)
//!                                             ▼
//!                        FencedStore: inventory, owned values, guards, history
//! ```
//!
//! - `SourcePoller` (`source_poller.rs`): one task per source. It asks for a report when the source changed, or regularly.
//! - `Worker` (`provider_loop.rs`): one task per provider. A *pass* reads, plans, stores the intent, writes, and stores the
//!   outcome. A pass takes no hint about what changed, so there is one path to test. The loop knows nothing of DNS: `DnsPass`
//!   (`dns_pass.rs`) does, and `IpamPass` (`ipam_pass.rs`) knows IPAM systems.
//! - `FencedStore` (`fenced_store.rs`): all commits of the engine, conditional on the leader's epoch.
//! - `EngineState` (`engine_state.rs`): what all loops share.
//! - [`Engine`]: the handle. It answers status, plans and records, and carries out what operators ask: apply, approve, pause,
//!   adopt, clean, rollback.
//!
//! A value is in the store as ours before a server hears of it. So a crash at any moment leaves nothing on a server that the
//! next leader does not know.
//!
//! Start with `provider_loop/pass.rs` and `provider_loop/carry_out.rs`: `try_pass` and `carry_out` are the whole loop.

mod background_task;
mod dns_pass;
mod doctor;
mod engine;
mod engine_state;
mod engine_time;
mod error;
mod explain;
mod fenced_store;
mod history;
mod ignored_drift;
mod inventory_store;
mod ipam_pass;
mod keys;
mod ledger_sync;
mod manual_source;
mod metrics;
mod name_news;
mod name_problems;
mod pause;
mod provider_loop;
mod pushed_source;
mod records;
mod refusals;
mod setup;
mod source_poller;
mod standby;
mod status;
mod stored_records;
mod what_if;

pub use self::{
    dns_pass::{AdoptedObject, AdoptedValue, Adoption, AdoptionReport, LeftValue},
    doctor::{Finding, Grade},
    engine::{Cleaning, Engine, Undone},
    error::EngineError,
    explain::ExplainLimits,
    history::{
        Applied, AppliedStep, Change, ChangePage, ChangePosition, ChangeQuery, EngineEvent, EngineEventKind,
        LiveChanges, StoredPlanRef,
    },
    ignored_drift::IgnoredDrift,
    keys::PREFIX,
    manual_source::{Manual, ManualRecord},
    metrics::{Observer, Tally},
    name_problems::ProblemsByWorkload,
    pause::{Pause, Scope},
    provider_loop::{HeldBy, PassReport, ProviderPlan},
    pushed_source::{Pushed, PushedRecord},
    records::{RecordQuery, RecordState, RecordView},
    setup::{IpamSetup, Options, ProviderSetup, PushedSetup, Setup, SourceSetup},
    standby::poll_on_standby,
    status::{
        DetachedStatus, EngineStatus, LastPass, ParkedStatus, ProviderStatus, ScopeStatus, SourceStatus,
        WaitingSource, WorkloadView, ZoneStatus,
    },
    what_if::{WhatIfConfig, WhatIfPlan, WhatIfProvider, WhatIfSource},
};
