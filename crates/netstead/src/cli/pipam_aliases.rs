//! Commands that users of pipam know. Each asks the server; when none answers, it works from the configuration file.

use clap::Args;

/// Show everything that runs, with its facts, interfaces and names, as the sources see it
///
/// The running server is asked. When none answers, the sources of the configuration file are looked at once; nothing is
/// stored or written then.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  netstead output
  netstead output --json
  netstead output --config netstead.toml -o yaml")]
pub(crate) struct Output {
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Bring DNS servers and IPAM systems in line now: `netstead apply`, or `netstead run --once` when no server answers
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  netstead reconcile
  netstead reconcile --config netstead.toml")]
pub(crate) struct Reconcile {}

/// Say by the exit code how things are: `netstead status --check`
///
/// When no server answers, each source, DNS server and IPAM system of the configuration file is asked once instead.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  netstead health
  netstead health --config netstead.toml -o json

Exit code 0 if all is well, 1 if something is wrong, 3 if the ledger is paused or a guard holds changes back.")]
pub(crate) struct Health {}
