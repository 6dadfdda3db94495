//! Watchers in memory, for stores whose commits all pass through this process.
//!
//! Each watcher has a bounded queue. The committing side never waits for a watcher: one that is too far
//! behind is cut off and told so.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use tokio::sync::mpsc;

use crate::{Key, Version, WatchItem, Write};

/// Commits a watcher may be behind.
pub(crate) const MAX_BEHIND: usize = 4096;

/// Bytes of keys and values a watcher may be behind. One commit always fits.
const MAX_BYTES_BEHIND: usize = 16 << 20;

/// The result of [`crate::Store::watch`]: the commits that touch a prefix, one after the other.
#[derive(Debug)]
pub struct Watch {
    items: mpsc::Receiver<WatchItem>,
    backlog: Arc<Backlog>,
}

#[derive(Debug, Default)]
struct Backlog {
    bytes: AtomicUsize,
    lost: AtomicBool,
}

impl Watch {
    /// The next commit; waits for one. `None` after [`WatchItem::Lost`] and when the store was closed.
    ///
    /// Dropping the future loses nothing, so it may stand in a `select!`.
    pub async fn next(&mut self) -> Option<WatchItem> {
        if let Some(item) = self.items.recv().await {
            self.backlog.bytes.fetch_sub(size(&item), Ordering::Relaxed);
            return Some(item);
        }
        self.backlog.lost.swap(false, Ordering::Relaxed).then_some(WatchItem::Lost)
    }
}

/// The sending half of a [`Watch`].
#[derive(Debug)]
pub(crate) struct Watcher {
    prefix: Key,
    items: mpsc::Sender<WatchItem>,
    backlog: Arc<Backlog>,
}

pub(crate) fn channel(prefix: &[u8]) -> (Watcher, Watch) {
    let (sender, items) = mpsc::channel(MAX_BEHIND);
    let backlog = Arc::new(Backlog::default());
    (
        Watcher { prefix: prefix.to_vec(), items: sender, backlog: Arc::clone(&backlog) },
        Watch { items, backlog },
    )
}

impl Watcher {
    /// Queues a commit if it concerns this watcher. `false` means that it is to be dropped: it is gone or lost.
    pub(crate) fn send_commit(&self, version: Version, writes: &Arc<Vec<Write>>) -> bool {
        let ours = |write: &&Write| write.key().starts_with(&self.prefix);
        let count = writes.iter().filter(ours).count();
        if count == 0 {
            return !self.items.is_closed();
        }
        let writes = if count == writes.len() {
            Arc::clone(writes)
        } else {
            Arc::new(writes.iter().filter(ours).cloned().collect())
        };
        self.forward(WatchItem::Changed { version, writes })
    }

    /// Queues `item` as it is, with the same answer as [`Watcher::tell`].
    pub(crate) fn forward(&self, item: WatchItem) -> bool {
        let bytes = size(&item);
        let behind = self.backlog.bytes.fetch_add(bytes, Ordering::Relaxed);
        let fits = behind == 0 || behind + bytes <= MAX_BYTES_BEHIND;
        if fits && item != WatchItem::Lost {
            match self.items.try_send(item) {
                Ok(()) => return true,
                Err(mpsc::error::TrySendError::Closed(_)) => return false,
                Err(mpsc::error::TrySendError::Full(_)) => {}
            }
        }
        self.lose();
        false
    }

    /// Resolves when the receiver was dropped.
    #[cfg(feature = "etcd")]
    pub(crate) async fn gone(&self) {
        self.items.closed().await;
    }

    /// Ends the watch: queued items still arrive, and [`WatchItem::Lost`] follows them.
    pub(crate) fn lose(&self) {
        self.backlog.lost.store(true, Ordering::Relaxed);
    }
}

fn size(item: &WatchItem) -> usize {
    match item {
        WatchItem::Changed { writes, .. } => writes.iter().map(Write::bytes).sum(),
        WatchItem::Lost => 0,
    }
}

