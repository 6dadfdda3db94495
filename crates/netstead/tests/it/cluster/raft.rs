//! Three servers that keep their store together, with nothing else running.

mod certificates;
mod disks;
mod failover;
mod majority;
mod members;
mod migration;
mod nodes;

pub(super) use nodes::Nodes;
