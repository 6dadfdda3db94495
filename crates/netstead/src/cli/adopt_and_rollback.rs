//! `netstead adopt`, `recover`, `clean` and `rollback`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use netstead_model::{Ident, Name, ObjectKey, RecordType, Scope};
use netstead_plan::{OwnerId, marks::Tool};

use super::claim::Held;

/// Take over records that another tool or a person made
///
/// By name: everything that stands there is Netstead's from then on. What is asked for takes its place, and what nothing
/// asks for stays as it is. From another tool: the records its marks cover; the marks go. What belongs to another
/// installation of Netstead is left. On an IPAM system: an object of others becomes ours, and our values are written into it;
/// or our values are written again over fields that others changed. In a pool: an address that a source sees becomes a claim.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").args(["name", "from", "object", "address", "observed"]).required(true))]
#[command(after_help = "\
Examples:
  netstead adopt www.home.test                          a name that `netstead plan` shows as blocked
  netstead adopt www.home.test A --provider ns1
  netstead adopt --from dnsweaver --dry-run             see what would be taken over
  netstead adopt --from external-dns --id my-cluster --txt-prefix own-
  netstead adopt --object address:docker:10.0.3.7@web-1           an object of an IPAM system that is in the way of ours
  netstead adopt --object machine:docker:@web-1 --keep            leave what others wrote into it
  netstead adopt --address 10.0.3.9                     an address that `netstead get drift` shows as unknown
  netstead adopt --observed --pool lan --dry-run        all of them in this pool

To take over every record that is equal to what is asked for, set `adopt = true` in the provider's table.")]
pub(crate) struct Adopt {
    /// The full name
    pub(crate) name: Option<Name>,
    /// Only records of this type
    #[arg(value_name = "TYPE", requires = "name")]
    pub(crate) kind: Option<RecordType>,
    /// Take over what this tool marked: dnsweaver or external-dns
    #[arg(long, value_name = "TOOL")]
    pub(crate) from: Option<Tool>,
    /// Only marks of this instance of dnsweaver, or owner of external-dns
    #[arg(long, value_name = "ID", requires = "from")]
    pub(crate) id: Option<String>,
    /// The --txt-prefix of external-dns
    #[arg(long, value_name = "TEXT", requires = "from")]
    pub(crate) txt_prefix: Option<String>,
    /// The --txt-suffix of external-dns
    #[arg(long, value_name = "TEXT", requires = "from")]
    pub(crate) txt_suffix: Option<String>,
    /// The --txt-wildcard-replacement of external-dns
    #[arg(long, value_name = "TEXT", requires = "from")]
    pub(crate) txt_wildcard: Option<String>,
    /// A file with what external-dns has as --txt-encrypt-aes-key, if its marks are encrypted
    #[arg(long, value_name = "FILE", requires = "from")]
    pub(crate) txt_key_file: Option<PathBuf>,
    /// An object of an IPAM system, by the key that `netstead plan` and `netstead get drift` show
    #[arg(long, value_name = "KEY")]
    pub(crate) object: Option<ObjectKey>,
    /// Claim this address, which a source sees and no claim has
    #[arg(long, value_name = "ADDRESS", conflicts_with = "provider")]
    pub(crate) address: Option<Held>,
    /// Claim every address of pools that a source sees and no claim has
    #[arg(long, conflicts_with = "provider")]
    pub(crate) observed: bool,
    /// Only in this pool
    #[arg(long, value_name = "POOL", conflicts_with_all = ["name", "from", "object"])]
    pub(crate) pool: Option<Ident>,
    /// Leave the values that others wrote into the object, and report them as drift no longer
    #[arg(long, requires = "object")]
    pub(crate) keep: bool,
    /// Only on this provider
    #[arg(long, value_name = "PROVIDER")]
    pub(crate) provider: Option<Ident>,
    /// Only what is marked in this zone
    #[arg(long, value_name = "ZONE", requires = "from")]
    pub(crate) zone: Option<Name>,
    /// Show what would be taken over, and what would change then
    #[arg(long = "dry-run")]
    pub(crate) dry: bool,
}

/// Keep a value that others wrote, and stop reporting it as drift
///
/// Only the values that are at the name now are ignored. They stay on the server. A value that appears later is reported, and so is
/// one that was removed and comes back. `netstead get drift --ignored` lists what is ignored, and why.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("how").args(["reason", "end"]).required(true))]
#[command(after_help = "\
Examples:
  netstead ignore www.home.test --reason 'the printer registers itself'
  netstead ignore www.home.test A --provider ns1 --reason migration
  netstead ignore www.home.test --end                   report it again")]
