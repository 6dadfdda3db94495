//! Which node leads while this one cannot take part because its disk failed.
//!
//! Such a node has no core: it hears no heartbeat and applies nothing. Without asking it would hold itself for the leader, or
//! the last one that it knew, until its disk works again.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Mutex as AsyncMutex, watch},
    task::JoinSet,
};

use super::{
    node::Node,
    peers::Lane,
    status::{Role, Status},
    types::{Member, Metrics, NodeId},
    wire::{Answer, Question},
};
use crate::{EPOCH_KEY, LeaderElsewhere, MemberId, Snapshot as _, epoch};

/// How long another node may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Search for the leader among the other members while this node has no core.
#[derive(Debug, Default)]
pub(super) struct Inquiry {
    /// The other members, as the last core knew them.
    members: Mutex<Vec<(NodeId, Member)>>,
    pub(super) found: watch::Sender<Option<LeaderElsewhere>>,
    /// One round at a time.
    asking: AsyncMutex<()>,
}

impl Node {
    /// Keeps the members of a core that has stopped: the others are asked from now on.
    pub(super) fn remember_members(&self, metrics: &Metrics) {
        let nodes = metrics.membership_config.nodes().filter(|(id, _)| **id != self.id);
        let members = nodes.map(|(id, member)| (*id, member.clone())).collect();
        *self.inquiry.members.lock().unwrap_or_else(PoisonError::into_inner) = members;
    }

    /// Asks all other members which of them leads. A node that takes part needs no answer.
    pub(super) async fn find_leader_elsewhere(&self) {
        if self.core().is_some() {
            self.inquiry.found.send_if_modified(|found| found.take().is_some());
            return;
        }
        let Ok(_one_at_a_time) = self.inquiry.asking.try_lock() else { return };
        let members = self.inquiry.members.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut asked = JoinSet::new();
        for (id, member) in members {
            let peers = Arc::clone(&self.peers);
            asked.spawn(async move {
                match peers.ask(&member.address, Lane::Client, &Question::Status, PATIENCE).await {
                    Ok(Answer::Status(status)) if status.id == id => led_by(&status),
                    _ => None,
                }
            });
        }
        // Two may hold themselves for the leader for a moment: the one of the later term is.
        let Some((_, leader)) = asked.join_all().await.into_iter().flatten().max_by_key(|(term, _)| *term)
        else {
            return;
        };
        self.inquiry.found.send_if_modified(|found| found.replace(leader) != Some(leader));
    }

    /// Status that this node reports to other nodes, with the epoch of the ledger.
    pub(super) async fn status_for_others(&self) -> Status {
        let stored = match self.progress.own_view(&self.disk).await {
            Ok(view) => view.get(EPOCH_KEY).await.ok().flatten(),
            Err(_) => None,
        };
        let epoch = stored.and_then(|entry| epoch::read(&entry.value).ok());
        Status { epoch, ..self.status() }
    }
}

/// The term and the node, if the node that says this leads.
fn led_by(status: &Status) -> Option<(u64, LeaderElsewhere)> {
    let leads = status.role == Role::Leader && status.leader == Some(status.id);
    let leader = LeaderElsewhere { node: MemberId(status.id), epoch: status.epoch? };
    leads.then_some((status.term, leader))
}
