//! The loops: they look at the sources, plan for every provider, and carry the plans out.
//!
//! One task per source puts what it sees into the inventory; one per provider brings its server in line with the newest
//! inventory. What they must not forget is in the store before anything depends on it.

mod addresses;
mod engine;
mod error;
mod examine;
mod explain;
mod history;
mod imagine;
mod inventory;
mod keys;
mod look;
mod manual;
mod observe;
mod pause;
mod provider;
mod records;
mod running;
mod setup;
mod shared;
mod shelf;
mod status;
mod time;
mod warm;

pub use self::{
    engine::{Cleaning, Engine, Undone},
    error::EngineError,
    examine::{Finding, Grade},
    history::{Applied, AppliedStep, Change, ChangePage, ChangeQuery, Happened, Occasion, Place, PlanOf},
    imagine::{Imagined, ImaginedPlan, ImaginedProvider, ImaginedSource},
    keys::PREFIX,
    manual::{Manual, ManualRecord},
    observe::{Observer, Tally},
    pause::{Pause, Scope},
    provider::{LeftValue, PassReport, Take, Taken, TakenValue},
    records::{RecordQuery, RecordState, RecordView},
    setup::{Options, ProviderSetup, Setup, SourceSetup, ZoneOf},
    status::{
        DetachedStatus, EngineStatus, LastPass, ParkedStatus, ProviderStatus, SourceStatus, WorkloadView,
        ZoneStatus,
    },
    warm::keep_warm,
};