pub(crate) struct Ignore {
    /// The full name, as `netstead get drift` shows it
    pub(crate) name: Name,
    /// Only values of this type
    #[arg(value_name = "TYPE")]
    pub(crate) kind: Option<RecordType>,
    /// Why, for those who look at it later
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Report it again
    #[arg(long)]
    pub(crate) end: bool,
    /// Only on this provider
    #[arg(long, value_name = "PROVIDER")]
    pub(crate) provider: Option<Ident>,
}

/// Take over what a lost store had, from the marks on the DNS servers
///
/// Every installation marks what it writes with its owner id. After the store was lost, a new one draws a new id and
/// touches nothing that carries the old. With this it takes the old id as its own, and what is marked with it; the first
/// plan after that waits for `netstead apply HASH`. Never do it while the other installation still runs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  netstead recover --owner 3f9a0c51 --dry-run
  netstead recover --owner 3f9a0c51
  netstead recover --owner 3f9a0c51 --provider ns1

The old id is part of every mark: `_netstead-3f9a0c51.www.home.test`, and `netstead plan` names it.")]
pub(crate) struct Recover {
    /// The owner id that the marks carry
    #[arg(long, value_name = "ID")]
    pub(crate) owner: OwnerId,
    /// Only on this provider
    #[arg(long, value_name = "PROVIDER")]
    pub(crate) provider: Option<Ident>,
    /// Show what would be taken over
    #[arg(long = "dry-run")]
    pub(crate) dry: bool,
}

/// Remove the records of a source that is gone, or everything from providers
///
/// What is to go is shown first. The providers it touches are paused, so that nothing comes back by itself; look, then
/// `netstead resume --provider NAME`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").args(["source", "provider", "all"]).required(true))]
#[command(after_help = "\
Examples:
  netstead clean --source office --dry-run
  netstead clean --source office              after it was taken out of the configuration
  netstead clean --source k8s --scope pods    one part of it, which is gone or cannot be seen any more
  netstead clean --provider ns1 --yes         before it is taken out of the configuration
  netstead clean --provider ns1 --forget      after that: its records stay, as those of another owner
  netstead clean --all --dry-run              everything of ours, on every DNS server and IPAM system

When no server answers, the store is opened with the configuration file, and nothing else is written meanwhile.")]
pub(crate) struct Clean {
    /// Remove the names of this source; it must no longer be configured
    #[arg(long, value_name = "SOURCE")]
    pub(crate) source: Option<Ident>,
    /// Only what this scope of the source brought, retired or failed; `netstead get sources` lists scopes
    #[arg(long, value_name = "SCOPE", requires = "source")]
    pub(crate) scope: Option<Scope>,
    /// Everything of ours on this provider
    #[arg(long, value_name = "PROVIDER")]
    pub(crate) provider: Option<Ident>,
    /// Everything of ours on every provider
    #[arg(long)]
    pub(crate) all: bool,
    /// Leave the records and forget that they are ours, on a provider that is no longer configured
    #[arg(long, requires = "provider")]
    pub(crate) forget: bool,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// Bring a provider back to what one of its last generations had
///
/// What was written since then is taken back, as a new generation; what was never Netstead's is left. What is to change
/// is shown first. The provider is paused until `netstead resume --provider NAME`; after that, what was brought back gives
/// way only with `netstead apply HASH`. At least the last ten generations are kept, and up to a thousand while they are
/// small; `netstead get changes -o wide` shows what each of them did.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  netstead rollback --to 41 --provider ns1 --dry-run
  netstead rollback --to 41 --provider ns1
  netstead rollback --to 41 --yes")]
pub(crate) struct Rollback {
    /// The generation to go back to
    #[arg(long, value_name = "GENERATION")]
    pub(crate) to: u64,
    /// Of this provider [default: the only one that has a past]
    #[arg(long, value_name = "PROVIDER")]
    pub(crate) provider: Option<Ident>,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// Whether to go on once it is seen what is to be done.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Consent {
    /// Do it without asking
    #[arg(long, conflicts_with = "dry")]
    pub(crate) yes: bool,
    /// Only show what would be done
    #[arg(long = "dry-run")]
    pub(crate) dry: bool,
}
