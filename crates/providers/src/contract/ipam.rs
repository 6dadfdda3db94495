//! The promises of every IPAM system, as checks that end the test with a sentence when one is broken.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use netstead_model::{
    Fence, FieldValue, Fields, Ident, IpamAddress, IpamInterface, IpamObject, IpamProvider, IpamSubject, Key,
    ObjectChange, ObjectDraft, ObjectKey, ObjectRole, ObjectUnit, ObjectWrite, ProviderError, UnitOutcome,
    WriteGuard,
};

/// The installation that the checks write for.
const OWNER: &str = "contract";

/// Changes a field of an object.
type ByHand = Box<dyn Fn(&IpamObject, &str, &str) + Send + Sync>;

/// A system to be checked. It holds nothing of the checks.
pub struct IpamSubjectUnderTest {
    pub provider: Arc<dyn IpamProvider>,
    /// The same system, with credentials it does not know.
    pub stranger: Option<Arc<dyn IpamProvider>>,
    /// Changes a field of the object with this id, as another program would.
    pub by_hand: ByHand,
    /// The first three parts of a network for the addresses of the checks: `10.7.7`.
    pub network: &'static str,
    pub generation: AtomicU64,
}

impl fmt::Debug for IpamSubjectUnderTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IpamSubjectUnderTest").field("provider", &self.provider).finish_non_exhaustive()
    }
}

/// Runs every check, one after the other, each with workloads of its own.
pub async fn all(subject: &IpamSubjectUnderTest) {
    objects_come_back_as_they_were_wanted(subject).await;
    a_repeated_write_changes_nothing(subject).await;
    fields_change_and_can_be_emptied(subject).await;
    a_value_of_others_is_never_overwritten(subject).await;
    only_marked_objects_are_deleted(subject).await;
    one_bad_unit_does_not_stop_the_others(subject).await;
    nothing_is_sent_without_consent(subject).await;
    strangers_are_refused_and_lose_nothing(subject).await;
    many_objects_are_listed_completely(subject).await;
}

fn ok<T>(result: Result<T, ProviderError>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("the system should have done it: {error}"),
    }
}

fn parsed<T: std::str::FromStr<Err: fmt::Display>>(text: &str) -> T {
    match text.parse() {
        Ok(value) => value,
        Err(error) => panic!("the check has a bad text: {text}: {error}"),
    }
}

impl IpamSubjectUnderTest {
    pub fn new(
        provider: Arc<dyn IpamProvider>,
        stranger: Option<Arc<dyn IpamProvider>>,
        by_hand: impl Fn(&IpamObject, &str, &str) + Send + Sync + 'static,
    ) -> Self {
        let (by_hand, generation) = (Box::new(by_hand), AtomicU64::new(1));
        Self { provider, stranger, by_hand, network: "10.7.7", generation }
    }

    /// A machine with one address.
    fn machine(&self, id: &str, host: u8) -> IpamSubject {
        let address = parsed(&format!("{}.{host}", self.network));
        let dns_name = Some(parsed(&format!("{id}.example.test")));
        let addresses = vec![IpamAddress { address, dns_name, claim: None, reserved: false }];
        let interface = IpamInterface {
            name: "eth0".into(),
            mac: Some(parsed(&format!("02:00:00:00:00:{host:02x}"))),
            vlan: None,
            addresses,
        };
        IpamSubject {
            source: Ident::from_static("contract"),
            id: parsed::<Key>(id),
            kind: "vm".into(),
            name: id.into(),
            tags: std::collections::BTreeSet::new(),
            facts: netstead_model::Facts::default(),
            interfaces: vec![interface],
            addresses: Vec::new(),
        }
    }

    /// The objects of a machine in the order of creation, without references to later kinds.
    fn drafts(&self, machine: &IpamSubject) -> Vec<ObjectDraft> {
        let can = self.provider.capabilities();
        let rank = |key: &ObjectKey| can.kinds.iter().position(|one| one.kind == key.kind);
        let mut drafts = self.provider.objects(machine);
        drafts.retain(|draft| rank(&draft.key).is_some());
        drafts.sort_by_key(|draft| rank(&draft.key));
        for draft in &mut drafts {
            let about = can.kinds.iter().find(|one| one.kind == draft.key.kind);
            let own = rank(&draft.key);
            draft.fields.retain(|name, value| {
                let late = matches!(value, FieldValue::Ref(target) if rank(target) >= own);
                !late && about.is_some_and(|about| about.has_field(name))
            });
        }
        drafts
    }

    fn request(&self, units: Vec<ObjectUnit>) -> ObjectWrite {
        let generation = self.generation.fetch_add(1, Ordering::SeqCst);
        ObjectWrite::new(units, Fence { owner: OWNER.into(), epoch: 1, generation })
    }

    async fn write(&self, units: Vec<ObjectUnit>) -> Vec<UnitOutcome> {
        let count = units.len();
        let reply = ok(self.provider.write(&self.request(units)).await);
        assert_eq!(reply.outcomes.len(), count, "each unit should have an outcome");
        assert_eq!(reply.stopped, None, "nothing should have stopped the write");
        reply.outcomes
    }

