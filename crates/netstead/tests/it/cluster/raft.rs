//! Three servers that keep their store together, with nothing else running.

mod certificates;
mod disks;
mod failover;
mod guide;
mod majority;
mod members;
mod migration;
mod nodes;

pub(crate) use nodes::Nodes;
