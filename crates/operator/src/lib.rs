//! Cluster API's IP address management: claims of a Kubernetes cluster get their addresses out of pools.
//!
//! ```text
//!  API server ──watch──► Reflector ─► World ─► WorkQueue ─► workers
//!      ▲                              (objects, one             │ next_step: what a claim needs, decided from
//!      │                               PoolIndex per pool)      │ objects alone
//!      └──── finalizer, IPAddress, status ◄─────────────────────┘
//! ```
//!
//! - [`Operator`]: reflectors and workers over one cluster. [`PoolKind`]: the kinds of pools.
//! - `in_cluster`: the fields of the in-cluster provider's pools, and which addresses they mean. Pure.
//! - `pool_index`: which addresses of a pool are free; no step looks at all of them. `line`: the order of claims that wait. Pure.
//! - `claim_step` decides what a claim needs next, `claim_controller` does it, and says why no address is given out twice.
//! - [`ExternalPools`]: pools whose addresses are kept in another system; `external_controller` asks them.
//! - `admission`: the webhooks. `conversion`: the old version of pools.
//! - `naming`: how the address of a claim is to be called in DNS: after the Machine that the claim is for.
//! - `pool_controller`: finalizer and status of pools. `lease`: one of several replicas works. `workers`: key by key.
//!
//! Start with `claim_controller.rs`.

mod admission;
mod api;
mod cel;
mod claim_controller;
mod claim_step;
mod conditions;
mod conversion;
mod cooling;
mod definitions;
mod diagnostics;
mod events;
mod external;
mod external_controller;
pub mod in_cluster;
mod interval_set;
mod kinds;
mod lease;
mod line;
mod metrics;
mod naming;
mod object;
mod operator;
mod pool_controller;
mod pool_index;
mod reflector;
mod shared;
mod work_queue;
mod workers;
mod world;

pub use self::{
    admission::{WebhookOptions, check_webhook_url},
    definitions::definition,
    external::{ExternalAddress, ExternalClaim, ExternalPool, ExternalPools, Naming, NoExternalPools},
    interval_set::IntervalSet,
    kinds::{PoolKind, UnknownKind},
    operator::{Operator, OperatorError, OperatorOptions},
};
