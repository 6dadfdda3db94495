//! A store that misbehaves on command, for the tests of the crates above.
//!
//! Everything a network, a disk or a crash can do to a commit has a [`Fault`] here. What the wrapped store
//! says about a commit that landed is always true; only the way back to the caller is broken.

mod damaged_keys;

use std::{
    fmt,
    ops::RangeInclusive,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use tokio::{
    sync::{broadcast, watch},
    time::sleep,
};

use self::damaged_keys::DamagedKeys;
use crate::{
    Commit, Committed, DamageLog, Entry, Epoch, Health, Snapshot, Store, StoreError, StoreFinding, Watch,
    epoch, watch::channel,
};

/// The fault of one commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The commit and its answer go through.
    Pass,
    /// The commit does not land and its caller is told so: [`StoreError::Unavailable`].
    Fail,
    /// The commit lands if its conditions hold, and the answer is lost: [`StoreError::Unknown`].
    LandUnknown,
    /// The commit does not land, and the answer is [`StoreError::Unknown`].
    LoseUnknown,
    /// The answer is [`StoreError::Unknown`] at once, and only after this time the commit lands, if its
    /// conditions hold by then: a request that was still on its way.
    LandLater(Duration),
    /// The commit waits this long, then goes through.
    Delay(Duration),
}

/// Decides for the commit with this number, counted from 0.
type Decide = Box<dyn FnMut(u64, &Commit) -> Fault + Send>;

/// Any store, with faults between it and its callers. Without instructions it passes everything on.
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    plan: Mutex<Plan>,
    outage: watch::Sender<Health>,
    lose: broadcast::Sender<()>,
    damaged: DamagedKeys,
}

struct Plan {
    count: u64,
    decide: Decide,
    slowness: Duration,
}

impl fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyStore").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl FaultyStore {
    pub fn new(inner: Arc<dyn Store>) -> Self {
        let plan =
            Mutex::new(Plan { count: 0, decide: Box::new(|_, _| Fault::Pass), slowness: Duration::ZERO });
        let damaged = DamagedKeys::new(inner.damage().cloned().unwrap_or_default());
        Self { inner, plan, outage: watch::channel(Health::Ready).0, lose: broadcast::channel(1).0, damaged }
    }

    /// The next commits meet these faults, one each; those after them pass.
    pub fn script(&self, faults: impl IntoIterator<Item = Fault>) {
        let mut faults = faults.into_iter().collect::<Vec<_>>().into_iter();
        self.decide(move |_, _| faults.next().unwrap_or(Fault::Pass));
    }

    /// From now on `decide` is asked for each commit, with its number counted from the first commit ever.
    /// A closure over a seeded generator makes a run that can be repeated.
    pub fn decide(&self, decide: impl FnMut(u64, &Commit) -> Fault + Send + 'static) {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner).decide = Box::new(decide);
    }

    /// From now on every commit takes this long before it meets its fault, and every call before it meets an outage.
    pub fn slow_down(&self, slowness: Duration) {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner).slowness = slowness;
    }

    /// How many commits were asked for, whatever became of them.
    pub fn commits(&self) -> u64 {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner).count
    }

    /// With a reason, every call answers [`StoreError::Unavailable`] and health says so, until called with `None`.
    pub fn set_outage(&self, reason: Option<&str>) {
        self.outage.send_replace(match reason {
            Some(reason) => Health::Failed { reason: reason.into() },
            None => Health::Ready,
        });
    }

    /// Every watch that is open now ends with [`crate::WatchItem::Lost`].
    pub fn lose_watches(&self) {
        let _ = self.lose.send(()); // An error only means that nobody watches.
    }

    /// From now on no read that meets one of these keys works, as when a block of a file is damaged.
    pub fn damage_keys(&self, keys: RangeInclusive<&str>) {
        self.damaged.add(keys);
    }

    /// Every snapshot that was taken before answers [`StoreError::Unavailable`], as when the store was opened again.
    pub fn lose_snapshots(&self) {
        self.damaged.lose_snapshots();
    }

    /// All keys can be read again.
    pub fn mend_keys(&self) {
        self.damaged.clear();
    }

    async fn check(&self) -> Result<(), StoreError> {
        let Health::Failed { reason } = self.outage.borrow().clone() else { return Ok(()) };
        let slowness = self.plan.lock().unwrap_or_else(PoisonError::into_inner).slowness;
        if !slowness.is_zero() {
            sleep(slowness).await;
        }
        Err(StoreError::Unavailable { reason })
    }

    fn next_fault(&self, commit: &Commit) -> (Fault, Duration) {
        let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        let number = plan.count;
        plan.count += 1;
        ((plan.decide)(number, commit), plan.slowness)
    }
}