    /// Makes the objects of a machine, kind by kind, after a look: what the server is decides about the objects.
    async fn make(&self, machine: &IpamSubject) -> Vec<ObjectDraft> {
        self.read().await;
        let drafts = self.drafts(machine);
        for draft in &drafts {
            let outcomes = self.write(vec![create(draft)]).await;
            assert_eq!(outcomes, [UnitOutcome::Applied], "{} should be made", draft.key);
        }
        drafts
    }

    async fn read(&self) -> BTreeMap<ObjectKey, IpamObject> {
        let objects = ok(self.provider.read().await).into_iter();
        let marked = objects.filter_map(|object| Some((object.mark.clone()?, object)));
        marked.filter(|(mark, _)| mark.owner == OWNER).map(|(mark, object)| (mark.key, object)).collect()
    }

    async fn find(&self, key: &ObjectKey) -> IpamObject {
        match self.read().await.remove(key) {
            Some(object) => object,
            None => panic!("{key} should be there"),
        }
    }

    /// The kind with this role.
    fn address_of(&self, drafts: &[ObjectDraft]) -> ObjectDraft {
        let can = self.provider.capabilities();
        let kind = can.kind_of(ObjectRole::Address).map(|one| one.kind.clone());
        match drafts.iter().find(|draft| Some(&draft.key.kind) == kind.as_ref()) {
            Some(draft) => draft.clone(),
            None => panic!("the system should hold addresses"),
        }
    }
}

fn create(draft: &ObjectDraft) -> ObjectUnit {
    let change = ObjectChange::Create { fields: draft.fields.clone() };
    ObjectUnit { key: draft.key.clone(), change, needs: Vec::new() }
}

fn update(object: &IpamObject, key: &ObjectKey, before: Fields, after: Fields) -> ObjectUnit {
    let change = ObjectChange::Update { id: object.id.clone(), adopted: false, before, after };
    ObjectUnit { key: key.clone(), change, needs: Vec::new() }
}

fn delete(object: &IpamObject, key: &ObjectKey) -> ObjectUnit {
    let change = ObjectChange::Delete { id: object.id.clone(), before: Fields::new() };
    ObjectUnit { key: key.clone(), change, needs: Vec::new() }
}

/// The text field by which the checks change an address.
fn name_field(draft: &ObjectDraft) -> (String, FieldValue) {
    let text = |(_, value): &(&String, &FieldValue)| matches!(value, FieldValue::Text(text) if text.ends_with(".example.test"));
    match draft.fields.iter().find(text) {
        Some((name, value)) => (name.clone(), value.clone()),
        None => panic!("an address should have a field with its name"),
    }
}

/// A second pass writes nothing: all wanted fields are read back as they were written.
pub async fn objects_come_back_as_they_were_wanted(subject: &IpamSubjectUnderTest) {
    let drafts = subject.make(&subject.machine("back", 1)).await;
    let there = subject.read().await;
    for draft in drafts {
        let Some(object) = there.get(&draft.key) else { panic!("{} should be there", draft.key) };
        assert_eq!(object.kind, draft.key.kind);
        for (name, value) in &draft.fields {
            assert_eq!(object.fields.get(name), Some(value), "{} {name} should be as written", draft.key);
        }
    }
}

pub async fn a_repeated_write_changes_nothing(subject: &IpamSubjectUnderTest) {
    let drafts = subject.make(&subject.machine("twice", 2)).await;
    let before = subject.read().await;
    for draft in &drafts {
        let outcomes = subject.write(vec![create(draft)]).await;
        assert_eq!(outcomes, [UnitOutcome::Applied], "{} is there already", draft.key);
    }
    assert_eq!(subject.read().await, before, "a repeated write should change nothing");
    let address = subject.address_of(&drafts);
    let object = subject.find(&address.key).await;
    for _ in 0..2 {
        let outcomes = subject.write(vec![delete(&object, &address.key)]).await;
        assert_eq!(outcomes, [UnitOutcome::Applied], "a deletion can be repeated");
    }
}

pub async fn fields_change_and_can_be_emptied(subject: &IpamSubjectUnderTest) {
    let drafts = subject.make(&subject.machine("fields", 3)).await;
    let address = subject.address_of(&drafts);
    let (name, value) = name_field(&address);
    let other = FieldValue::Text("other.example.test".into());
    let object = subject.find(&address.key).await;
    let (before, after) =
        (Fields::from([(name.clone(), value)]), Fields::from([(name.clone(), other.clone())]));
    assert_eq!(
        subject.write(vec![update(&object, &address.key, before.clone(), after.clone())]).await,
        [UnitOutcome::Applied]
    );
    assert_eq!(subject.find(&address.key).await.fields.get(&name), Some(&other));
    assert_eq!(
        subject.write(vec![update(&object, &address.key, before, after.clone())]).await,
        [UnitOutcome::Applied],
        "a repeated change is applied already"
    );
    assert_eq!(
        subject.write(vec![update(&object, &address.key, after, Fields::new())]).await,
        [UnitOutcome::Applied]
    );
    assert_eq!(subject.find(&address.key).await.fields.get(&name), None, "the field should be empty");
}

