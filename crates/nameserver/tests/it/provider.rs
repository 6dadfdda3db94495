use std::sync::Arc;

use netstead_model::{
    ChangeSign, DnsProvider, ManualClock, ProviderError, RecordSet, SetChange, Unit, UnitOutcome,
    WriteRequest, ZoneContent,
};
use netstead_nameserver::{Builtin, zone_of};
use netstead_store::{Commit, Condition, MemoryStore, Store, StoreError};

use crate::fixture::{House, fence, name, sets, units};

fn builtin(store: &Arc<dyn Store>) -> Builtin {
    Builtin::new(Arc::clone(store), ManualClock::default().shared(), vec![name("example.test")])
}

fn adding(lines: &str) -> Vec<Unit> {
    units(sets(lines).into_iter().map(|set| (None, Some(set))))
}

async fn write(
    builtin: &Builtin,
    units: Vec<Unit>,
    at: (u64, u64),
) -> Result<Vec<UnitOutcome>, ProviderError> {
    builtin
        .write(&name("example.test"), &WriteRequest::new(units, fence(at.0, at.1)))
        .await
        .map(|reply| reply.outcomes)
}

async fn content(builtin: &Builtin) -> (Option<u32>, Vec<RecordSet>) {
    let content = builtin.read(&name("example.test")).await.unwrap();
    (content.sign.and_then(|sign| sign.serial()), content.sets)
}

