//! `netstead get …`, `history` and `explain`.

mod dns_filters;
mod period;

use std::str::FromStr;

use clap::{Args, Subcommand};
use netstead_client::types::{AddressState, EventKind};
use netstead_model::{Ident, Key, Name, Range, Selector};

pub(crate) use self::{
    dns_filters::{Changes, OfProvider, Records, Workloads},
    period::{Moment, Period},
};

/// List pools, claims, addresses, records and everything else
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  netstead get pools
  netstead get claims --pool lan -o wide
  netstead get addresses --within 10.0.3.0/24 --state resting
  netstead get records --state pending
  netstead get events --limit 20 --watch
  netstead get claims -o json | jq -r '.[].address'")]
pub(crate) struct Get {
    #[command(subcommand)]
    pub(crate) what: What,
    /// Go on with what changes
    #[arg(long, short, global = true)]
    pub(crate) watch: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum What {
    /// Pools of addresses, and how full they are
    #[command(
        visible_alias = "pool",
        after_help = "\
Examples:
  netstead get pools
  netstead get pool lan
  netstead get pool lan --usage          how full it was, day by day
  netstead get pools --selector site=ams -o json"
    )]
    Pools(Pools),
    /// Claims: who holds which address
    #[command(
        visible_alias = "claim",
        after_help = "\
Examples:
  netstead get claims
  netstead get claim lan/web-1
  netstead get claims --pool lan --owner team-b -o csv"
    )]
    Claims(Claims),
    /// Every address that is not simply free
    #[command(
        visible_alias = "address",
        after_help = "\
Examples:
  netstead get addresses --pool lan
  netstead get addresses --state observed"
    )]
    Addresses(Addresses),
    /// Events: what happened to addresses
    #[command(
        visible_alias = "event",
        after_help = "\
Examples:
  netstead get events --since 1h
  netstead get events --what released --pool lan
  netstead get events --watch -o json"
    )]
    Events(Events),
    /// Reservations
    #[command(
        visible_alias = "reservation",
        after_help = "\
Example:
  netstead get reservations --pool lan"
    )]
    Reservations(OfPool),
    /// Records at each name, on each DNS server
    #[command(
        visible_alias = "record",
        after_help = "\
Examples:
  netstead get records
  netstead get records --name web-1.home.test
  netstead get records --provider ns1 --state blocked -o wide"
    )]
    Records(Records),
    /// Changes at names, their outcomes, and what was noticed
    #[command(
        visible_alias = "change",
        after_help = "\
Examples:
  netstead get changes --name web-1.home.test
  netstead get changes --provider ns1 --since 1h -o wide
  netstead get changes --what rejected
  netstead get changes --watch"
    )]
    Changes(Changes),
    /// The zones of the DNS servers
    #[command(
        visible_alias = "zone",
        after_help = "\
Example:
  netstead get zones"
    )]
    Zones(OfProvider),
    /// Where names come from
    #[command(
        visible_alias = "source",
        after_help = "\
Examples:
  netstead get sources
  netstead get source docker -o yaml"
    )]
    Sources(OneOf),
    /// The DNS servers that are kept in line
    #[command(
        visible_alias = "provider",
        after_help = "\
Examples:
  netstead get providers -o wide
  netstead get provider ns1 -o yaml"
    )]
    Providers(OneOf),
    /// The newest plan of each provider, in one line
    #[command(
        visible_alias = "plan",
        after_help = "\
Example:
  netstead get plans"
    )]
    Plans,
    /// Workloads: what runs, and the names it asks for
    #[command(
        visible_alias = "workload",
        after_help = "\
Example:
  netstead get workloads --source ledger
  netstead get workloads --problems    what has no name, and why"
    )]
    Workloads(Workloads),
    /// Differences that Netstead did not make: on a DNS server, at the backend of a pool, or between claims and what is seen
    #[command(after_help = "\
Examples:
  netstead get drift
  netstead get drift --addresses    claims and addresses that are seen: unknown, reclaimable, mismatch
  netstead get drift --backends     pools that draw from other systems")]
    Drift(DriftOf),
    /// Tokens: who may do what
    #[command(
        hide = true,
        alias = "token",
        after_help = "\
Example:
  netstead token list"
    )]
    Tokens,
}

/// Drift of DNS servers and addresses, or of the backends of pools.
#[derive(Debug, Default, Args)]
pub(crate) struct DriftOf {
    #[command(flatten)]
    pub(crate) provider: OfProvider,
    /// How the backends of pools differ from the claims that draw from them
    #[arg(long, conflicts_with = "provider")]
    pub(crate) backends: bool,
    /// Only how claims differ from the addresses that sources see
    #[arg(long, conflicts_with_all = ["provider", "backends"])]
    pub(crate) addresses: bool,
    /// Drift that `netstead ignore` leaves out, and why
    #[arg(long, conflicts_with_all = ["provider", "backends", "addresses"])]
    pub(crate) ignored: bool,
}

/// A list, or one of its things.
#[derive(Debug, Default, Args)]
pub(crate) struct OneOf {
    /// Only the one of this name
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
}

/// A list of which each thing is of one pool.
#[derive(Debug, Default, Args)]
pub(crate) struct OfPool {
    /// Only those of this pool
    #[arg(long)]
    pub(crate) pool: Option<Ident>,
}

