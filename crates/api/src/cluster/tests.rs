use std::time::Duration;

use netstead_model::{Clock as _, SystemClock};
use netstead_store::{Committed, Entry, Epoch, Health, MemoryStore, Watch};

use super::*;

mod kept_together;

fn member(id: &str, format: u32) -> Member {
    let now = SystemClock.wall();
    let url = format!("http://{id}.test:5301");
    Member { id: id.into(), name: id.into(), url, version: "9".into(), format, since: now, seen: now }
}

async fn node(store: &Arc<dyn Store>, id: &str, format: u32) -> Result<Cluster, ClusterError> {
    let node = Cluster::open(Arc::clone(store), SystemClock::shared(), member(id, format)).await?;
    node.register().await?;
    Ok(node)
}

/// Takes the lead, as the ledger does, and looks after the format once.
async fn lead(store: &Arc<dyn Store>, node: &Cluster) -> u64 {
    let epoch = store.lead().await.unwrap().0;
    node.lead(epoch).await.unwrap();
    epoch
}

async fn settle(node: &Cluster, epoch: u64) {
    let _ = tokio::time::timeout(Duration::from_millis(200), node.run_format_upgrades(epoch)).await;
}

async fn stored(store: &Arc<dyn Store>) -> Option<u32> {
    let entry = store.get(FORMAT_KEY.as_bytes()).await.unwrap()?;
    Some(member_records::format_of(&entry).unwrap())
}

#[tokio::test]
async fn nodes_hear_of_each_other_and_of_who_leads() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (blue, green) = (node(&store, "blue", 1).await.unwrap(), node(&store, "green", 1).await.unwrap());
    assert_eq!(green.leader(), None);
    let epoch = lead(&store, &blue).await;
    let mut changes = green.changes();
    changes.wait_for(|known| known.leader.is_some() && known.members.len() == 2).await.unwrap();
    let leader = Leader { epoch, node: "blue".into(), url: "http://blue.test:5301".into() };
    assert_eq!(green.leader(), Some(leader));
    assert_eq!((blue.role(), green.role()), (NodeRole::Leading { epoch }, NodeRole::Following));

    // A node that lost the lead in the meantime does not say that it has it.
    let later = lead(&store, &green).await;
    assert!(matches!(blue.lead(epoch).await, Err(ClusterError::NotLeading)));
    assert_eq!(green.leader().map(|leader| leader.epoch), Some(later));
}

#[tokio::test]
async fn the_format_is_raised_once_every_member_understands_it() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (old, new) = (node(&store, "old", 1).await.unwrap(), node(&store, "new", 2).await.unwrap());
    let epoch = lead(&store, &new).await;
    settle(&new, epoch).await;
    assert_eq!(stored(&store).await, Some(1), "one member understands no more");
    assert_eq!(new.format(), 1);

    // It is upgraded, and comes again.
    drop(old);
    let old = node(&store, "old", 2).await.unwrap();
    settle(&new, epoch).await;
    assert_eq!(stored(&store).await, Some(2));
    drop(old);

    // From now on the older program is refused, also one that was about to join.
    let refused = node(&store, "late", 1).await.unwrap_err();
    assert!(matches!(refused, ClusterError::TooOld { stored: 2, highest: 1 }), "{refused}");
    assert!(refused.to_string().contains("understands formats up to 1"), "{refused}");
}

#[tokio::test]
async fn a_member_that_is_gone_for_good_holds_nothing_up_once_it_is_removed() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    drop(node(&store, "gone", 1).await.unwrap());
    let new = node(&store, "new", 3).await.unwrap();
    let epoch = lead(&store, &new).await;
    settle(&new, epoch).await;
    assert_eq!(stored(&store).await, Some(1));
    assert!(matches!(new.remove("nobody").await, Err(ClusterError::NoSuchMember { .. })));
    assert!(matches!(new.remove("new").await, Err(ClusterError::InUse { .. })));
    new.remove("gone").await.unwrap();
    settle(&new, epoch).await;
    assert_eq!(stored(&store).await, Some(3));
}

