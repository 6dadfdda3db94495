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
    /// Let a node into the cluster that waits for it, with `type = "raft"`
    ///
    /// A node that was started with `--join` asks for itself; this is for one that waits for `peers` that never came.
    #[command(after_help = "\
Examples:
  netstead cluster add 10.0.0.4:5302
  netstead cluster add node4")]
    Add(Add),
    /// Forget a node that is gone for good
    ///
    /// With `type = "raft"` it is removed from the nodes that keep the store together, and can come back as a new one only.
    /// The store's format is that of the oldest member, so one that never comes back keeps it from being raised. A node
    /// that still runs tells of itself again within a minute.
    #[command(after_help = "\
Examples:
  netstead cluster remove 1f0c22ab93d4
  netstead cluster remove ns3")]
    Remove(Remove),
}

#[derive(Debug, Args)]
pub(crate) struct Add {
    /// Where it waits
    #[arg(value_name = "HOST[:PORT]")]
    pub(crate) address: String,
}

#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// Its id, or its name or address if only one has it
    pub(crate) node: String,
}
