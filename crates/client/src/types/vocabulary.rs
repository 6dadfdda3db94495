//! The enums of the API: states, families, orders, modes, outcomes and roles.

use netstead_model as model;

use super::open_enum::open_enum;

/// An enum of what the history has, and perhaps more: the history and the stream use the same words.
macro_rules! history_kinds {
    ($(#[doc = $doc:literal])* $name:ident { $($more:tt)* }) => {
        open_enum! {
            $(#[doc = $doc])*
            $name {
                Applied = "applied",
                /// The server had something else, and the change was planned again.
                Changed = "changed",
                /// The server rejected it.
                Rejected = "rejected",
                Unknowable = "unknown",
                Approved = "approved",
                Paused = "paused",
                Resumed = "resumed",
                Late = "late",
                Doubtful = "doubtful",
                Parked = "parked",
                Unparked = "unparked",
                Suspect = "suspect",
                Believed = "believed",
                Failing = "failing",
                Working = "working",
                Set = "set",
                Deleted = "deleted",
                Adopted = "adopted",
                Recovered = "recovered",
                Cleaned = "cleaned",
                RolledBack = "rolled-back",
                $($more)*
            }
        }
    };
}

history_kinds! {
    /// Outcome of a change of a name, or kind of an event of the engine.
    ChangeKind {}
}

history_kinds! {
    /// Kind of an event of the engine on the stream: as in the history, and `drift`.
    EngineEventKind {
        /// A value is no longer as Netstead wrote it.
        Drift = "drift",
    }
}

open_enum! {
    /// State of an address, or of a whole prefix.
    AddressState {
        Held = "held",
        Resting = "resting",
        GivingBack = "giving-back",
        Reserved = "reserved",
        Observed = "observed",
        Excluded = "excluded",
        Gateway = "gateway",
        Free = "free",
        Outside = "outside",
        /// Of a prefix with addresses in different states.
        Mixed = "mixed",
    }
    /// State of an address in a list: those that are simply free are not listed.
    ListedAddressState {
        Held = "held",
        Resting = "resting",
        GivingBack = "giving-back",
        Reserved = "reserved",
        Observed = "observed",
        Excluded = "excluded",
        Gateway = "gateway",
    }
    /// State of a claim.
    ClaimState {
        Bound = "bound",
        Waiting = "waiting",
        Withdrawn = "withdrawn",
        GivingBack = "giving-back",
    }
    /// Result of a release.
    ReleaseOutcome {
        Released = "released",
        AlreadyGone = "already gone",
    }
    /// Family of the addresses of a pool.
    Family {
        Ipv4 = "ipv4",
        Ipv6 = "ipv6",
        Mac = "mac",
        Prefix = "prefix",
    }
    /// Order in which a pool hands out its addresses.
    PoolOrder {
        Lowest = "lowest",
        Next = "next",
        Random = "random",
        FreedFirst = "freed-first",
    }
    /// Place where a pool is defined. One of the configuration file is read-only in the API.
    PoolOrigin {
        Api = "api",
        File = "file",
    }
    /// Role of a token. Each includes those before it.
    TokenRole {
        Read = "read",
        Claim = "claim",
        Write = "write",
        Admin = "admin",
    }
    /// Reason of the state `degraded`.
    Degradation {
        /// Parts of the store cannot be read.
        Damaged = "damaged",
        /// The store takes no changes.
        ReadOnly = "read-only",
        /// The changed configuration was refused, and the one before it is in force.
        ConfigurationRefused = "configuration-refused",
    }
    /// Role of the node that answers.
    ServerRole {
        Leading = "leading",
        Following = "following",
    }
    /// Role of a node in the cluster that replicates the store.
    NodeRole {
        Leader = "leader",
        Follower = "follower",
        /// It does not vote yet.
        Learner = "learner",
        /// The node that answers was removed from the cluster.
        Removed = "removed",
    }
    /// State of the server.
    ServerState {
        Ready = "ready",
        /// A part of the store is damaged, and the rest is served.
        Degraded = "degraded",
        NotReady = "not ready",
    }
    /// Grade of a finding of the doctor.
    FindingState {
        Ok = "ok",
        /// It may be intended.
        Note = "note",
        /// A person must act.
        Problem = "problem",
    }
    /// How much the newest report of a source says; `none` before the first.
    SourceView {
        Complete = "complete",
        Partial = "partial",
        Failed = "failed",
        None = "none",
    }
    /// Whether a source still looks after one of its scopes.
    ScopeStanding {
        Listed = "listed",
        RetiredByConfiguration = "retired-by-configuration",
        RetiredByPlatform = "retired-by-platform",
        Unassigned = "unassigned",
    }
    /// Changes that Netstead may make on a provider.
    Mode {
        Managed = "managed",
        Additive = "additive",
        CreateOnly = "create-only",
        Authoritative = "authoritative",
        Observe = "observe",
    }
    /// Kind of a workload.
    WorkloadKind {
        Claim = "claim",
        Record = "record",
        Host = "host",
        Container = "container",
        Service = "service",
        Router = "router",
        Endpoint = "endpoint",
    }
    /// Type of a DNS record.
    RecordType {
        A = "A",
        Aaaa = "AAAA",
        Cname = "CNAME",
        Ptr = "PTR",
        Srv = "SRV",
        Txt = "TXT",
        Mx = "MX",
        Caa = "CAA",
        Ns = "NS",
        Https = "HTTPS",
        Svcb = "SVCB",
    }
    /// State of a value on a provider.
    RecordState {
        Ok = "ok",
        Pending = "pending",
        Parked = "parked",
        Blocked = "blocked",
        Drift = "drift",
        Foreign = "foreign",
        /// It is ours, and the server cannot be read now.
        Unread = "unknown",
    }
    /// Action of a plan on a value.
    ChangeAction {
        Add = "add",
        Change = "change",
        Remove = "remove",
    }
    /// How a value differs from what Netstead wrote.
    DriftKind {
        /// It is ours, and was removed by others.
        Missing = "missing",
        /// Others put it beside ours.
        Foreign = "foreign",
        /// A mark of ours, for values that the store does not have.
        Mark = "mark",
    }
    /// How a backend differs from a claim that draws from it.
    PoolDriftKind {
        /// The backend has no object for a claim.
        Missing = "missing",
        /// The backend has the address under another key.
        OtherKey = "other-key",
        /// The address belongs to another account at the backend.
        OtherHolder = "other-holder",
        /// The backend has an object of ours that no claim knows.
        Unclaimed = "unknown",
        /// The backend's answer could not be bound, and is kept.
        Stray = "stray",
        /// The backend describes the pool otherwise than when it was made.
        Description = "description",
    }
    /// Tool whose records are adopted.
    AdoptTool {
        Dnsweaver = "dnsweaver",
        ExternalDns = "external-dns",
    }
    /// Kind of an event of the ledger.
    EventKind {
        PoolCreated = "pool-created",
        PoolUpdated = "pool-updated",
        PoolDeleted = "pool-deleted",
        Claimed = "claimed",
        Updated = "updated",
        Adopted = "adopted",
        Released = "released",
        Expired = "expired",
        Moved = "moved",
        Reserved = "reserved",
        Unreserved = "unreserved",
        Waiting = "waiting",
        Abandoned = "abandoned",
        Trimmed = "trimmed",
        Restored = "restored",
        Resumed = "resumed",
        GivenBack = "given-back",
    }
    /// Order of a list of past events.
    ListOrder {
        Newest = "newest",
        Oldest = "oldest",
    }
    /// Whether an answer from memory will do.
    Stale {
        Ok = "ok",
    }
}

impl Default for TokenRole {
    /// The role that may do least.
    fn default() -> Self {
        Self::Read
    }
}

/// Converts the enums of the model, variant by variant: a new one does not compile without its text here.
macro_rules! from_model {
    ($($from:ty => $to:ident { $($variant:ident),+ $(,)? })+) => {$(
        impl From<$from> for $to {
            fn from(value: $from) -> Self {
                match value {
                    $(<$from>::$variant => Self::$variant,)+
                }
            }
        }
    )+};
}

from_model! {
    model::Family => Family { Ipv4, Ipv6, Mac, Prefix }
    model::Order => PoolOrder { Lowest, Next, Random, FreedFirst }
    model::Origin => PoolOrigin { Api, File }
    model::RecordType => RecordType { A, Aaaa, Cname, Ptr, Srv, Txt, Mx, Caa, Ns, Https, Svcb }
    model::EventKind => EventKind {
        PoolCreated, PoolUpdated, PoolDeleted, Claimed, Updated, Adopted, Released, Expired, Moved, Reserved,
        Unreserved, Waiting, Abandoned, Trimmed, Restored, Resumed, GivenBack,
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Display;

    use super::*;

    fn agree<M: Copy + Display + Into<C>, C: Display + PartialEq<C>>(all: &[M], known: &[C]) {
        let texts: Vec<String> = all.iter().map(ToString::to_string).collect();
        let converted: Vec<String> = all.iter().map(|one| (*one).into().to_string()).collect();
        assert_eq!(converted, texts);
        assert_eq!(known.iter().map(ToString::to_string).collect::<Vec<_>>(), texts);
    }

    #[test]
    fn the_texts_are_those_of_the_model() {
        agree(&model::RecordType::ALL, RecordType::KNOWN);
        let events: Vec<&str> = model::EventKind::ALL.iter().map(|kind| kind.as_str()).collect();
        assert_eq!(EventKind::KNOWN.iter().map(EventKind::as_str).collect::<Vec<_>>(), events);
        let families = [model::Family::Ipv4, model::Family::Ipv6, model::Family::Mac, model::Family::Prefix];
        agree(&families, Family::KNOWN);
        let orders =
            [model::Order::Lowest, model::Order::Next, model::Order::Random, model::Order::FreedFirst];
        agree(&orders, PoolOrder::KNOWN);
    }

    #[test]
    fn a_value_of_a_newer_server_is_kept_shown_and_sent_back_as_it_came() {
        let read: ClaimState = serde_json::from_str("\"suspended\"").unwrap();
        assert_eq!(read, ClaimState::Unknown("suspended".into()));
        assert_eq!(format!("{read:>10}|"), " suspended|");
        assert_eq!(serde_json::to_string(&read).unwrap(), "\"suspended\"");
        let known: ReleaseOutcome = serde_json::from_str("\"already gone\"").unwrap();
        assert_eq!(known, ReleaseOutcome::AlreadyGone);
        assert_eq!(serde_json::to_string(&known).unwrap(), "\"already gone\"");
        let wrong = serde_json::from_str::<ClaimState>("7").unwrap_err().to_string();
        assert_eq!(wrong, "invalid type: integer `7`, expected a string at line 1 column 1");
    }
}
