//! Three servers that keep their store together, with nothing else running.

mod certificates;
mod failover;
mod majority;
mod members;
mod moving;
mod nodes;

pub(super) use nodes::Nodes;
