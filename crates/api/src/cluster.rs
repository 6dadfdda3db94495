//! The nodes that serve one store: who they are, who leads, and which format all of them understand.
//!
//! Each node tells in the store who it is and hears of the others through the store's watch, as it does with tokens.
//! What a node knows may be a moment old. That costs a detour and never a wrong answer: who leads is decided by the
//! store's epoch, and whoever is taken for the leader and is none says so.

mod error;
mod format;
mod known;
mod peers;
mod record;
mod roll;
mod stage;

use std::{sync::Arc, time::Duration};

use netstead_model::Clock;
use netstead_store::{Commit, Condition, EPOCH_KEY, Store, StoreError, Watch, WatchItem};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{info, warn};

use self::known::{Known, PREFIX};
pub use self::{
    error::ClusterError,
    peers::{PeerError, Peers},
    record::{FORMAT, FORMAT_KEY, LEADER_KEY, Leader, MEMBERS, Member, ROLL_KEY},
    stage::Stage,
};

/// How long the whole store is waited for before this node's own copy is believed.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often a record is tried to be written.
const TRIES: u32 = 8;

/// What this node does at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stand {
    /// It answers reads, and sends the rest to whoever leads.
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
    known: watch::Sender<Known>,
    stand: watch::Sender<Stand>,
    _follower: Arc<DropGuard>,
}

/// Refuses a store that is written in a newer format than this program understands.
pub async fn check_format(store: &dyn Store) -> Result<(), ClusterError> {
    let stored = store.get(FORMAT_KEY.as_bytes()).await?;
    format::check(stored.as_ref().map(record::format_of).transpose()?, FORMAT)
}

impl Cluster {
    /// What all of them work on.
    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Learns who is there. Refuses a store whose format is newer than `me` understands.
    pub async fn open(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        me: Member,
    ) -> Result<Self, ClusterError> {
        let known = watch::Sender::new(Known::default());
        let watch = load(&*store, &known).await?;
        format::check(known.borrow().format, me.format)?;
        let stop = CancellationToken::new();
        tokio::spawn(follow(Arc::clone(&store), known.clone(), watch, stop.clone()));
        let stand = watch::Sender::new(Stand::Following);
        Ok(Self { store, clock, me: Arc::new(me), known, stand, _follower: Arc::new(stop.drop_guard()) })
    }

    /// Who this node is.
    pub fn me(&self) -> &Member {
        &self.me
    }

    pub fn stand(&self) -> Stand {
        *self.stand.borrow()
    }

    pub fn stands(&self) -> watch::Receiver<Stand> {
        self.stand.subscribe()
    }

    /// Who leads, as far as is known here.
    pub fn leader(&self) -> Option<Leader> {
        self.known.borrow().leader.clone()
    }

    /// All nodes that ever told of themselves and were not removed, in order of id.
    pub fn members(&self) -> Vec<Member> {
        self.known.borrow().members.values().cloned().collect()
    }

    /// The format in which all of them write.
    pub fn format(&self) -> u32 {
        self.known.borrow().format.unwrap_or(self.me.format)
    }

    /// Wakes whenever something about the others changes.
    pub(crate) fn changes(&self) -> watch::Receiver<Known> {
        self.known.subscribe()
    }

    /// Tells the others that this node is here, and when it was last. To be called now and then.
    pub async fn register(&self) -> Result<(), ClusterError> {
        let member = Member { seen: self.clock.wall(), ..(*self.me).clone() };
        let mut commit = Commit::new().put(member.key(), member.encode());
        let known = self.known.borrow().members.get(&member.id).cloned();
        if known.is_none_or(|known| !known.is_like(&member)) {
            // A newcomer, or one that was upgraded: whoever is raising the format counts again.
            commit = commit.put(ROLL_KEY, record::roll());
        }
        self.store.commit(commit).await?;
        // What was raised in the meantime, by somebody who did not know of us.
        let stored = self.store.get(FORMAT_KEY.as_bytes()).await?;
        let stored = stored.as_ref().map(record::format_of).transpose()?;
        self.known.send_if_modified(|known| std::mem::replace(&mut known.format, stored) != stored);
        format::check(stored, self.me.format)
    }

    /// From now on this node leads: it tells the others where it is.
    pub async fn lead(&self, epoch: u64) -> Result<(), ClusterError> {
        let leader = Leader { epoch, node: self.me.id.clone(), url: self.me.url.clone() };
        for _ in 0..TRIES {
            let fence = self.fence(epoch).await?;
            let commit = Commit::new().when(fence).put(LEADER_KEY, leader.encode());
            match self.store.commit(commit).await {
                Ok(_) => {
                    self.known.send_modify(|known| known.leader = Some(leader));
                    self.stand.send_replace(Stand::Leading { epoch });
                    return Ok(());
                }
                // Either the epoch moved, which the next look tells, or it is tried again: it bears being done twice.
                Err(StoreError::Refused { .. } | StoreError::Unknown { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ClusterError::NotLeading)
    }

    /// From now on this node follows.
    pub fn step_back(&self) {
        self.stand.send_replace(Stand::Following);
    }

    /// Forgets a node that is gone for good. One that still runs tells of itself again.
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
        let commit = Commit::new().delete(member.key()).put(ROLL_KEY, record::roll());
        self.store.commit(commit).await?;
        self.known.send_modify(|known| drop(known.members.remove(&member.id)));
        Ok(())
    }

    /// Raises the format to the highest that every member understands, whenever that becomes higher. For whoever leads.
    pub async fn keep_format(&self, epoch: u64) {
        format::keep(self, epoch).await;
    }

    /// Where nodes keep the store together, takes those off the roll that do so no longer. For whoever leads.
    pub async fn keep_roll(&self) {
        roll::keep(self).await;
    }

    /// That this epoch still stands, as a condition.
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

/// Learns everything that is stored, and how to hear of what changes from then on. Without the others' agreement this
/// node's own copy has to do.
async fn load(store: &dyn Store, known: &watch::Sender<Known>) -> Result<Option<Watch>, ClusterError> {
    let whole = async {
        let watch = store.watch(PREFIX).await?;
        let loaded = Known::read(&*store.snapshot().await?).await?;
        Ok::<_, ClusterError>((watch, loaded))
    };
    if let Ok(Ok((watch, loaded))) = tokio::time::timeout(PATIENCE, whole).await {
        known.send_replace(loaded);
        return Ok(Some(watch));
    }
    known.send_replace(Known::read(&*store.own_snapshot().await?).await?);
    Ok(None)
}

async fn follow(
    store: Arc<dyn Store>,
    known: watch::Sender<Known>,
    mut watch: Option<Watch>,
    stop: CancellationToken,
) {
    let news = async {
        let mut pause = Duration::from_millis(200);
        loop {
            let item = match &mut watch {
                Some(watch) => watch.next().await,
                None => None,
            };
            if let Some(WatchItem::Changed { writes, .. }) = item {
                known.send_modify(|known| known.apply(&writes));
                pause = Duration::from_millis(200);
                continue;
            }
            tokio::time::sleep(pause).await;
            watch = load(&*store, &known).await.unwrap_or_else(|error| {
                warn!(%error, retry_in = ?pause, "The members cannot be read; those known stay.");
                None
            });
            pause = (pause * 2).min(Duration::from_secs(10));
        }
    };
    stop.run_until_cancelled(news).await;
}

#[cfg(test)]
mod tests;
