//! `netstead claim` and what is done with claims.

use std::{path::PathBuf, str::FromStr};

use clap::Args;
use netstead_model::{Address, Cidr, ClaimId, Ident, Key, Labels, Name, Range, Selector, Span};

/// Claim an address; asking again gives the same one
///
/// Prints the address, and nothing else, on stdout. Exit code 2 says that it waits for one.
#[derive(Debug, Args)]
#[command(override_usage = "netstead claim [OPTIONS] <POOL[,POOL...]> <KEY>
       netstead claim [OPTIONS] --any <POOL,POOL...> <KEY>
       netstead claim [OPTIONS] --select <LABELS> <KEY>
       netstead claim [OPTIONS] --file <FILE>")]
#[command(after_help = "\
Examples:
  netstead claim lan web-1                        any free address
  netstead claim lan db --address 10.0.3.60       this one or none
  netstead claim lan,lan6,macs web-1              one from each pool: all or none
  netstead claim --any lan,lan2 web-1             from the first pool with room
  netstead claim --select site=ams web-1          from a pool with this label
  netstead claim lan ci-7 --ttl 1h --wait 30s     ends in an hour unless renewed; waits for room
  netstead claim sites ber --length 56            a /56 out of a prefix pool
  netstead claim --file hosts.csv                 many: `pool,key[,address]` per line, or JSON lines")]
pub(crate) struct Claim {
    /// The pool, or several: one address from each, all or none
    #[arg(value_name = "POOL[,POOL...]")]
    pub(crate) first: Option<String>,
    /// The key of the claim in its pool
    #[arg(value_name = "KEY")]
    pub(crate) second: Option<Key>,
    /// Claim from the first of these pools with room
    #[arg(long, value_name = "POOL,POOL...", value_delimiter = ',', conflicts_with = "select")]
    pub(crate) any: Vec<Ident>,
    /// Claim from a pool whose labels match: `site=ams,env!=dev`
    #[arg(long, value_name = "LABELS")]
    pub(crate) select: Option<Selector>,
    /// Claim everything in this file; `-` is stdin. Other options count for each line that does not say otherwise
    #[arg(long, value_name = "FILE", conflicts_with_all = ["any", "select", "address", "prefer", "wait"])]
    pub(crate) file: Option<PathBuf>,
    /// This address or none
    #[arg(long, value_name = "ADDRESS", conflicts_with = "prefer")]
    pub(crate) address: Option<Held>,
    /// This address if it can be had, else any
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) prefer: Option<Held>,
    /// Length of the prefix (prefix pools)
    #[arg(long, value_name = "BITS")]
    pub(crate) length: Option<u8>,
    /// End the claim after this long unless it is renewed; 0 for never
    #[arg(long, value_name = "TIME")]
    pub(crate) ttl: Option<Span>,
    /// A label; may be given more than once. On a repeat the given ones replace all
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
    /// A name for it; may be given more than once
    #[arg(long = "hostname", value_name = "NAME")]
    pub(crate) hostnames: Vec<Name>,
    /// A description
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// Claim for another owner
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: Option<String>,
    /// Take over another owner's claim of this key, or an address that was seen in use
    #[arg(long)]
    pub(crate) adopt: bool,
    /// Take an address that still rests; with role `write`, also one that is reserved
    #[arg(long)]
    pub(crate) force: bool,
    /// Wait this long when there is no address
    #[arg(long, value_name = "TIME")]
    pub(crate) wait: Option<Span>,
    /// Stay in the queue after that
    #[arg(long, requires = "wait")]
    pub(crate) keep: bool,
}

/// End a claim; its address rests for a while before another key gets it
///
/// What is gone already is no error.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  netstead release lan web-1
  netstead release lan,lan6,macs web-1
  netstead release lan web-1 --id 1f0c22ab-17     only this claim, not a later one of the same key")]
pub(crate) struct Release {
    /// The pool, or several: all claims end, or none
    #[arg(value_name = "POOL[,POOL...]", value_delimiter = ',', required = true)]
    pub(crate) pools: Vec<Ident>,
    pub(crate) key: Key,
    /// Only the claim with this id
    #[arg(long)]
    pub(crate) id: Option<ClaimId>,
}

/// Give a claim its full time again
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  netstead renew lan ci-7
  netstead renew lan ci-7 --ttl 2h     and from now on two hours
  netstead renew lan ci-7 --ttl 0      it no longer ends by itself")]
pub(crate) struct Renew {
    pub(crate) pool: Ident,
    pub(crate) key: Key,
    /// Only the claim with this id
    #[arg(long)]
    pub(crate) id: Option<ClaimId>,
    /// A new time to live
    #[arg(long, value_name = "TIME")]
    pub(crate) ttl: Option<Span>,
}

/// Hand a claim's address to another key
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  netstead move lan web-1 web-2
  netstead move lan web-1 web-2 --owner team-b")]
pub(crate) struct Move {
    pub(crate) pool: Ident,
    /// The key that holds it
    #[arg(value_name = "KEY")]
    pub(crate) key: Key,
    /// The key that gets it
    #[arg(value_name = "NEW_KEY")]
    pub(crate) to: Key,
    /// Only the claim with this id
    #[arg(long)]
    pub(crate) id: Option<ClaimId>,
    /// And to this owner
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: Option<String>,
}

/// Set a part of a pool aside: nothing is handed out from it unless asked for by address
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  netstead reserve lan printers 10.0.3.100-10.0.3.120
  netstead claim lan printer-1 --address 10.0.3.101     only its owner gets one
  netstead unreserve lan printers")]
pub(crate) struct Reserve {
    pub(crate) pool: Ident,
    /// The key of the reservation in its pool
    pub(crate) key: Key,
    pub(crate) range: Range,
    /// A description
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
}

/// End a reservation
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  netstead unreserve lan printers")]
pub(crate) struct Unreserve {
    pub(crate) pool: Ident,
    pub(crate) key: Key,
}

/// An address or a prefix, checked and as the server will read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held(pub(crate) String);

impl FromStr for Held {
    type Err = netstead_model::ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.contains('/') {
            return text.parse::<Cidr>().map(|prefix| Self(prefix.to_string()));
        }
        text.parse::<Address>().map(|address| Self(address.to_string()))
    }
}

/// `name=value`, checked.
pub(crate) fn label(text: &str) -> Result<(String, String), String> {
    let (name, value) =
        text.split_once('=').ok_or_else(|| format!("`{text}` has no `=`: write `site=ams`"))?;
    let pair = (name.to_owned(), value.to_owned());
    Labels::new([pair.clone()]).map_err(|error| error.to_string())?;
    Ok(pair)
}
