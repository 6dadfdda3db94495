//! Three servers on one etcd: any of them serves, one leads, and what happens to it is noticed by nobody for long.

mod alone;
mod failover;
mod late;
mod nodes;
mod raft;
mod serving;
mod trust;
mod upgrade;
mod warm;
