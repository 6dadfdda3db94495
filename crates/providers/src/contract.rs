//! Contract of all DNS providers: checks that fail with a sentence when a promise is broken.
//!
//! ```no_run
//! # async fn example(subject: netstead_providers::contract::Subject) {
//! netstead_providers::contract::all(&subject).await;
//! # }
//! ```

#![allow(clippy::panic, clippy::missing_panics_doc, reason = "a promise that is broken ends the test")]

pub mod basics;
pub mod batches;
pub mod guards;
pub mod ipam;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use netstead_model::{
    Capabilities, ChangeSign, DnsProvider, Fence, Name, ProviderError, RecordData, RecordSet, RecordType,
    SetChange, Unit, UnitOutcome, WriteGuard, WriteReply, WriteRequest,
};

/// A server to be checked, with a zone that holds nothing but its SOA and NS.
pub struct Subject {
    pub provider: Arc<dyn DnsProvider>,
    /// The same server, with credentials it does not know. None for zones inside Netstead itself: there are no strangers
    /// and no other installations, and any zone can be had.
    pub stranger: Option<Arc<dyn DnsProvider>>,
    pub zone: Name,
    /// Something the server will not have; [`Subject::out_of_zone`] suits most.
    pub poison: Unit,
    /// Values of the checks that the server cannot hold, by type and text: each must be rejected.
    pub impossible: Vec<(RecordType, &'static str)>,
    /// How many requests the provider has made so far, if that is known.
    pub requests: Option<Box<dyn Fn() -> usize + Send + Sync>>,
    pub generation: AtomicU64,
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").field("provider", &self.provider).finish_non_exhaustive()
    }
}

/// Runs every check, one after the other, each at names of its own.
pub async fn all(subject: &Subject) {
    basics::the_zone_is_found(subject).await;
    basics::create_change_delete(subject).await;
    basics::all_types_come_back_as_adjusted(subject).await;
    basics::a_repeated_write_changes_nothing(subject).await;
    basics::a_time_to_live_can_change(subject).await;
    basics::a_set_may_have_many_values(subject).await;
    basics::a_type_can_change_in_one_unit(subject).await;
    basics::a_name_and_its_mark_are_one_unit(subject).await;
    guards::what_is_not_expected_is_left_alone(subject).await;
    guards::foreign_values_survive(subject).await;
    guards::strangers_are_refused_and_lose_nothing(subject).await;
    guards::an_unknown_zone_is_told(subject).await;
    guards::a_late_write_is_refused(subject).await;
    guards::nothing_is_sent_without_consent(subject).await;
    guards::a_write_that_is_ended_half_way_says_what_stands(subject).await;
    guards::a_cname_never_meets_other_records(subject).await;
    batches::one_poison_does_not_stop_the_others(subject).await;
    batches::a_thousand_names_take_few_requests(subject).await;
}

impl Subject {
    pub fn new(provider: Arc<dyn DnsProvider>, stranger: Arc<dyn DnsProvider>, zone: Name) -> Self {
        Self { stranger: Some(stranger), ..Self::inside(provider, zone) }
    }

    /// Zones that no other program can reach.
    pub fn inside(provider: Arc<dyn DnsProvider>, zone: Name) -> Self {
        let (poison, generation) = (Self::out_of_zone(), AtomicU64::new(1));
        Self { provider, stranger: None, zone, poison, impossible: Vec::new(), requests: None, generation }
    }

    /// A name that is in no zone of any server under test.
    pub fn out_of_zone() -> Unit {
        let name = name("poison.invalid");
        Unit { changes: vec![SetChange { before: None, after: Some(set(&name, &["192.0.2.66"])) }], name }
    }

    fn at(&self, label: &str) -> Name {
        match Name::join(label, &self.zone) {
            Ok(name) => name,
            Err(error) => panic!("the check has a bad name: {error}"),
        }
    }

    fn next_fence(&self) -> Fence {
        let generation = self.generation.fetch_add(1, Ordering::SeqCst);
        Fence { owner: "contract".into(), epoch: 1, generation }
    }