fn unknown() -> StoreError {
    StoreError::Unknown { reason: "the test lost the answer".into() }
}

#[async_trait]
impl Store for FaultyStore {
    async fn get(&self, key: &[u8]) -> Result<Option<Entry>, StoreError> {
        self.check().await?;
        self.damaged.check_key(key)?;
        self.inner.get(key).await
    }

    async fn snapshot(&self) -> Result<Arc<dyn Snapshot>, StoreError> {
        self.check().await?;
        Ok(self.damaged.wrap(self.inner.snapshot().await?))
    }

    /// The snapshot of the wrapped store, outage or not: it stands for the copy at hand when no other node can be reached.
    async fn own_snapshot(&self) -> Result<Arc<dyn Snapshot>, StoreError> {
        Ok(self.damaged.wrap(self.inner.own_snapshot().await?))
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        self.check().await?;
        commit.validate()?;
        let (fault, slowness) = self.next_fault(&commit);
        if !slowness.is_zero() {
            sleep(slowness).await;
        }
        match fault {
            Fault::Pass => self.inner.commit(commit).await,
            Fault::Fail => Err(StoreError::Unavailable { reason: "the test let the commit fail".into() }),
            Fault::LandUnknown => {
                let _ = self.inner.commit(commit).await;
                Err(unknown())
            }
            Fault::LoseUnknown => Err(unknown()),
            Fault::LandLater(time) => {
                let inner = Arc::clone(&self.inner);
                tokio::spawn(async move {
                    sleep(time).await;
                    let _ = inner.commit(commit).await;
                });
                Err(unknown())
            }
            Fault::Delay(time) => {
                sleep(time).await;
                self.inner.commit(commit).await
            }
        }
    }

