//! `netstead plan`, `apply`, `record`, `pause`, `resume` and `export`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use netstead_model::{Ident, Name, RecordType, Span};

/// Show what would change on the DNS servers
///
/// Nothing is changed by looking. What happens by itself happens within seconds; what a guard holds back waits for
/// `netstead apply HASH`. With --config the running server is asked what that file would change: it makes all checks,
/// and reads neither secrets nor files that the file names. That needs a token of role `write` without scopes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  netstead plan
  netstead plan ns1 -o json
  netstead plan ns1 --all > plan.txt
  netstead plan --config pr.toml
  netstead plan ns1 --save case.json
  netstead plan || echo \"something is not in line\"

Exit codes: 0 all is in line, 1 a server cannot be read, 2 changes are pending, 3 a guard holds
changes back.")]
pub(crate) struct Plan {
    /// Only of this provider
    #[arg(value_name = "PROVIDER")]
    pub(crate) provider: Option<Ident>,
    /// Write what the plan is made of to a new file, without secrets; `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Show every change that waits for a person, and every note; at a terminal that is so anyway, in `$PAGER` or `less`
    #[arg(long)]
    pub(crate) all: bool,
}

/// Bring the DNS servers in line now, or do what a guard held back
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  netstead apply                     look and act now, everywhere
  netstead apply --provider ns1      only there
  netstead apply 3f9a0c51d2e84b76    exactly the parked changes with this hash, once

Exit codes: 0 all is done or parked, 1 something failed, 3 a pause holds changes back.")]
pub(crate) struct Apply {
    /// The hash that `netstead plan` shows beside what is parked
    #[arg(value_name = "HASH", conflicts_with = "provider")]
    pub(crate) hash: Option<String>,
    /// Only this provider
    #[arg(long, value_name = "PROVIDER")]
    pub(crate) provider: Option<Ident>,
}

/// Set and delete records by hand
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  netstead record set www.home.test A 10.0.3.9
  netstead record delete www.home.test")]
pub(crate) enum Record {
    /// Set all values of one type at a name; those set before are replaced
    #[command(after_help = "\
Examples:
  netstead record set www.home.test A 10.0.3.9 10.0.3.10
  netstead record set home.test MX '10 mail.home.test.' --ttl 3600
  netstead record set _acme-challenge.home.test TXT 'a text'")]
    Set(RecordSet),
    /// Take away what was set by hand
    #[command(after_help = "\
Examples:
  netstead record delete www.home.test
  netstead record delete www.home.test A")]
    Delete(RecordDelete),
}

#[derive(Debug, Args)]
pub(crate) struct RecordSet {
    /// The full name
    pub(crate) name: Name,
    /// A, AAAA, CNAME, PTR, SRV, TXT, MX, CAA, NS, HTTPS or SVCB
    #[arg(value_name = "TYPE")]
    pub(crate) kind: RecordType,
    /// The values, as a zone file has them
    #[arg(value_name = "VALUE", required = true)]
    pub(crate) values: Vec<String>,
    /// Seconds that resolvers may keep it [default: the provider's]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) ttl: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct RecordDelete {
    /// The full name
    pub(crate) name: Name,
    /// Only this type
    #[arg(value_name = "TYPE")]
    pub(crate) kind: Option<RecordType>,
}

/// Stop writing to DNS servers; plans are still made
///
/// Without options nothing is written to any server. A token that is limited to pools, VRFs or zones can pause single
/// zones in which all names are its own.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  netstead pause --for 2h --reason \"moving the name servers\"
  netstead pause --provider ns1
  netstead pause --provider ns1 --zone home.test")]
pub(crate) struct Pause {
    #[command(flatten)]
    pub(crate) scope: Scope,
    /// End it by itself after this long
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) span: Option<Span>,
    /// Why, for those who find it paused
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

/// End a pause; without options all of them, and let a restored ledger hand out addresses again
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  netstead resume
  netstead resume --provider ns1

After a restore the ledger gives nothing out by itself: what was claimed after the backup is unknown to it.
Look at `netstead get claims`, claim by address what is in use, then resume.")]
pub(crate) struct Resume {
    #[command(flatten)]
    pub(crate) scope: Scope,
}

/// The scope of a command: everything, a provider, or one of its zones.
#[derive(Debug, Clone, Args)]
pub(crate) struct Scope {
    /// Only this provider
    #[arg(long, value_name = "PROVIDER")]
    pub(crate) provider: Option<Ident>,
    /// Only this zone of it
    #[arg(long, value_name = "ZONE", requires = "provider")]
    pub(crate) zone: Option<Name>,
    /// Only this pool backend: nothing is asked of it and nothing is given back to it
    #[arg(long, value_name = "BACKEND", conflicts_with = "provider")]
    pub(crate) backend: Option<Ident>,
}

/// Write the records Netstead keeps, for other programs
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  netstead export --zonefile > records.zone
  netstead export --zonefile --provider builtin --zone home.test")]
pub(crate) struct Export {
    /// As lines of a zone file
    #[arg(long, required = true)]
    pub(crate) zonefile: bool,
    /// Only those of this provider
    #[arg(long, value_name = "PROVIDER")]
    pub(crate) provider: Option<Ident>,
    /// Only those of this zone
    #[arg(long, value_name = "ZONE")]
    pub(crate) zone: Option<Name>,
}
