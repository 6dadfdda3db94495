//! The nodes that share one store: their registry, the current leader, and the format that all of them understand.
//!
//! Each node registers itself in the store and knows the others through the store's watch. This knowledge may be a moment old.
//! That can cost a detour and never a wrong answer: leadership is decided by the store's epoch, and a node that another one
//! wrongly takes for the leader says so (see `http::forward`).
//!
//! - `member_records`: the stored values: [`Leader`], [`Member`], the format.
//! - `cache`, `member_watch`: these values in memory, and the watch that updates them.
//! - `store_format`: raises the format. `prune`: removes members that no longer keep the store.
//! - `engine_slot`: the engine, while this node leads. `peers`: the HTTP client for other nodes.

mod cache;
mod engine_slot;
mod error;
mod member_records;
mod member_watch;
mod peers;
mod prune;
mod store_format;

use std::sync::Arc;

use netstead_model::Clock;
use netstead_store::{Commit, Condition, EPOCH_KEY, Membership, Snapshot, Store, StoreError};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::info;

use self::cache::ClusterCache;
pub use self::{
    engine_slot::EngineSlot,
    error::ClusterError,
    member_records::{FORMAT, FORMAT_KEY, FORMAT_OF_BACKENDS, LEADER_KEY, Leader, MEMBERS, Member, ROLL_KEY},
    peers::{PeerError, Peers},
};

/// How often a commit is tried.
const TRIES: u32 = 8;

/// The present role of this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeRole {
    /// It answers reads, and forwards the rest to the leader.
    Following,
    /// It does everything itself.
    Leading { epoch: u64 },
}

/// This node among the others. Cheap to clone; clones are the same node.
#[derive(Debug, Clone)]
pub struct Cluster {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    me: Arc<Member>,
    known: watch::Sender<ClusterCache>,
    role: watch::Sender<NodeRole>,
    _follower: Arc<DropGuard>,
}

/// Refuses a store whose format is above `highest`, the highest that the program understands.
pub async fn check_format(snapshot: &dyn Snapshot, highest: u32) -> Result<(), ClusterError> {
    let stored = snapshot.get(FORMAT_KEY.as_bytes()).await?;
    store_format::check(stored.as_ref().map(member_records::format_of).transpose()?, highest)
}

impl Cluster {
    /// The store that all nodes share.
    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Loads the registry. Refuses a store whose format is newer than `me` understands.
    pub async fn open(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        me: Member,
    ) -> Result<Self, ClusterError> {
        let known = watch::Sender::new(ClusterCache::default());
        let watches = member_watch::load(&*store, &known).await?;
        store_format::check(known.borrow().format, me.format)?;
        let stop = CancellationToken::new();
        tokio::spawn(member_watch::follow(Arc::clone(&store), known.clone(), watches, stop.clone()));
        let role = watch::Sender::new(NodeRole::Following);
        Ok(Self { store, clock, me: Arc::new(me), known, role, _follower: Arc::new(stop.drop_guard()) })
    }

    /// This node's own entry.
    pub fn me(&self) -> &Member {
        &self.me
    }

    pub fn role(&self) -> NodeRole {
        *self.role.borrow()
    }

    /// Whether this node leads. Of nodes that keep the store together, one that has lost its majority does not.
    pub fn leads(&self) -> bool {
        let alone = || self.store.membership().is_some_and(Membership::leads_without_majority);
        self.role() != NodeRole::Following && !alone()
    }

    pub fn role_changes(&self) -> watch::Receiver<NodeRole> {
        self.role.subscribe()
    }

    /// The leader, as far as this node knows.
    pub fn leader(&self) -> Option<Leader> {
        self.known.borrow().leader.clone()
    }

    /// All nodes that ever registered and were not removed, in order of id.
    pub fn members(&self) -> Vec<Member> {
        self.known.borrow().members.values().cloned().collect()
    }

    /// The format in which all of them write.
    pub fn format(&self) -> u32 {
        self.known.borrow().format.unwrap_or(self.me.format)
    }

    /// The member that understands the lowest format, if that is below `format`.
    pub fn older_than(&self, format: u32) -> Option<Member> {
        let known = self.known.borrow();
        known.members.values().filter(|member| member.format < format).min_by_key(|m| m.format).cloned()
    }

    /// Wakes whenever the registry changes.
    pub(crate) fn changes(&self) -> watch::Receiver<ClusterCache> {
        self.known.subscribe()
    }

