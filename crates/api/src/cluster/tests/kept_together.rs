//! A store that nodes keep together by some other protocol than raft: the registry needs nothing but its `Membership`.

use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use netstead_store::{LeaderElsewhere, MemberId, MemberInfo, MemberList};

use super::*;

#[derive(Debug)]
struct Kept {
    store: MemoryStore,
    members: Mutex<Vec<u64>>,
    cut_off: AtomicBool,
    elsewhere: watch::Sender<Option<LeaderElsewhere>>,
}

impl Kept {
    fn by(members: &[u64]) -> Arc<Self> {
        Arc::new(Self {
            store: MemoryStore::new(),
            members: Mutex::new(members.to_vec()),
            cut_off: AtomicBool::new(false),
            elsewhere: watch::Sender::new(None),
        })
    }
}

#[async_trait]
impl Store for Kept {
    async fn get(&self, key: &[u8]) -> Result<Option<Entry>, StoreError> {
        self.store.get(key).await
    }

    async fn snapshot(&self) -> Result<Arc<dyn Snapshot>, StoreError> {
        self.store.snapshot().await
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        self.store.commit(commit).await
    }

    async fn watch(&self, prefix: &[u8]) -> Result<Watch, StoreError> {
        self.store.watch(prefix).await
    }

    async fn lead(&self) -> Result<Epoch, StoreError> {
        self.store.lead().await
    }

    fn health(&self) -> Health {
        self.store.health()
    }

    fn health_changes(&self) -> watch::Receiver<Health> {
        self.store.health_changes()
    }

    fn membership(&self) -> Option<&dyn Membership> {
        Some(self)
    }

    async fn close(&self) {
        self.store.close().await;
    }
}

#[async_trait]
impl Membership for Kept {
    fn id(&self) -> MemberId {
        MemberId(1)
    }

    fn own_members(&self) -> MemberList {
        let members = self.members.lock().unwrap().clone();
        let info = |id| MemberInfo { id: MemberId(id), voter: true, ..MemberInfo::default() };
        MemberList {
            me: MemberId(1),
            members: members.into_iter().map(info).collect(),
            ..MemberList::default()
        }
    }

    async fn members(&self) -> MemberList {
        self.own_members()
    }

    async fn joined(&self) {}

    async fn add(&self, _address: &str) -> Result<(), StoreError> {
        Ok(())
    }

    async fn remove(&self, id: MemberId) -> Result<(), StoreError> {
        self.members.lock().unwrap().retain(|one| *one != id.0);
        Ok(())
    }

    fn silent_members(&self) -> Option<usize> {
        None
    }

    fn leads_without_majority(&self) -> bool {
        self.cut_off.load(Ordering::Relaxed)
    }

    fn knows_no_leader(&self) -> bool {
        false
    }

    fn leader_elsewhere(&self) -> watch::Receiver<Option<LeaderElsewhere>> {
        self.elsewhere.subscribe()
    }
}

fn id(number: u64) -> String {
    MemberId(number).to_string()
}

#[tokio::test]
async fn a_member_that_no_longer_keeps_the_store_is_forgotten() {
    let kept = Kept::by(&[1, 2]);
    let store: Arc<dyn Store> = kept.clone();
    let (one, _two) = (node(&store, &id(1), 1).await.unwrap(), node(&store, &id(2), 1).await.unwrap());
    let mut changes = one.changes();
    let left = |count: usize| move |known: &ClusterCache| known.members.len() == count;
    let pruned = async {
        changes.wait_for(left(2)).await.unwrap();
        kept.remove(MemberId(2)).await.unwrap();
        changes.wait_for(left(1)).await.unwrap();
    };
    tokio::select! {
        () = one.run_member_pruning() => panic!("it prunes for ever"),
        () = pruned => {}
    }
    assert_eq!(one.members().into_iter().map(|member| member.id).collect::<Vec<_>>(), [id(1)]);
}

#[tokio::test]
async fn a_leader_without_a_majority_does_not_say_that_it_leads() {
    let kept = Kept::by(&[1]);
    let store: Arc<dyn Store> = kept.clone();
    let one = node(&store, &id(1), 1).await.unwrap();
    lead(&store, &one).await;
    assert!(one.leads());
    kept.cut_off.store(true, Ordering::Relaxed);
    assert!(!one.leads());
}

#[tokio::test]
async fn a_node_whose_disk_failed_learns_from_the_others_which_one_leads() {
    let kept = Kept::by(&[1, 2]);
    let store: Arc<dyn Store> = kept.clone();
    let (one, two) = (node(&store, &id(1), 1).await.unwrap(), node(&store, &id(2), 1).await.unwrap());
    let epoch = lead(&store, &one).await;
    two.changes().wait_for(|known| known.members.len() == 2 && known.leader.is_some()).await.unwrap();
    kept.elsewhere.send_replace(Some(LeaderElsewhere { node: MemberId(2), epoch: epoch + 1 }));
    let led_by_two = |known: &ClusterCache| known.leader.as_ref().is_some_and(|leader| leader.node == id(2));
    let known = one.changes().wait_for(led_by_two).await.unwrap().leader.clone();
    assert_eq!(known.map(|leader| leader.epoch), Some(epoch + 1));
}
