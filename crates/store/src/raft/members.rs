//! The nodes of a raft cluster as [`Membership`], the capability through which other crates see and change them.

use std::sync::PoisonError;

use async_trait::async_trait;
use tokio::sync::watch;

use super::{
    RaftStore,
    node::Leader,
    status::{MemberStatus, Role, Status},
};
use crate::{LeaderElsewhere, MemberId, MemberInfo, MemberList, Membership, StoreError};

impl From<Status> for MemberList {
    fn from(status: Status) -> Self {
        Self {
            me: MemberId(status.id),
            removed: status.role == Role::Removed,
            leader: status.leader.map(MemberId),
            members: status.members.into_iter().map(MemberInfo::from).collect(),
        }
    }
}

impl From<MemberStatus> for MemberInfo {
    fn from(one: MemberStatus) -> Self {
        Self {
            id: MemberId(one.id),
            name: one.member.name,
            address: one.member.address,
            version: one.member.version,
            voter: one.voter,
            lag: one.lag,
            last_contact_ms: one.last_contact_ms,
            replaced_by: one.other.map(MemberId),
        }
    }
}

#[async_trait]
impl Membership for RaftStore {
    fn id(&self) -> MemberId {
        MemberId(self.node.id)
    }

    fn own_members(&self) -> MemberList {
        self.own_status().into()
    }

    async fn members(&self) -> MemberList {
        self.status().await.into()
    }

    async fn joined(&self) {
        Self::joined(self).await;
    }

    async fn add(&self, address: &str) -> Result<(), StoreError> {
        Self::add(self, address).await
    }

    async fn remove(&self, id: MemberId) -> Result<(), StoreError> {
        Self::remove(self, id.0).await
    }

    fn silent_members(&self) -> Option<usize> {
        let leads = self.node.leader() == Leader::Me;
        leads.then(|| self.node.silent_members.lock().unwrap_or_else(PoisonError::into_inner).count())
    }

    fn leads_without_majority(&self) -> bool {
        self.node.leads_nobody()
    }

    fn knows_no_leader(&self) -> bool {
        self.node.leader() == Leader::Nobody && self.node.inquiry.found.borrow().is_none()
    }

    fn leader_elsewhere(&self) -> watch::Receiver<Option<LeaderElsewhere>> {
        self.node.inquiry.found.subscribe()
    }
}