#[tokio::test]
async fn a_late_write_is_refused() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let builtin = builtin(&store);
    write(&builtin, adding("a.example.test 300 A 192.0.2.1"), (2, 5)).await.unwrap();
    let before = content(&builtin).await;
    for late in [(2, 4), (1, 9)] {
        let refused = write(&builtin, adding("b.example.test 300 A 192.0.2.2"), late).await;
        assert!(matches!(refused, Err(ProviderError::Late { .. })), "{refused:?}");
    }
    assert_eq!(content(&builtin).await, before);
    // A newer write that finds all as it should be still closes the door behind it.
    write(&builtin, adding("a.example.test 300 A 192.0.2.1"), (3, 1)).await.unwrap();
    assert_eq!(content(&builtin).await, before);
    let refused = write(&builtin, adding("b.example.test 300 A 192.0.2.2"), (2, 6)).await;
    assert!(matches!(refused, Err(ProviderError::Late { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_repeated_write_changes_nothing() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let builtin = builtin(&store);
    let units = adding("a.example.test 300 A 192.0.2.1\nb.example.test 300 TXT x");
    assert_eq!(
        write(&builtin, units.clone(), (1, 1)).await.unwrap(),
        [UnitOutcome::Applied, UnitOutcome::Applied]
    );
    let before = content(&builtin).await;
    assert_eq!(write(&builtin, units, (1, 1)).await.unwrap(), [UnitOutcome::Applied, UnitOutcome::Applied]);
    assert_eq!(content(&builtin).await, before);
}

#[tokio::test]
async fn one_bad_unit_does_not_stop_the_others() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let builtin = builtin(&store);
    write(&builtin, adding("a.example.test 300 A 192.0.2.1"), (1, 1)).await.unwrap();
    let mut units = adding(
        "a.example.test 300 A 192.0.2.9
         b.example.test 300 A 192.0.2.2
         a.example.test 300 CNAME b.example.test
         c.example.com 300 A 192.0.2.3",
    );
    units.sort_by_key(|unit| unit.changes[0].after.as_ref().map(|set| (set.name.clone(), set.kind)));
    let outcomes = write(&builtin, units, (1, 2)).await.unwrap();
    let rejected = |reason: &str| UnitOutcome::Rejected { reason: reason.into() };
    assert_eq!(
        outcomes,
        [
            UnitOutcome::Changed,
            rejected("a CNAME cannot be beside other types"),
            UnitOutcome::Applied,
            rejected("`c.example.com` does not lie in the zone `example.test`"),
        ]
    );
    let (_, sets) = content(&builtin).await;
    assert_eq!(
        sets.iter().map(|set| set.name.as_str()).collect::<Vec<_>>(),
        ["a.example.test", "b.example.test"]
    );
}

#[tokio::test]
async fn a_type_changes_within_one_unit() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let builtin = builtin(&store);
    let [old, new] = ["a.example.test 300 A 192.0.2.1", "a.example.test 300 CNAME b.example.test"]
        .map(|line| sets(line).remove(0));
    write(&builtin, units([(None, Some(old.clone()))]), (1, 1)).await.unwrap();
    let changes = vec![
        SetChange { before: Some(old), after: None },
        SetChange { before: None, after: Some(new.clone()) },
    ];
    let unit = Unit { name: name("a.example.test"), changes };
    assert_eq!(write(&builtin, vec![unit], (1, 2)).await.unwrap(), [UnitOutcome::Applied]);
    assert_eq!(content(&builtin).await.1, [new]);
}

#[tokio::test]
async fn a_zone_for_a_name_is_configured_or_its_own() {
    let domains = [name("example.test"), name("lab.example.test"), name("0.10.in-addr.arpa")];
    for (owner, zone) in [
        ("a.b.example.test", "example.test"),
        ("a.lab.example.test", "lab.example.test"),
        ("example.test", "example.test"),
        ("web.example.com", "web.example.com"),
        ("*.apps.example.com", "apps.example.com"),
        ("7.3.0.10.in-addr.arpa", "0.10.in-addr.arpa"),
        ("7.2.0.192.in-addr.arpa", "7.2.0.192.in-addr.arpa"),
    ] {
        assert_eq!(zone_of(&name(owner), &domains), name(zone));
    }
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let refused =
        builtin(&store).write(&name("sub.example.test"), &WriteRequest::new(Vec::new(), fence(1, 1))).await;
    assert!(matches!(refused, Err(ProviderError::NoSuchZone { .. })), "{refused:?}");
}

/// Every key of the store, to be cut off in the middle of a change.
async fn dump(store: &dyn Store) -> Vec<(Vec<u8>, Vec<u8>)> {
    let entries = store.snapshot().await.unwrap().range(b"dns/", None, 100_000).await.unwrap();
    entries.into_iter().map(|entry| (entry.key, entry.value)).collect()
}

#[tokio::test]
async fn a_change_of_many_commits_is_seen_whole_or_not_at_all() {
    let house = House::new(&["example.test"]).await;
    let old: Vec<String> = (0..300).map(|n| format!("n{n}.example.test 300 A 192.0.2.1")).collect();
    house.fill("example.test", &old.join("\n")).await;
    let before = house.builtin.read(&name("example.test")).await.unwrap();
    // A second installation of the same store that dies after each of its commits in turn.
    let new = |n: usize| match n {
        0..100 => None,
        _ => Some(sets(&format!("n{n}.example.test 300 A 192.0.2.2")).remove(0)),
    };
    let changes: Vec<Unit> = units((0..350).filter_map(|n| {
        let old = (n < 300).then(|| sets(&format!("n{n}.example.test 300 A 192.0.2.1")).remove(0));
        (old.is_some() || new(n).is_some()).then(|| (old, new(n)))
    }));
    let mut seen_new = 0;
    for survives in 0..6 {
        let dying: Arc<dyn Store> = Arc::new(Dying::copy_of(house.store.as_ref(), survives).await);
        let writer = builtin(&dying);
        let result = write(&writer, changes.clone(), (2, 1)).await;
        let reader = builtin(&dying);
        let after = reader.read(&name("example.test")).await.unwrap();
        if result.is_ok() || after.sets.len() != before.sets.len() {
            assert_eq!(after.sets.len(), 250, "after {survives} commits");
            let serial = |content: &ZoneContent| content.sign.as_ref().and_then(ChangeSign::serial);
            assert!(serial(&after) > serial(&before));
            seen_new += 1;
        } else {
            assert_eq!(after, before, "after {survives} commits");
        }
        // The next writer finishes in any case, and nothing of the dead one shows.
        let next: Arc<dyn Store> = Arc::new(Dying::copy_of(dying.as_ref(), usize::MAX).await);
        let next = builtin(&next);
        let late = write(&next, adding("x.example.test 300 A 192.0.2.9"), (1, 99)).await;
        if survives > 0 {
            assert!(matches!(late, Err(ProviderError::Late { .. })), "{late:?}");
        }
        write(&next, adding("z.example.test 300 A 192.0.2.9"), (3, 1)).await.unwrap();
        let mut expected = after.sets.clone();
        if survives == 0 {
            expected.extend(sets("x.example.test 300 A 192.0.2.9"));
        }
        expected.extend(sets("z.example.test 300 A 192.0.2.9"));
        expected.sort();
        let mut found = next.read(&name("example.test")).await.unwrap().sets;
        found.sort();
        assert_eq!(found, expected, "after {survives} commits");
    }
    assert!((1..6).contains(&seen_new), "{seen_new}");
}

#[tokio::test]
async fn a_lone_zone_that_lost_its_last_record_is_no_longer_listed_but_keeps_its_order() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let builtin = builtin(&store);
    let (zone, set) = (name("web.example.com"), sets("web.example.com 300 A 192.0.2.1").remove(0));
    let listed = async || {
        let zones = builtin.zones(&[name("com")]).await.unwrap();
        zones.into_iter().map(|zone| zone.name).collect::<Vec<_>>()
    };
    let change = async |before: Option<&RecordSet>, after: Option<&RecordSet>, generation| {
        let units = units([(before.cloned(), after.cloned())]);
        builtin.write(&zone, &WriteRequest::new(units, fence(1, generation))).await
    };
    change(None, Some(&set), 2).await.unwrap();
    assert_eq!(listed().await, std::slice::from_ref(&zone));
    change(Some(&set), None, 3).await.unwrap();
    assert!(listed().await.is_empty());
    let late = change(None, Some(&set), 2).await;
    assert!(matches!(late, Err(ProviderError::Late { .. })), "{late:?}");
    change(None, Some(&set), 4).await.unwrap();
    assert_eq!(listed().await, std::slice::from_ref(&zone));
}

