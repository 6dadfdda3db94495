//! Three servers on one etcd: any of them serves, one leads, and what happens to it is noticed by nobody for long.

mod branch_office;
mod etcd_down;
mod failover;
mod late_writes;
mod nodes;
mod raft;
mod serving;
mod standby;
mod tls;
mod upgrade;
mod upgrade_scopes;
