//! Approval of what a guard held back on an IPAM system, by a token that covers some names.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use netstead_api::access::{NewToken, Role, Scopes};
use netstead_engine::{IpamSetup, Setup};
use netstead_model::{
    FieldValue, Interface, IpamCapabilities, IpamObject, IpamProvider, ObjectChange, ObjectKind, ObjectMark,
    ObjectWrite, ProviderError, Span, UnitOutcome, View, Workload, WriteReply, standard_kinds,
};
use netstead_plan::{Digest, Limits, ipam::IpamSettings};
use serde_json::{Value, json};

use crate::{
    dns_server::{Seen, workload},
    support::House,
};

/// A system in memory.
#[derive(Debug, Default)]
struct Office(Mutex<BTreeMap<u32, IpamObject>>);

#[async_trait]
impl IpamProvider for Office {
    fn kind(&self) -> &'static str {
        "memory"
    }

    fn server(&self) -> String {
        "memory".into()
    }

    fn capabilities(&self) -> IpamCapabilities {
        IpamCapabilities { kinds: standard_kinds(), most_units: None }
    }

    async fn read(&self) -> Result<Vec<IpamObject>, ProviderError> {
        Ok(self.0.lock().unwrap().values().cloned().collect())
    }

    async fn write(&self, request: &ObjectWrite) -> Result<WriteReply, ProviderError> {
        request.guard.permit().await?;
        let mut objects = self.0.lock().unwrap();
        for unit in &request.units {
            match &unit.change {
                ObjectChange::Create { fields } => {
                    let number = objects.keys().next_back().map_or(1, |last| last + 1);
                    let mark = Some(ObjectMark { owner: request.fence.owner.clone(), key: unit.key.clone() });
                    let (kind, id, fields) = (unit.key.kind.clone(), number.to_string(), fields.clone());
                    objects.insert(number, IpamObject { kind, id, mark, fields });
                }
                ObjectChange::Update { id, before, after, .. } => {
                    let object = objects.get_mut(&id.parse().unwrap()).unwrap();
                    object.mark =
                        Some(ObjectMark { owner: request.fence.owner.clone(), key: unit.key.clone() });
                    object.fields.retain(|name, _| !before.contains_key(name));
                    object.fields.extend(after.clone());
                }
                ObjectChange::Delete { id, .. } => {
                    objects.remove(&id.parse().unwrap());
                }
            }
        }
        let applied: Vec<UnitOutcome> = request.units.iter().map(|_| UnitOutcome::Applied).collect();
        Ok(applied.into())
    }
}

impl Office {
    /// The addresses it holds.
    fn addresses(&self) -> Vec<String> {
        let objects = self.0.lock().unwrap();
        let addresses = objects.values().filter_map(|object| object.fields.get("address"));
        let mut addresses: Vec<String> = addresses.map(ToString::to_string).collect();
        addresses.sort();
        addresses
    }
}

/// A server with the IPAM system `office`, on which every removal waits for a person, and a token for the names below `a.test`.
struct Bench {
    house: House,
    office: Arc<Office>,
    seen: Arc<Seen>,
    token: String,
}

impl Bench {
    async fn open(workloads: &[(&str, u8)]) -> Self {
        let (office, seen) = (Arc::new(Office::default()), Seen::new("seen", machines(workloads)));
        let house = House::with_setup(|_| {
            let mut settings = IpamSettings::new("office".parse().unwrap(), "blue".parse().unwrap());
            settings.grace = Span::ZERO;
            settings.breaker = Limits { changes: 0, percent: 0, total: 0, ..Limits::default() };
            let ipam = vec![IpamSetup::new(settings, office.clone(), Digest::of(["office"]))];
            Setup { sources: vec![seen.setup()], ipam, ..Setup::default() }
        })
        .await;
        house.pool("a", json!({"network": "10.1.0.0/24", "domain": "a.test"})).await;
        let scopes = Scopes { pools: vec!["a".parse().unwrap()], ..Scopes::default() };
        let token = house.scoped(NewToken { scopes, ..NewToken::new("tenant", Role::Write) }).await;
        let bench = Self { house, office, seen, token };
        bench.settle().await;
        bench
    }

    async fn says(&self, workloads: &[(&str, u8)]) {
        *self.seen.says.lock().unwrap() = (View::Complete, machines(workloads));
        self.settle().await;
    }

    /// Machines, interfaces, addresses and references come in one pass each.
    async fn settle(&self) {
        for _ in 0..4 {
            self.house.post("/apply").json(&json!({})).go().await.fine();
        }
    }

    /// The hash of what is parked, and how many changes that are.
    async fn parked(&self) -> (String, Value) {
        let plan = self.house.get("/plans/office").go().await;
        let parked = plan.fine()["parked"].clone();
        (parked["hash"].as_str().unwrap_or_default().to_owned(), parked["changes"].clone())
    }

