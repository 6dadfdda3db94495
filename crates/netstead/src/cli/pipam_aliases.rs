//! Commands that users of pipam know. `reconcile` is an alias of `apply`.

use clap::Args;

/// Show what runs, as the sources see it: `netstead get workloads`
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  netstead output --json")]
pub(crate) struct Output {
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Say by the exit code how things are: `netstead status --check`
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  netstead health")]
pub(crate) struct Health {}
