//! `netstead cluster`.

use clap::{Args, Subcommand};

/// See and tend the nodes that serve one store
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  netstead cluster status
  netstead cluster remove 1f0c22ab93d4")]
pub(crate) enum Cluster {
    /// Show the nodes, and which of them leads
    #[command(after_help = "\
Examples:
  netstead cluster status
  netstead cluster status -o json")]
    Status,
    /// Forget a node that is gone for good
    ///
    /// The store's format is that of the oldest member, so one that never comes back keeps it from being raised. A node
    /// that still runs tells of itself again within a minute.
    #[command(after_help = "\
Examples:
  netstead cluster remove 1f0c22ab93d4
  netstead cluster remove ns3")]
    Remove(Remove),
}

#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// Its id, or its name if only one has it
    pub(crate) node: String,
}
