//! The JSON of the API. Requests refuse unknown fields; answers may grow.

mod address;
mod adopt_and_undo;
mod backend_drift;
mod bulk;
mod claim;
mod cluster;
mod dns;
mod doctor;
mod event;
mod history;
mod ipam;
mod kind_name;
mod open_enum;
mod plan;
mod pool;
mod problem;
mod session;
mod status;
mod text_format;
mod token;
mod usage_history;
mod vocabulary;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use self::{
    address::{
        AddressOutput, ExplainOutput, ExplainPlace, ObservationInput, ObservationOutput, SightingInput,
    },
    adopt_and_undo::{
        AdoptInput, CleanInput, FailedOutput, LeftOutput, RecoverInput, RollbackInput, TakeOutput,
        TakenOutput, UndoOutput, UndoneOutput,
    },
    backend_drift::{PoolDriftOutput, ReleaseDriftInput, RestoreDriftInput},
    bulk::{BulkEntry, BulkInput, BulkMove, BulkOutput, BulkRenew, BulkResult, TargetInput},
    claim::{ClaimFrom, ClaimInput, ClaimOutput, MoveInput, ReleaseOutput, RenewInput},
    cluster::{ClusterOutput, LeaderOutput, MemberOutput, NodeInput, NodeOutput},
    dns::{
        BudgetOutput, InterfaceOutput, ManualOutput, NameOutput, ParkedOutput, PassOutput, PauseInput,
        PauseOutput, ProviderOutput, RecordInput, RecordOutput, RejectionOutput, ResumeInput, ScopeOutput,
        SourceOutput, WorkloadOutput, ZoneOutput,
    },
    doctor::{DoctorOutput, FindingOutput},
    event::EventOutput,
    history::{EngineEventOutput, HistoryOutput},
    ipam::{
        BlockedObjectOutput, KeptObjectOutput, ObjectChangeOutput, ObjectDriftOutput, ObjectPlanOutput,
        RejectedObjectOutput, TakenObjectOutput, UndoneObjectOutput,
    },
    kind_name::{ProviderKind, SourceKind},
    plan::{
        ApplyInput, ApplyOutput, BlockedOutput, ChangeOutput, ConfigProblem, DriftOutput, IgnoreDriftInput,
        IgnoredDriftOutput, KeptOutput, PlanOutput, RefusedOutput, WhatIfInput, WhatIfOutput,
    },
    pool::{BlockOutput, BlocksOutput, PoolInput, PoolOutput, ReservationInput, ReservationOutput, Usage},
    problem::Problem,
    session::{LoginLinkOutput, SessionOutput},
    status::{BackendOutput, BackupOutput, DamageOutput, StatusOutput, UncomparedPoolOutput},
    token::{TokenInput, TokenOutput},
    usage_history::{
        ChangesOfDay, FillingPool, ForecastOutput, PoolHistoryOutput, UsageDay, UsageOutput, UsageSample,
    },
    vocabulary::{
        AddressState, AdoptTool, ChangeAction, ChangeKind, ClaimState, Degradation, DriftKind,
        EngineEventKind, EventKind, Family, FindingState, ListOrder, ListedAddressState, Mode, NodeRole,
        PoolDriftKind, PoolOrder, PoolOrigin, RecordState, RecordType, ReleaseOutcome, ScopeStanding,
        ServerRole, ServerState, SourceView, Stale, TokenRole, WorkloadKind,
    },
};

/// One page of a list. `next` goes into `?after=` of the following call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    pub items: Vec<T>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The sequence number this answer was computed at.
    pub seq: u64,
}
