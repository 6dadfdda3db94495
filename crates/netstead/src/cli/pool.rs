//! `netstead pool …`

use std::{num::NonZeroU32, str::FromStr};

use clap::{Args, Subcommand};
use netstead_model::{Address, Cidr, Ident, Name, Order, Range, Span};

/// Make, change and delete pools: what there is to hand out
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  netstead pool create lan --range 10.0.3.50-10.0.3.200 --gateway 10.0.3.1
  netstead pool update lan --cooldown 1h
  netstead pool delete lan
  netstead get pools")]
pub(crate) enum Pool {
    Create(Create),
    Update(Update),
    Delete(Delete),
    Restore(Restore),
    GiveBack(GiveBack),
}

/// Make a pool; one that is there with the same settings is fine
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  netstead pool create lan --range 10.0.3.50-10.0.3.200 --gateway 10.0.3.1 --domain home.test
  netstead pool create dmz --network 10.0.4.0/24 --exclude 10.0.4.1-10.0.4.20
  netstead pool create macs --range 52:54:00:00:00:00-52:54:00:ff:ff:ff
  netstead pool create v6 --range fd00:1::/64
  netstead pool create sites --prefix fd00:2::/48 --length 64
  netstead pool create lan --backend office --backend-pool branch-7")]
pub(crate) struct Create {
    /// The name of the pool: lower case letters, digits, `.`, `_` and `-`
    pub(crate) name: Ident,
    #[command(flatten)]
    pub(crate) extent: Extent,
    /// The VRF it lies in; pools of one VRF never overlap [default: default]
    #[arg(long)]
    pub(crate) vrf: Option<Ident>,
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// Draw the addresses from this backend of the server's configuration
    #[arg(long, value_name = "NAME", requires = "backend_pool")]
    pub(crate) backend: Option<Ident>,
    /// The pool as the backend calls it
    #[arg(long, value_name = "POOL", requires = "backend")]
    pub(crate) backend_pool: Option<String>,
}

/// Change only what is given
///
/// An empty value takes a setting away: `--gateway ''`. What may be given more than once replaces all that was there, save
/// labels.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  netstead pool update lan --cooldown 1h --order next
  netstead pool update lan --range 10.0.3.50-10.0.3.240     the new range replaces the old
  netstead pool update lan --label site=ams --label env=    sets one label and removes another
  netstead pool update lan --gateway= --exclude=            has no gateway and excludes nothing any more")]
pub(crate) struct Update {
    pub(crate) name: Ident,
    #[command(flatten)]
    pub(crate) extent: Extent,
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// Give a released address back to its key while it rests
    #[arg(long, conflicts_with = "no_sticky")]
    pub(crate) sticky: bool,
    /// No longer hand out network and broadcast addresses
    #[arg(long, conflicts_with = "use_reserved")]
    pub(crate) no_use_reserved: bool,
}

/// Delete a pool; one with claims only with a reason
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  netstead pool delete lan
  netstead pool delete lan --force \"the building is gone\"     releases its claims
  netstead pool delete lan --abandon \"the office burned down\"  forgets what its backend holds")]
pub(crate) struct Delete {
    pub(crate) name: Ident,
    /// Release the claims in it too; the reason stands in their events
    #[arg(long, value_name = "REASON")]
    pub(crate) force: Option<String>,
    /// Forget a pool with a backend at once, with all that the backend holds for it
    #[arg(long, value_name = "REASON", conflicts_with = "force")]
    pub(crate) abandon: Option<String>,
}

/// Let the backend of a pool hold a claim's address again, after it lost it
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  netstead pool restore lan web-1     see `netstead get drift --backends`")]
pub(crate) struct Restore {
    pub(crate) pool: Ident,
    pub(crate) key: netstead_model::Key,
}

/// Give an address back to a backend that could not be used
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  netstead pool give-back 17     the number of `netstead get drift --backends -o wide`")]
pub(crate) struct GiveBack {
    /// The number of the stray object
    pub(crate) stray: u64,
}

/// Which addresses a pool has.
#[derive(Debug, Args)]
pub(crate) struct Extent {
    /// Addresses to hand out: `first-last`, a network, or one address; may be given more than once
    #[arg(long = "range", value_name = "RANGE")]
    pub(crate) ranges: Vec<Given<Range>>,
    /// The network they lie in; all of it is handed out unless ranges are given
    #[arg(long, value_name = "CIDR")]
    pub(crate) network: Option<Cidr>,
    /// Never hand out these; may be given more than once
    #[arg(long, value_name = "RANGE")]
    pub(crate) exclude: Vec<Given<Range>>,
    /// The gateway, which is never handed out
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) gateway: Option<Given<Address>>,
    /// Hand out prefixes out of this one instead of addresses
    #[arg(long, value_name = "CIDR", conflicts_with_all = ["network", "ranges"])]
    pub(crate) prefix: Option<Cidr>,
    /// Length of a prefix when the claim names none (prefix pools)
    #[arg(long, value_name = "BITS")]
    pub(crate) length: Option<Given<u8>>,
    /// Hand out network and broadcast addresses too
    #[arg(long)]
    pub(crate) use_reserved: bool,
}

/// By which rules a pool hands out.
#[derive(Debug, Args)]
pub(crate) struct Settings {
    /// The domain of the names its claims get
    #[arg(long, value_name = "NAME")]
    pub(crate) domain: Option<Given<Name>>,
    /// Which free address goes first: lowest, next, random or freed-first [default: lowest]
    #[arg(long, value_name = "ORDER")]
    pub(crate) order: Option<Order>,
    /// How long a released address rests [default: 10m]
    #[arg(long, value_name = "TIME")]
    pub(crate) cooldown: Option<Span>,
    /// How long it rests at least when nothing else is free [default: 1m]
    #[arg(long, value_name = "TIME")]
    pub(crate) cooldown_min: Option<Span>,
    /// Do not give a released address back to its key while it rests
    #[arg(long)]
    pub(crate) no_sticky: bool,
    /// The most addresses one owner may hold
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) max_per_owner: Option<Given<NonZeroU32>>,
    /// A label; may be given more than once
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = super::claim::label)]
    pub(crate) labels: Vec<(String, String)>,
    /// A description
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
}

/// A value, or none: an empty one takes away what was there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Given<T>(pub(crate) Option<T>);

fn at_least_one(text: &str) -> Result<Given<NonZeroU32>, &'static str> {
    text.parse().map_err(|_| "it is a number from 1 on, or empty for no limit")
}

impl<T: FromStr> FromStr for Given<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        if text.is_empty() { Ok(Self(None)) } else { text.parse().map(|value| Self(Some(value))) }
    }
}

impl Create {
    /// The first flag whose value is empty: there is nothing yet that it could take away, so it is a slip.
    pub(crate) fn empty_flag(&self) -> Option<&'static str> {
        let Self { extent, settings, .. } = self;
        let empty = [
            ("--range", extent.ranges.iter().any(|given| given.0.is_none())),
            ("--exclude", extent.exclude.iter().any(|given| given.0.is_none())),
            ("--gateway", is_empty(extent.gateway.as_ref())),
            ("--length", is_empty(extent.length.as_ref())),
            ("--domain", is_empty(settings.domain.as_ref())),
            ("--max-per-owner", is_empty(settings.max_per_owner.as_ref())),
        ];
        empty.iter().find(|(_, empty)| *empty).map(|(flag, _)| *flag)
    }
}

fn is_empty<T>(given: Option<&Given<T>>) -> bool {
    given.is_some_and(|given| given.0.is_none())
}