    fn request(&self, units: Vec<Unit>) -> WriteRequest {
        WriteRequest { units, fence: self.next_fence(), guard: WriteGuard::open() }
    }

    async fn write(&self, units: Vec<Unit>) -> Vec<UnitOutcome> {
        let request = self.request(units);
        self.send(&request).await
    }

    /// Writes all of a request, as often as it takes.
    async fn send(&self, request: &WriteRequest) -> Vec<UnitOutcome> {
        let reply = ok(self.provider.write(&self.zone, request).await);
        assert_eq!(reply.outcomes.len(), request.units.len(), "each unit should have an outcome");
        assert_eq!(reply.stopped, None, "nothing should have stopped the write");
        reply.outcomes
    }

    /// Everything that stands at `names` now.
    async fn read(&self, names: &[&Name]) -> BTreeMap<(Name, RecordType), RecordSet> {
        let asked = names.iter().map(|name| (*name).clone()).collect();
        let content = ok(self.provider.read_names(&self.zone, &asked).await);
        let own = content.sets.into_iter().filter(|set| names.contains(&&set.name));
        own.map(|set| ((set.name.clone(), set.kind), set)).collect()
    }

    /// Nothing but `set` must stand at `name`, as the server makes it.
    async fn has(&self, name: &Name, set: &RecordSet) {
        let found: Vec<RecordSet> = self.read(&[name]).await.into_values().collect();
        let wanted = self.provider.adjust(set.clone(), &self.can());
        assert_eq!(found, [wanted], "this should stand at {name}, and nothing else");
    }

    async fn sign(&self) -> Option<ChangeSign> {
        let zones = ok(self.provider.zones(std::slice::from_ref(&self.zone)).await);
        zones.into_iter().find(|zone| zone.name == self.zone).and_then(|zone| zone.sign)
    }

    fn can(&self) -> Capabilities {
        self.provider.capabilities()
    }

    /// Writes one change that must land.
    async fn change(&self, before: Option<RecordSet>, after: Option<RecordSet>) {
        let Some(name) = after.as_ref().or(before.as_ref()).map(|set| set.name.clone()) else { return };
        let outcomes = self.write(vec![unit(&name, before, after)]).await;
        assert_eq!(outcomes, [UnitOutcome::Applied], "a change of {name} should have landed");
    }
}

/// The error that ended a write, before it began or half way.
#[track_caller]
fn stopped(outcome: Result<WriteReply, ProviderError>) -> ProviderError {
    match outcome {
        Ok(WriteReply { stopped: Some(error), outcomes }) => {
            let applied = outcomes.contains(&UnitOutcome::Applied);
            assert!(!applied, "nothing should have been written before {error}");
            error
        }
        Ok(reply) => panic!("the write should have failed, and {reply:?}"),
        Err(error) => error,
    }
}

#[track_caller]
fn ok<T>(outcome: Result<T, ProviderError>) -> T {
    match outcome {
        Ok(value) => value,
        Err(error) => panic!("the server should have worked: {error}"),
    }
}

#[track_caller]
fn name(text: &str) -> Name {
    match text.parse() {
        Ok(name) => name,
        Err(error) => panic!("the check has a bad name: {error}"),
    }
}

#[track_caller]
fn value(kind: RecordType, text: &str) -> RecordData {
    match RecordData::parse(kind, text) {
        Ok(value) => value,
        Err(error) => panic!("the check has a bad value: {error}"),
    }
}

/// A set of type A.
#[track_caller]
fn set(name: &Name, addresses: &[&str]) -> RecordSet {
    typed(name, RecordType::A, addresses)
}

#[track_caller]
fn typed(name: &Name, kind: RecordType, values: &[&str]) -> RecordSet {
    RecordSet::new(name.clone(), kind, 300, values.iter().map(|text| value(kind, text)))
}

fn unit(name: &Name, before: Option<RecordSet>, after: Option<RecordSet>) -> Unit {
    Unit { name: name.clone(), changes: vec![SetChange { before, after }] }
}
