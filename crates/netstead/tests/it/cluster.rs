//! Three servers on one etcd: any of them serves, one leads, and clients hardly notice when it fails.

mod branch_office;
mod etcd_down;
mod failover;
#[cfg(feature = "kubernetes")]
mod kubernetes;
mod late_writes;
mod nodes;
pub(crate) mod raft;
mod serving;
mod standby;
mod tls;
mod upgrade;
mod upgrade_scopes;