/// A store that takes a number of commits and then none.
#[derive(Debug)]
struct Dying {
    store: MemoryStore,
    left: std::sync::Mutex<usize>,
}

impl Dying {
    async fn copy_of(store: &dyn Store, left: usize) -> Self {
        let copy = MemoryStore::new();
        for (key, value) in dump(store).await {
            copy.commit(Commit::new().when(Condition::Absent(key.clone())).put(key, value)).await.unwrap();
        }
        Self { store: copy, left: std::sync::Mutex::new(left) }
    }
}

#[async_trait::async_trait]
impl Store for Dying {
    async fn get(&self, key: &[u8]) -> Result<Option<netstead_store::Entry>, StoreError> {
        self.store.get(key).await
    }

    async fn snapshot(&self) -> Result<Arc<dyn netstead_store::Snapshot>, StoreError> {
        self.store.snapshot().await
    }

    async fn commit(&self, commit: Commit) -> Result<netstead_store::Committed, StoreError> {
        {
            let mut left = self.left.lock().unwrap();
            if *left == 0 {
                return Err(StoreError::Unavailable { reason: "dead".into() });
            }
            *left -= 1;
        }
        self.store.commit(commit).await
    }

    async fn watch(&self, prefix: &[u8]) -> Result<netstead_store::Watch, StoreError> {
        self.store.watch(prefix).await
    }

    async fn lead(&self) -> Result<netstead_store::Epoch, StoreError> {
        self.store.lead().await
    }

    fn health(&self) -> netstead_store::Health {
        self.store.health()
    }

    fn health_changes(&self) -> tokio::sync::watch::Receiver<netstead_store::Health> {
        self.store.health_changes()
    }

    async fn close(&self) {
        self.store.close().await;
    }
}
