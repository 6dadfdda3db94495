//! Gauges of this node and its cluster.

use std::time::Duration;

use prometheus_client::{
    metrics::gauge::ConstGauge,
    registry::{Registry, Unit},
};

use crate::cluster::{Cluster, NodeRole};

/// The description of the route.
#[derive(Debug)]
pub(crate) struct Node {
    leads: bool,
    epoch: u64,
    members: usize,
    /// Members that do not answer; known on the leader of nodes that keep the store together.
    silent: Option<usize>,
    format: u32,
    /// How long ago the store last confirmed what this node knows.
    lag: Option<Duration>,
}

impl Node {
    pub(crate) fn of(cluster: &Cluster, lag: Option<Duration>) -> Self {
        let epoch = match cluster.role() {
            NodeRole::Leading { epoch } => epoch,
            NodeRole::Following => cluster.leader().map_or(0, |leader| leader.epoch),
        };
        let (leads, members) = (cluster.leads(), cluster.members().len());
        let silent = cluster.store().membership().and_then(netstead_store::Membership::silent_members);
        Self { leads, epoch, members, silent, format: cluster.format(), lag }
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        let gauge = |number: u64| ConstGauge::new(i64::try_from(number).unwrap_or(i64::MAX));
        registry.register("leader", "Whether this node leads", gauge(self.leads.into()));
        registry.register("epoch", "The epoch of the leader that this node knows of", gauge(self.epoch));
        let count = |number: usize| gauge(u64::try_from(number).unwrap_or(u64::MAX));
        registry.register("members", "Nodes that told of themselves", count(self.members));
        if let Some(silent) = self.silent {
            let help = "Nodes that keep the store together and have not answered the leader for 10 s";
            registry.register("members_silent", help, count(silent));
        }
        registry.register(
            "store_format",
            "The format in which the store is written",
            gauge(self.format.into()),
        );
        if let Some(lag) = self.lag {
            let help = "How long ago the store last confirmed what this node knows";
            registry.register_with_unit("lag", help, Unit::Seconds, ConstGauge::new(lag.as_secs_f64()));
        }
    }
}