/// A list of which each thing is of one VRF.
#[derive(Debug, Default, Args)]
pub(crate) struct OfVrf {
    /// Only those of this VRF
    #[arg(long)]
    pub(crate) vrf: Option<Ident>,
}

/// A list of which each thing is of one key.
#[derive(Debug, Default, Args)]
pub(crate) struct OfKey {
    /// Only those of this key
    #[arg(long)]
    pub(crate) key: Option<Key>,
}

/// A list of things with labels.
#[derive(Debug, Default, Args)]
pub(crate) struct Labelled {
    /// Only those whose labels match
    #[arg(long, value_name = "LABELS")]
    pub(crate) selector: Option<Selector>,
}

#[derive(Debug, Default, Args)]
pub(crate) struct Pools {
    /// Only this pool
    #[arg(value_name = "NAME", conflicts_with_all = ["selector", "vrf"])]
    pub(crate) name: Option<Ident>,
    /// How full it was on each day, and when it will be full
    #[arg(long, requires = "name")]
    pub(crate) usage: bool,
    #[command(flatten)]
    pub(crate) labelled: Labelled,
    #[command(flatten)]
    pub(crate) of_vrf: OfVrf,
}

#[derive(Debug, Default, Args)]
pub(crate) struct Claims {
    /// Only this claim; without a pool, those of this key in any
    #[arg(value_name = "POOL/KEY|KEY", conflicts_with_all = ["key", "pool"])]
    pub(crate) name: Option<Key>,
    #[command(flatten)]
    pub(crate) of_pool: OfPool,
    /// Only those of this owner
    #[arg(long)]
    pub(crate) owner: Option<String>,
    #[command(flatten)]
    pub(crate) of_key: OfKey,
    #[command(flatten)]
    pub(crate) labelled: Labelled,
    #[command(flatten)]
    pub(crate) of_vrf: OfVrf,
}

#[derive(Debug, Default, Args)]
pub(crate) struct Addresses {
    #[command(flatten)]
    pub(crate) of_pool: OfPool,
    #[command(flatten)]
    pub(crate) of_vrf: OfVrf,
    /// Only those in this state: held, resting, reserved, observed, …
    #[arg(long)]
    pub(crate) state: Option<AddressState>,
    /// Only those in this range
    #[arg(long, value_name = "RANGE")]
    pub(crate) within: Option<Range>,
}

#[derive(Debug, Default, Args)]
pub(crate) struct Events {
    /// Only those of this address
    #[arg(long)]
    pub(crate) address: Option<super::claim::Held>,
    #[command(flatten)]
    pub(crate) of_key: OfKey,
    #[command(flatten)]
    pub(crate) of_pool: OfPool,
    /// Only this kind: claimed, released, expired, moved, pool-created, …
    #[arg(long)]
    pub(crate) what: Option<EventKind>,
    #[command(flatten)]
    pub(crate) newest: Newest,
}

/// The newest of a list of what happened.
#[derive(Debug, Default, Args)]
pub(crate) struct Newest {
    #[command(flatten)]
    pub(crate) period: Period,
    /// At most this many, the newest; 0 for all
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: usize,
}

/// Show who had an address, or what a key held, and when
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  netstead history 10.0.3.50
  netstead history web-1 --since 7d
  netstead history 10.0.3.50 --since 2026-11-01 --until 2026-11-02T12:00:00Z")]
pub(crate) struct History {
    /// An address, a prefix, or a key
    #[arg(value_name = "ADDRESS|KEY")]
    pub(crate) of: String,
    /// It is a key, though it looks like an address
    #[arg(long)]
    pub(crate) key: bool,
    /// Only in this pool
    #[arg(long)]
    pub(crate) pool: Option<Ident>,
    #[command(flatten)]
    pub(crate) period: Period,
    /// At most this many, the newest; 0 for all
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) limit: usize,
}

/// Show everything about one thing, with what happened to it last
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  netstead describe pool lan
  netstead describe claim lan/web-1
  netstead describe provider ns1
  netstead describe workload docker/web
  netstead describe 10.0.3.50             an address or a name, as `explain` shows it")]
pub(crate) struct Describe {
    /// pool, claim, provider, source or workload; or an address or a name
    #[arg(value_name = "KIND|NAME")]
    pub(crate) first: String,
    /// Its name, as `netstead get KIND` shows it
    #[arg(value_name = "NAME")]
    pub(crate) second: Option<String>,
}

/// Say everything that is known about a name or an address, and why it is so
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  netstead explain web-1.home.test
  netstead explain 10.0.3.50
  netstead explain fd00:2:0:1::/64")]
pub(crate) struct Explain {
    /// A name, an address or a prefix
    #[arg(value_name = "NAME|ADDRESS")]
    pub(crate) of: Subject,
}

/// A thing that can be explained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    Address(super::claim::Held),
    Name(Name),
}

impl FromStr for Subject {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let address = text.parse().map(Self::Address);
        // What begins like an address is one, and its own error helps more.
        let looks_so = text.contains([':', '/']) || text.chars().all(|c| c.is_ascii_digit() || c == '.');
        match (address, text.parse().map(Self::Name)) {
            (Ok(address), _) => Ok(address),
            (Err(error), _) if looks_so => Err(error.to_string()),
            (Err(_), Ok(name)) => Ok(name),
            (Err(_), Err(error)) => Err(error.to_string()),
        }
    }
}