    /// Registers this node, with the current time as `seen`. To be called regularly.
    pub async fn register(&self) -> Result<(), ClusterError> {
        let member = Member { seen: self.clock.wall(), ..(*self.me).clone() };
        let mut commit = Commit::new().put(member.key(), member.encode());
        let known = self.known.borrow().members.get(&member.id).cloned();
        if known.is_none_or(|known| !known.is_like(&member)) {
            // A new node, or one with another format: a leader that is raising the format must count again.
            commit = commit.put(ROLL_KEY, member_records::roll());
        }
        self.store.commit(commit).await?;
        // A leader that did not know of this node may have raised the format.
        self.check_format().await
    }

    /// Asks the store whether this program still understands its format. A node that took the lead before asking can rely on
    /// the answer, because only the leader raises the format.
    pub async fn check_format(&self) -> Result<(), ClusterError> {
        let stored = self.store.get(FORMAT_KEY.as_bytes()).await?;
        let stored = stored.as_ref().map(member_records::format_of).transpose()?;
        self.known.send_if_modified(|known| known.raise_format(stored));
        store_format::check(stored, self.me.format)
    }

    /// Waits until the store is written in a format that this program does not understand, and says so.
    pub async fn wait_for_newer_format(&self) -> ClusterError {
        let mut changes = self.changes();
        loop {
            let known = changes.borrow_and_update().format;
            if let Err(error) = store_format::check(known, self.me.format) {
                return error;
            }
            // It cannot fail: this node holds the other end.
            let _ = changes.changed().await;
        }
    }

    /// Publishes this node as the leader. Refuses if its program is too old for the store.
    pub async fn lead(&self, epoch: u64) -> Result<(), ClusterError> {
        let leader = Leader { epoch, node: self.me.id.clone(), url: self.me.url.clone() };
        for _ in 0..TRIES {
            let fence = self.fence(epoch).await?;
            self.check_format().await?;
            let commit = Commit::new().when(fence).put(LEADER_KEY, leader.encode());
            match self.store.commit(commit).await {
                Ok(_) => {
                    self.known.send_modify(|known| known.leader = Some(leader));
                    self.role.send_replace(NodeRole::Leading { epoch });
                    return Ok(());
                }
                // Either the epoch moved, which the next round finds, or the commit is tried again: repeating it is safe.
                Err(StoreError::Refused { .. } | StoreError::Unknown { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ClusterError::NotLeading)
    }

    /// From now on this node follows.
    pub fn stop_leading(&self) {
        self.role.send_replace(NodeRole::Following);
    }

    /// Removes a node that is gone for good. A node that still runs registers again.
    pub async fn remove(&self, id: &str) -> Result<(), ClusterError> {
        let unknown = || ClusterError::NoSuchMember { id: id.to_owned() };
        let members = self.members();
        let mut named = members.iter().filter(|member| member.name == id);
        let member = match (members.iter().find(|member| member.id == id), named.next(), named.next()) {
            (Some(member), ..) | (None, Some(member), None) => member.clone(),
            (None, None, _) => return Err(unknown()),
            (None, Some(_), Some(_)) => return Err(ClusterError::Ambiguous { name: id.to_owned() }),
        };
        if member.id == self.me.id || self.leader().is_some_and(|leader| leader.node == member.id) {
            return Err(ClusterError::InUse { id: member.id });
        }
        self.forget(&member).await?;
        info!(node = member.id, name = member.name, "A member was removed.");
        Ok(())
    }

    async fn forget(&self, member: &Member) -> Result<(), ClusterError> {
        let commit = Commit::new().delete(member.key()).put(ROLL_KEY, member_records::roll());
        self.store.commit(commit).await?;
        self.known.send_modify(|known| drop(known.members.remove(&member.id)));
        Ok(())
    }

    /// Runs on the leader: raises the format to the highest that every member understands, whenever that becomes higher.
    pub async fn run_format_upgrades(&self, epoch: u64) {
        store_format::raise_when_possible(self, epoch).await;
    }

    /// Runs on the leader where nodes keep the store together: removes members that no longer do.
    pub async fn run_member_pruning(&self) {
        prune::prune_removed_members(self).await;
    }

    /// The condition that this epoch is still the current one.
    async fn fence(&self, epoch: u64) -> Result<Condition, ClusterError> {
        let entry = self.store.get(EPOCH_KEY).await?.ok_or(ClusterError::NotLeading)?;
        let number = std::str::from_utf8(&entry.value).ok().and_then(|text| text.parse::<u64>().ok());
        if number == Some(epoch) {
            Ok(Condition::Version(EPOCH_KEY.to_vec(), entry.version))
        } else {
            Err(ClusterError::NotLeading)
        }
    }
}

#[cfg(test)]
mod tests;