pub async fn a_value_of_others_is_never_overwritten(subject: &IpamSubjectUnderTest) {
    let drafts = subject.make(&subject.machine("hand", 4)).await;
    let address = subject.address_of(&drafts);
    let (name, value) = name_field(&address);
    let object = subject.find(&address.key).await;
    (subject.by_hand)(&object, &name, "byhand.example.test");
    let (before, after) = (
        Fields::from([(name.clone(), value)]),
        Fields::from([(name.clone(), FieldValue::Text("ours.example.test".into()))]),
    );
    let outcomes = subject.write(vec![update(&object, &address.key, before, after)]).await;
    assert_eq!(outcomes, [UnitOutcome::Changed], "another value is there than was expected");
    let found = subject.find(&address.key).await.fields.get(&name).cloned();
    assert_eq!(found, Some(FieldValue::Text("byhand.example.test".into())));
}

pub async fn only_marked_objects_are_deleted(subject: &IpamSubjectUnderTest) {
    let drafts = subject.make(&subject.machine("mine", 5)).await;
    let address = subject.address_of(&drafts);
    let object = subject.find(&address.key).await;
    let other = ObjectKey { workload: parsed("other"), ..address.key.clone() };
    let outcomes = subject.write(vec![delete(&object, &other)]).await;
    assert_ne!(outcomes, [UnitOutcome::Applied], "the mark is that of another object");
    subject.find(&address.key).await;
    for draft in drafts.iter().rev() {
        let object = subject.find(&draft.key).await;
        let outcomes = subject.write(vec![delete(&object, &draft.key)]).await;
        assert_eq!(outcomes, [UnitOutcome::Applied], "{} should be removed", draft.key);
    }
    let left = subject.read().await;
    assert!(drafts.iter().all(|draft| !left.contains_key(&draft.key)), "nothing of it should be left");
}

pub async fn one_bad_unit_does_not_stop_the_others(subject: &IpamSubjectUnderTest) {
    let drafts = subject.make(&subject.machine("bad", 6)).await;
    let (good, address) = (subject.machine("good", 7), subject.address_of(&drafts));
    let first = subject.drafts(&good).remove(0);
    // The same address for another workload.
    let key = ObjectKey { workload: parsed("thief"), ..address.key.clone() };
    let stolen = ObjectDraft { key, fields: address.fields.clone() };
    let outcomes = subject.write(vec![create(&stolen), create(&first)]).await;
    let [UnitOutcome::Rejected { reason }, UnitOutcome::Applied] = outcomes.as_slice() else {
        panic!("the address is there already, and the other unit is fine: {outcomes:?}");
    };
    assert!(!reason.is_empty(), "a rejection should have a reason");
    assert!(!subject.read().await.contains_key(&stolen.key), "nothing of a rejected unit should be there");
}

pub async fn nothing_is_sent_without_consent(subject: &IpamSubjectUnderTest) {
    let draft = subject.drafts(&subject.machine("late", 8)).remove(0);
    let mut request = subject.request(vec![create(&draft)]);
    let server = subject.provider.server();
    request.guard = WriteGuard::new(move || {
        let server = server.clone();
        async move { Err(ProviderError::Deposed { server }) }
    });
    match subject.provider.write(&request).await {
        Err(ProviderError::Deposed { .. }) => {}
        Ok(reply) if reply.outcomes.iter().all(|one| *one == UnitOutcome::NotTried) => {}
        other => panic!("the guard did not allow it: {other:?}"),
    }
    assert!(!subject.read().await.contains_key(&draft.key), "nothing should have been written");
}

pub async fn strangers_are_refused_and_lose_nothing(subject: &IpamSubjectUnderTest) {
    let Some(stranger) = &subject.stranger else { return };
    let before = subject.read().await;
    let draft = subject.drafts(&subject.machine("stranger", 9)).remove(0);
    match stranger.read().await {
        Err(ProviderError::Denied { .. }) => {}
        other => panic!("these credentials should be refused: {other:?}"),
    }
    let refused = stranger.write(&subject.request(vec![create(&draft)])).await;
    assert!(refused.is_err(), "these credentials should be refused: {refused:?}");
    assert_eq!(subject.read().await, before, "a stranger should change nothing");
}

pub async fn many_objects_are_listed_completely(subject: &IpamSubjectUnderTest) {
    let before = subject.read().await.len();
    let machines: Vec<IpamSubject> = (20..140).map(|n| subject.machine(&format!("many{n}"), n)).collect();
    let drafts: Vec<Vec<ObjectDraft>> = machines.iter().map(|machine| subject.drafts(machine)).collect();
    let kinds = drafts.first().map_or(0, Vec::len);
    for kind in 0..kinds {
        let units: Vec<ObjectUnit> = drafts.iter().filter_map(|all| all.get(kind)).map(create).collect();
        let outcomes = subject.write(units).await;
        assert!(outcomes.iter().all(|one| *one == UnitOutcome::Applied), "{outcomes:?}");
    }
    assert_eq!(subject.read().await.len() - before, kinds * machines.len(), "all objects should be listed");
}