/// The leader has counted, and an older node joins before it writes.
#[tokio::test]
async fn a_newcomer_is_not_overlooked_while_the_format_is_raised() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let new = node(&store, "new", 2).await.unwrap();
    lead(&store, &new).await;
    let roll = store.get(ROLL_KEY.as_bytes()).await.unwrap().unwrap().version;
    node(&store, "old", 1).await.unwrap();
    let counted = Condition::Version(ROLL_KEY.into(), roll);
    let late = store.commit(Commit::new().when(counted).put(FORMAT_KEY, "2")).await;
    assert!(matches!(late, Err(StoreError::Refused { .. })), "{late:?}");
}

/// A newer node that leads, and an older one that was taken off the list while it runs.
async fn outgrown(store: &Arc<dyn Store>) -> (Cluster, Cluster) {
    let (old, new) = (node(store, "old", 1).await.unwrap(), node(store, "new", 2).await.unwrap());
    let epoch = lead(store, &new).await;
    let early = tokio::time::timeout(Duration::from_millis(50), old.wait_for_newer_format()).await;
    assert!(early.is_err(), "the old one understands everything");
    new.remove("old").await.unwrap();
    settle(&new, epoch).await;
    assert_eq!(stored(store).await, Some(2));
    (old, new)
}

#[tokio::test]
async fn who_is_too_old_does_not_lead() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (old, new) = outgrown(&store).await;
    let epoch = store.lead().await.unwrap().0;
    let refused = old.lead(epoch).await.unwrap_err();
    assert!(matches!(refused, ClusterError::TooOld { stored: 2, highest: 1 }), "{refused}");
    assert_eq!(old.role(), NodeRole::Following);
    let written = store.get(LEADER_KEY.as_bytes()).await.unwrap().unwrap();
    let leader: Leader = member_records::decode(&written.key, &written.value).unwrap();
    assert_eq!(leader.node, new.me().id, "the old one has written nothing");
}

#[tokio::test]
async fn who_has_become_too_old_hears_of_it_at_once() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (old, _new) = outgrown(&store).await;
    let said = tokio::time::timeout(Duration::from_secs(30), old.wait_for_newer_format()).await.unwrap();
    assert!(matches!(said, ClusterError::TooOld { stored: 2, highest: 1 }), "{said}");
    assert_eq!(old.format(), 2);
}

/// A store whose views take their time: what one shows may be past when it is there.
#[derive(Debug)]
struct Slow(MemoryStore);

impl Slow {
    const LATE: Duration = Duration::from_millis(400);
}

#[async_trait::async_trait]
impl Store for Slow {
    async fn get(&self, key: &[u8]) -> Result<Option<Entry>, StoreError> {
        self.0.get(key).await
    }

    async fn snapshot(&self) -> Result<Arc<dyn Snapshot>, StoreError> {
        let snapshot = self.0.snapshot().await;
        tokio::time::sleep(Self::LATE).await;
        snapshot
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        self.0.commit(commit).await
    }

    async fn watch(&self, prefix: &[u8]) -> Result<Watch, StoreError> {
        self.0.watch(prefix).await
    }

    async fn lead(&self) -> Result<Epoch, StoreError> {
        self.0.lead().await
    }

    fn health(&self) -> Health {
        self.0.health()
    }

    fn health_changes(&self) -> watch::Receiver<Health> {
        self.0.health_changes()
    }

    async fn close(&self) {
        self.0.close().await;
    }
}

#[tokio::test]
async fn a_member_that_goes_while_the_members_are_counted_holds_nothing_up() {
    let store: Arc<dyn Store> = Arc::new(Slow(MemoryStore::new()));
    for id in ["gone", "late"] {
        drop(node(&store, id, 1).await.unwrap());
    }
    let new = node(&store, "new", 2).await.unwrap();
    let epoch = lead(&store, &new).await;
    let changing = async {
        while stored(&store).await.is_none() {
            tokio::time::sleep(Slow::LATE / 10).await;
        }
        new.remove("gone").await.unwrap();
        // By now it is being counted who is left.
        tokio::time::sleep(Slow::LATE / 4).await;
        new.remove("late").await.unwrap();
        while stored(&store).await != Some(2) {
            tokio::time::sleep(Slow::LATE / 10).await;
        }
    };
    tokio::select! {
        () = new.run_format_upgrades(epoch) => panic!("it leads for ever"),
        done = tokio::time::timeout(Duration::from_secs(30), changing) => done.expect("the format is raised"),
    }
}