/// All watchers of a store. The committing side calls [`Watchers::tell`] once per commit, in order, when the
/// commit can be read.
#[derive(Debug)]
pub(crate) struct Watchers {
    /// `None` once the store is closed: a watch asked for too late ends at once.
    list: Mutex<Option<Vec<Watcher>>>,
}

impl Default for Watchers {
    fn default() -> Self {
        Self { list: Mutex::new(Some(Vec::new())) }
    }
}

impl Watchers {
    pub(crate) fn add(&self, prefix: &[u8]) -> Watch {
        let (watcher, watch) = channel(prefix);
        if let Some(list) = &mut *self.lock() {
            list.retain(|other| !other.items.is_closed());
            list.push(watcher);
        }
        watch
    }

    /// Returns what was not wanted: dropping it takes time that the committing side may have later.
    pub(crate) fn broadcast_commit(&self, version: Version, writes: Vec<Write>) -> Vec<Write> {
        match &mut *self.lock() {
            Some(list) if !list.is_empty() => {
                let writes = Arc::new(writes);
                list.retain(|watcher| watcher.send_commit(version, &writes));
                Vec::new()
            }
            _ => writes,
        }
    }

    /// Every watcher learns that it missed something.
    pub(crate) fn lose_all(&self) {
        if let Some(list) = &mut *self.lock() {
            list.drain(..).for_each(|watcher| watcher.lose());
        }
    }

    /// Every watcher ends, and so does each that is added later.
    pub(crate) fn end_all(&self) {
        self.lock().take();
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<Watcher>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key: &str, bytes: usize) -> Vec<Write> {
        vec![Write::Put(key.into(), vec![0; bytes])]
    }

    #[tokio::test]
    async fn one_that_is_too_many_commits_behind_gets_the_queued_ones_then_lost_then_the_end() {
        let watchers = Watchers::default();
        let mut watch = watchers.add(b"");
        for number in 0..=MAX_BEHIND as u64 {
            watchers.broadcast_commit(Version(number), put("a", 1));
        }
        for number in 0..MAX_BEHIND as u64 {
            let item = watch.next().await;
            assert!(
                matches!(item, Some(WatchItem::Changed { version, .. }) if version.0 == number),
                "{item:?}"
            );
        }
        assert_eq!(watch.next().await, Some(WatchItem::Lost));
        assert_eq!(watch.next().await, None);
        assert_eq!(watch.next().await, None);
    }

    #[tokio::test]
    async fn one_that_is_too_many_bytes_behind_is_lost_and_one_that_reads_is_not() {
        let watchers = Watchers::default();
        let mut slow = watchers.add(b"");
        let mut quick = watchers.add(b"");
        for number in 0..20 {
            watchers.broadcast_commit(Version(number), put("a", 1 << 20));
            assert!(matches!(quick.next().await, Some(WatchItem::Changed { .. })));
        }
        let mut seen = 0;
        while let Some(WatchItem::Changed { .. }) = slow.next().await {
            seen += 1;
        }
        assert_eq!(seen, 15, "what fits into 16 MiB together with the keys");
        assert_eq!(slow.next().await, None);
    }

    #[tokio::test]
    async fn a_commit_larger_than_the_limit_reaches_a_watcher_that_is_not_behind() {
        let watchers = Watchers::default();
        let mut watch = watchers.add(b"");
        watchers.broadcast_commit(Version(1), put("a", MAX_BYTES_BEHIND + 1));
        assert!(matches!(watch.next().await, Some(WatchItem::Changed { .. })));
        watchers.broadcast_commit(Version(2), put("a", 1));
        assert!(matches!(watch.next().await, Some(WatchItem::Changed { .. })));
    }

    #[test]
    fn watchers_that_are_gone_are_forgotten() {
        let watchers = Watchers::default();
        drop(watchers.add(b"a"));
        drop(watchers.add(b"b"));
        watchers.broadcast_commit(Version(1), put("c", 1));
        assert!(watchers.lock().as_ref().is_some_and(Vec::is_empty));
    }
}