    async fn watch(&self, prefix: &[u8]) -> Result<Watch, StoreError> {
        self.check().await?;
        let mut lose = self.lose.subscribe();
        let mut inner = self.inner.watch(prefix).await?;
        let (watcher, watch) = channel(prefix);
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    biased;
                    _ = lose.recv() => break watcher.lose(),
                    item = inner.next() => {
                        if !item.is_some_and(|item| watcher.forward(item)) {
                            break;
                        }
                    }
                }
            }
        });
        Ok(watch)
    }

    /// Raises the epoch through the faults: a commit of its own, counted like any other.
    async fn lead(&self) -> Result<Epoch, StoreError> {
        epoch::raise(self).await
    }

    fn health(&self) -> Health {
        match &*self.outage.borrow() {
            Health::Ready => self.inner.health(),
            failed @ Health::Failed { .. } => failed.clone(),
        }
    }

    /// Only what [`FaultyStore::set_outage`] does; the wrapped store's own changes are not in it.
    fn health_changes(&self) -> watch::Receiver<Health> {
        self.outage.subscribe()
    }

    async fn examine(&self) -> Vec<StoreFinding> {
        self.inner.examine().await
    }

    fn damage(&self) -> Option<&DamageLog> {
        Some(self.damaged.log())
    }

    fn membership(&self) -> Option<&dyn crate::Membership> {
        self.inner.membership()
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Condition, MemoryStore, WatchItem, Write};

    fn faulty() -> FaultyStore {
        FaultyStore::new(Arc::new(MemoryStore::new()))
    }

    fn put(value: &str) -> Commit {
        Commit::new().put("k", value)
    }

    async fn value(store: &FaultyStore) -> Option<String> {
        store.get(b"k").await.unwrap().map(|entry| String::from_utf8(entry.value).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn each_fault_does_what_it_says() {
        let store = faulty();
        let late = Duration::from_secs(5);
        store.script([
            Fault::Fail,
            Fault::LoseUnknown,
            Fault::LandUnknown,
            Fault::LandLater(late),
            Fault::Pass,
            Fault::Delay(late),
        ]);

        assert!(matches!(store.commit(put("fail")).await, Err(StoreError::Unavailable { .. })));
        assert!(matches!(store.commit(put("lose")).await, Err(StoreError::Unknown { .. })));
        assert_eq!(value(&store).await, None);

        assert!(matches!(store.commit(put("land")).await, Err(StoreError::Unknown { .. })));
        assert_eq!(value(&store).await.as_deref(), Some("land"));

        assert!(matches!(store.commit(put("later")).await, Err(StoreError::Unknown { .. })));
        assert_eq!(value(&store).await.as_deref(), Some("land"));
        assert!(store.commit(put("pass")).await.is_ok());
        sleep(late * 2).await;
        assert_eq!(value(&store).await.as_deref(), Some("later"));

        assert!(store.commit(put("delay")).await.is_ok());
        assert_eq!(value(&store).await.as_deref(), Some("delay"));
        assert!(store.commit(put("after the script")).await.is_ok());
        assert_eq!(store.commits(), 7);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_store_takes_its_time_with_everything() {
        let store = faulty();
        store.slow_down(Duration::from_secs(5));
        store.script([Fault::Pass, Fault::LandUnknown]);
        let early = async || {
            sleep(Duration::from_secs(4)).await;
            value(&store).await
        };
        let (answer, early_on) = tokio::join!(store.commit(put("pass")), early());
        assert!(answer.is_ok());
        assert_eq!(early_on, None);
        let (answer, early_on) = tokio::join!(store.commit(put("land")), early());
        assert!(matches!(answer, Err(StoreError::Unknown { .. })));
        assert_eq!(early_on.as_deref(), Some("pass"));
        assert_eq!(value(&store).await.as_deref(), Some("land"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_commit_meets_the_conditions_of_its_landing() {
        let store = faulty();
        store.script([Fault::LandLater(Duration::from_secs(1))]);
        let first = Commit::new().when(Condition::Absent(b"k".to_vec())).put("k", "late");
        assert!(store.commit(first).await.is_err());
        assert!(store.commit(put("early")).await.is_ok());
        sleep(Duration::from_secs(2)).await;
        assert_eq!(value(&store).await.as_deref(), Some("early"));
    }

    #[tokio::test]
    async fn an_outage_ends_when_told() {
        let store = faulty();
        let mut changes = store.health_changes();
        store.set_outage(Some("the cable is out"));
        changes.changed().await.unwrap();
        assert!(matches!(store.get(b"k").await, Err(StoreError::Unavailable { .. })));
        assert!(matches!(store.commit(put("x")).await, Err(StoreError::Unavailable { .. })));
        assert_eq!(store.health(), Health::Failed { reason: "the cable is out".into() });
        store.set_outage(None);
        assert!(store.commit(put("x")).await.is_ok());
    }

    #[tokio::test]
    async fn watches_pass_commits_on_until_they_are_lost() {
        let store = faulty();
        let mut watch = store.watch(b"k").await.unwrap();
        let version = store.commit(put("x").put("other", "y")).await.unwrap().version;
        let writes = Arc::new(vec![Write::Put(b"k".to_vec(), b"x".to_vec())]);
        assert_eq!(watch.next().await, Some(WatchItem::Changed { version, writes }));
        store.lose_watches();
        assert_eq!(watch.next().await, Some(WatchItem::Lost));
        assert_eq!(watch.next().await, None);
        let mut again = store.watch(b"k").await.unwrap();
        store.commit(put("z")).await.unwrap();
        assert!(matches!(again.next().await, Some(WatchItem::Changed { .. })));
    }
}