    /// The providers that the token sees, and what is parked on each.
    async fn seen_by_token(&self) -> Vec<(String, Value)> {
        let providers = self.house.get("/providers").by(&self.token).go().await;
        let items = providers.fine()["items"].as_array().unwrap().clone();
        items.iter().map(|one| (one["name"].as_str().unwrap().to_owned(), one["parked"].clone())).collect()
    }

    async fn approve(&self, hash: &str) -> u16 {
        let asked = self.house.post(&format!("/apply/{hash}")).by(&self.token);
        let answer = asked.json(&json!({})).go().await;
        if answer.status == 403 {
            let told = answer.problem(403, "forbidden");
            assert!(
                told.contains(&format!("all of what is parked as `{hash}`, if that is anything")),
                "{told}"
            );
        }
        answer.status
    }
}

fn machines(workloads: &[(&str, u8)]) -> Vec<Workload> {
    let machine = |(name, last): &(&str, u8)| {
        let address = format!("10.1.0.{last}");
        let addresses = vec![address.parse().unwrap()];
        let interface = Interface { name: Some("eth0".into()), addresses, ..Interface::default() };
        Workload { interfaces: vec![interface], ..workload("seen", name, &address) }
    };
    workloads.iter().map(machine).collect()
}

#[tokio::test]
async fn objects_are_removed_with_the_word_of_a_token_that_covers_all_names_of_their_workloads() {
    let bench = Bench::open(&[("vm.a.test", 1), ("vm.hidden.test", 101)]).await;
    assert_eq!(bench.office.addresses(), ["10.1.0.1", "10.1.0.101"]);
    bench.says(&[("vm.a.test", 2), ("vm.hidden.test", 102)]).await;
    let (both, count) = bench.parked().await;
    assert_eq!(count, 2);
    assert_eq!(bench.approve(&both).await, 403, "one of two is of a name out of scope");
    assert_eq!(bench.seen_by_token().await, [], "it has no say in what happens there");
    let plan = bench.house.get("/plans/office").by(&bench.token).go().await;
    plan.problem(403, "forbidden");
    assert!(bench.office.addresses().contains(&"10.1.0.1".to_owned()));

    bench.house.post(&format!("/apply/{both}")).json(&json!({})).go().await.fine();
    bench.settle().await;
    assert_eq!(bench.office.addresses(), ["10.1.0.102", "10.1.0.2"]);
    bench.says(&[("vm.a.test", 3), ("vm.hidden.test", 102)]).await;
    let (own, count) = bench.parked().await;
    assert_eq!(count, 1);
    // It sees what it may approve, and nothing of other workloads.
    let seen = bench.seen_by_token().await;
    assert_eq!(
        seen.iter().map(|(name, parked)| (name.as_str(), &parked["hash"])).collect::<Vec<_>>(),
        [("office", &json!(own))]
    );
    let plan = bench.house.get("/plans/office?all=true").by(&bench.token).go().await;
    let plan = plan.fine();
    assert_eq!(plan["parked"]["changes"], 1);
    assert!(plan.to_string().contains("10.1.0.2") && !plan.to_string().contains("10.1.0.102"), "{plan}");
    assert!(!plan.to_string().contains("hidden"), "{plan}");
    let status = bench.house.get("/status").by(&bench.token).go().await;
    assert!(status.fine().to_string().contains(&own), "{}", status.fine());
    assert_eq!(bench.approve(&own).await, 200);
    bench.settle().await;
    assert_eq!(bench.seen_by_token().await, [], "nothing is parked any more");
    bench.settle().await;
    assert_eq!(bench.office.addresses(), ["10.1.0.102", "10.1.0.3"]);
}

#[tokio::test]
async fn objects_of_a_workload_that_is_not_known_any_more_wait_for_a_token_without_scopes() {
    let bench = Bench::open(&[("vm.a.test", 1)]).await;
    // Another installation made these for a workload that this one never saw, so its names cannot be compared with the token.
    let key = "address:seen:10.1.0.9@gone".parse().unwrap();
    let fields = [
        ("address".to_owned(), FieldValue::Text("10.1.0.9".into())),
        ("dns_name".to_owned(), FieldValue::Text("gone.a.test".into())),
    ];
    let object = IpamObject {
        kind: ObjectKind::ADDRESS,
        id: "900".into(),
        mark: Some(ObjectMark { owner: "green".into(), key }),
        fields: fields.into(),
    };
    bench.office.0.lock().unwrap().insert(900, object);
    bench.settle().await;
    assert_eq!(bench.parked().await.0, "", "it is of another installation");
    bench.house.post("/recover").json(&json!({"owner": "green"})).go().await.fine();
    bench.settle().await;
    let (hash, count) = bench.parked().await;
    assert_eq!(count, 1);
    assert_eq!(bench.approve(&hash).await, 403);
    assert!(bench.office.addresses().contains(&"10.1.0.9".to_owned()));

    bench.house.post(&format!("/apply/{hash}")).json(&json!({})).go().await.fine();
    bench.settle().await;
    assert_eq!(bench.office.addresses(), ["10.1.0.1"]);
}
