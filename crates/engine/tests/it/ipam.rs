//! An IPAM system in the same loop as DNS servers: waves, outcomes, guards, pauses, restarts, cleaning.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use netstead_engine::{ChangeQuery, Cleaning, Engine, IpamSetup, Scope, Setup};
use netstead_model::{
    FieldValue, Interface, IpamCapabilities, IpamObject, IpamProvider, ObjectChange, ObjectKind, ObjectMark,
    ObjectWrite, ProviderError, UnitOutcome, View, Workload, WriteReply, standard_kinds,
};
use netstead_plan::{Digest, ipam::IpamSettings};

use crate::world::*;

/// A system in memory.
#[derive(Debug, Default)]
struct Office {
    objects: Mutex<BTreeMap<u32, IpamObject>>,
    /// Sizes of the calls that wrote.
    calls: Mutex<Vec<usize>>,
    /// The answer to the next call.
    fails: Mutex<Option<ProviderError>>,
    rejects: Mutex<BTreeSet<ObjectKind>>,
}

#[async_trait]
impl IpamProvider for Office {
    fn kind(&self) -> &'static str {
        "office"
    }

    fn server(&self) -> String {
        "office".into()
    }

    fn capabilities(&self) -> IpamCapabilities {
        IpamCapabilities { kinds: standard_kinds(), most_units: None }
    }

    async fn read(&self) -> Result<Vec<IpamObject>, ProviderError> {
        Ok(self.objects.lock().unwrap().values().cloned().collect())
    }

    async fn write(&self, request: &ObjectWrite) -> Result<WriteReply, ProviderError> {
        request.guard.permit().await?;
        self.calls.lock().unwrap().push(request.units.len());
        if let Some(error) = self.fails.lock().unwrap().take() {
            return Err(error);
        }
        let mut objects = self.objects.lock().unwrap();
        let mut outcomes = Vec::new();
        for unit in &request.units {
            if self.rejects.lock().unwrap().contains(&unit.key.kind) {
                outcomes.push(UnitOutcome::Rejected { reason: "not today".into() });
                continue;
            }
            match &unit.change {
                ObjectChange::Create { fields } => {
                    let number = objects.keys().next_back().map_or(1, |last| last + 1);
                    let mark = Some(ObjectMark { owner: request.fence.owner.clone(), key: unit.key.clone() });
                    let (kind, id, fields) = (unit.key.kind.clone(), number.to_string(), fields.clone());
                    objects.insert(number, IpamObject { kind, id, mark, fields });
                }
                ObjectChange::Update { id, before, after, .. } => {
                    let object = objects.get_mut(&id.parse().unwrap()).unwrap();
                    let owner = request.fence.owner.clone();
                    object.mark = Some(ObjectMark { owner, key: unit.key.clone() });
                    object.fields.retain(|name, _| !before.contains_key(name));
                    object.fields.extend(after.clone());
                }
                ObjectChange::Delete { id, .. } => {
                    objects.remove(&id.parse().unwrap());
                }
            }
            outcomes.push(UnitOutcome::Applied);
        }
        Ok(outcomes.into())
    }
}

impl Office {
    fn count(&self) -> usize {
        self.objects.lock().unwrap().len()
    }

    /// Kinds and names of fields with their values, in the order of creation.
    fn shown(&self) -> Vec<String> {
        let objects = self.objects.lock().unwrap();
        let fields = |object: &IpamObject| -> Vec<String> {
            object.fields.iter().map(|(name, value)| format!("{name}={value}")).collect()
        };
        objects.values().map(|object| format!("{} {}", object.kind, fields(object).join(" "))).collect()
    }
}

fn machine(id: &str, address: &str) -> Workload {
    let addresses = vec![address.parse().unwrap()];
    let interface = Interface { name: Some("eth0".into()), addresses, ..Interface::default() };
    Workload { interfaces: vec![interface], ..vm(id, address) }
}

fn setup(world: &World, office: &Arc<Office>) -> Setup {
    let settings = IpamSettings::new(ident("office"), "blue".parse().unwrap());
    let ipam = vec![IpamSetup::new(settings, office.clone(), Digest::of(["office"]))];
    Setup { ipam, ..world.setup() }
}

/// Passes until nothing follows any more.
async fn settle(engine: &Engine) {
    for _ in 0..3 {
        engine.apply(None).await.unwrap();
    }
}

async fn begin(office: &Arc<Office>, workloads: Vec<Workload>) -> (World, Engine) {
    let world = World::new();
    world.source.says(View::Complete, workloads, &[]);
    let engine = world.start_with(setup(&world, office)).await;
    settle(&engine).await;
    (world, engine)
}

#[tokio::test]
async fn objects_come_in_waves_and_the_next_pass_and_a_restart_write_nothing() {
    let office = Arc::new(Office::default());
    let (world, engine) = begin(&office, vec![machine("v1", "10.0.0.1"), machine("v2", "10.0.0.2")]).await;
    assert_eq!(
        office.shown(),
        [
            "machine name=v1 primary_ip4=10.0.0.1 type=vm",
            "machine name=v2 primary_ip4=10.0.0.2 type=vm",
            "interface machine=v1 name=eth0",
            "interface machine=v2 name=eth0",
            "address address=10.0.0.1 dns_name=v1.example.com interface=eth0 status=active",
            "address address=10.0.0.2 dns_name=v2.example.com interface=eth0 status=active",
        ]
    );
    assert_eq!(*office.calls.lock().unwrap(), [2, 2, 2, 2], "machines, interfaces, addresses, primaries");
    let status = engine.status();
    let seen = status.providers.iter().find(|one| one.ipam).unwrap();
    assert_eq!((seen.owned, seen.in_sync, seen.generation), (6, true, 2));
    engine.close().await;
    let engine = world.start_with(setup(&world, &office)).await;
    settle(&engine).await;
    assert_eq!(office.calls.lock().unwrap().len(), 4);
    let query = ChangeQuery { provider: Some(ident("office")), limit: 100, ..ChangeQuery::default() };
    let changes = engine.changes(&query).await.unwrap().changes;
    let objects: BTreeSet<String> =
        changes.iter().filter_map(|one| one.object.as_ref()).map(ToString::to_string).collect();
    assert!(objects.contains("address:pve:10.0.0.1@v1"), "{objects:?}");
    engine.close().await;
}

#[tokio::test]
async fn a_step_whose_need_is_rejected_is_not_tried_and_dns_goes_on() {
    let office = Arc::new(Office::default());
    office.rejects.lock().unwrap().insert(ObjectKind::INTERFACE);
    let (world, engine) = begin(&office, vec![machine("v1", "10.0.0.1")]).await;
    assert_eq!(office.shown(), ["machine name=v1 type=vm"]);
    let status = engine.status();
    let seen = status.providers.iter().find(|one| one.ipam).unwrap();
    assert_eq!(seen.rejected_objects.len(), 1);
    assert_eq!(seen.rejected_objects[0].1, "not today");
    assert!(world.server().has("v1.example.com", "A 10.0.0.1"));
    office.rejects.lock().unwrap().clear();
    world.minutes(&engine, 3).await;
    assert_eq!(office.count(), 3);
    engine.close().await;
}

#[tokio::test]
async fn an_unknown_outcome_is_read_and_nothing_is_made_twice() {
    let office = Arc::new(Office::default());
    let reason = "the answer was lost".to_owned();
    *office.fails.lock().unwrap() = Some(ProviderError::Unknown { server: "office".into(), reason });
    let (_world, engine) = begin(&office, vec![machine("v1", "10.0.0.1")]).await;
    settle(&engine).await;
    assert_eq!(office.count(), 3);
    engine.close().await;
}

#[tokio::test]
async fn a_pause_holds_it_and_a_value_of_others_stays() {
    let office = Arc::new(Office::default());
    let (world, engine) = begin(&office, vec![machine("v1", "10.0.0.1")]).await;
    let hand = FieldValue::Text("by hand".into());
    office.objects.lock().unwrap().get_mut(&1).unwrap().fields.insert("name".into(), hand.clone());
    engine.pause(Scope::Provider(ident("office")), None, None, "alice").await.unwrap();
    world.source.says(View::Complete, vec![machine("v1", "10.0.0.1"), machine("v2", "10.0.0.2")], &[]);
    settle(&engine).await;
    assert_eq!(office.count(), 3);
    engine.resume(Scope::Provider(ident("office")), "alice").await.unwrap();
    settle(&engine).await;
    assert_eq!(office.count(), 6);
    assert_eq!(office.objects.lock().unwrap()[&1].fields.get("name"), Some(&hand));
    let plans = engine.ipam_plans();
    assert_eq!(plans[0].1.drift.len(), 1);
    engine.close().await;
}

#[tokio::test]
async fn clean_removes_only_marked_objects_and_a_vanished_table_is_detached() {
    let office = Arc::new(Office::default());
    let foreign =
        IpamObject { kind: ObjectKind::MACHINE, id: "1".into(), mark: None, fields: BTreeMap::new() };
    office.objects.lock().unwrap().insert(1, foreign);
    let (world, engine) = begin(&office, vec![machine("v1", "10.0.0.1")]).await;
    assert_eq!(office.count(), 4);
    engine.reconfigure(world.setup()).await.unwrap();
    let detached = engine.status().detached;
    assert_eq!((detached.len(), detached[0].owned, detached[0].ipam), (1, 3, true));
    engine.reconfigure(setup(&world, &office)).await.unwrap();
    settle(&engine).await;
    let what = Cleaning::Provider(ident("office"));
    let shown = engine.clean(&what, true, None, "alice").await.unwrap();
    assert_eq!((shown.plans[0].steps(), office.count()), (3, 4));
    let done = engine.clean(&what, false, Some(&shown.hash), "alice").await.unwrap();
    assert_eq!((done.reports[0].applied, office.count()), (3, 1));
    assert_eq!(done.paused, [ident("office")]);
    engine.close().await;
}

#[tokio::test]
async fn an_object_in_the_way_is_adopted_and_drift_is_restored_or_accepted() {
    let office = Arc::new(Office::default());
    let text = |text: &str| FieldValue::Text(text.into());
    let fields = [("address".to_owned(), text("10.0.0.1")), ("status".to_owned(), text("dhcp"))].into();
    let foreign = IpamObject { kind: ObjectKind::ADDRESS, id: "1".into(), mark: None, fields };
    office.objects.lock().unwrap().insert(1, foreign);
    let (_world, engine) = begin(&office, vec![machine("v1", "10.0.0.1")]).await;
    let key: netstead_model::ObjectKey = "address:pve:10.0.0.1@v1".parse().unwrap();
    let seen = engine.adopt_object(&key, None, false, true, "alice").await.unwrap();
    assert_eq!(seen[0].objects[0].id.as_deref(), Some("1"));
    assert_eq!(office.objects.lock().unwrap()[&1].mark, None, "a dry run writes nothing");
    engine.adopt_object(&key, None, false, false, "alice").await.unwrap();
    settle(&engine).await;
    let status = |office: &Office| office.objects.lock().unwrap()[&1].fields["status"].clone();
    assert_eq!(office.objects.lock().unwrap()[&1].mark.as_ref().unwrap().key, key);
    assert_eq!(status(&office), text("active"));
    let hand = |value| {
        let mut objects = office.objects.lock().unwrap();
        objects.get_mut(&1).unwrap().fields.insert("status".into(), text(value));
    };
    hand("reserved");
    settle(&engine).await;
    assert_eq!(status(&office), text("reserved"));
    engine.adopt_object(&key, Some(&ident("office")), false, false, "alice").await.unwrap();
    settle(&engine).await;
    assert_eq!(status(&office), text("active"), "restored");
    hand("dhcp");
    settle(&engine).await;
    engine.adopt_object(&key, None, true, false, "alice").await.unwrap();
    settle(&engine).await;
    assert_eq!((status(&office), engine.ipam_plans()[0].1.drift.len()), (text("dhcp"), 0), "accepted");
    let again = engine.adopt_object(&key, None, false, false, "alice").await;
    assert!(again.is_err(), "nothing is left to take over");
    engine.close().await;
}

#[tokio::test]
async fn what_a_lost_store_had_is_recovered_by_the_marks_and_removals_wait_for_a_person() {
    let office = Arc::new(Office::default());
    let (_, engine) = begin(&office, vec![machine("v1", "10.0.0.1"), machine("v2", "10.0.0.2")]).await;
    engine.close().await;
    let marked = office.objects.lock().unwrap().values().next().unwrap().mark.clone().unwrap();
    let world = World::new();
    world.source.says(View::Complete, vec![machine("v1", "10.0.0.1")], &[]);
    let settings = IpamSettings::new(ident("office"), "green".parse().unwrap());
    let ipam = vec![IpamSetup::new(settings, office.clone(), Digest::of(["office"]))];
    let engine = world.start_with(Setup { ipam, ..world.setup() }).await;
    settle(&engine).await;
    assert_eq!(office.count(), 6, "objects of another installation stay");
    let seen = engine.recover(marked.owner.parse().unwrap(), None, false, "alice").await.unwrap();
    let office_report = seen.iter().find(|one| one.provider == ident("office")).unwrap();
    assert_eq!((office_report.objects.len(), office_report.error.clone()), (6, None));
    settle(&engine).await;
    let status = engine.status();
    let parked = status.providers.iter().find(|one| one.ipam).unwrap().parked.clone().unwrap();
    assert_eq!((parked.count, office.count()), (3, 6));
    engine.approve(&parked.hash, "alice").await.unwrap();
    settle(&engine).await;
    assert_eq!(office.count(), 3);
    engine.close().await;
}

#[tokio::test]
async fn a_rollback_makes_objects_again_and_pauses() {
    let office = Arc::new(Office::default());
    let (world, engine) = begin(&office, vec![machine("v1", "10.0.0.1")]).await;
    let generation = engine.status().providers.iter().find(|one| one.ipam).unwrap().generation;
    world.source.says(View::Complete, vec![machine("v1", "10.0.0.1"), machine("v2", "10.0.0.2")], &[]);
    settle(&engine).await;
    assert_eq!(office.count(), 6);
    let name = ident("office");
    let shown = engine.rollback(generation, Some(&name), true, None, "alice").await.unwrap();
    assert_eq!((shown.plans[0].steps(), office.count()), (3, 6));
    let done = engine.rollback(generation, Some(&name), false, Some(&shown.hash), "alice").await.unwrap();
    assert_eq!((done.reports[0].applied, office.count(), done.paused), (3, 3, vec![name]));
    engine.close().await;
}

#[tokio::test]
async fn what_a_detached_source_brought_is_cleaned_from_dns_and_ipam() {
    let office = Arc::new(Office::default());
    let (world, engine) = begin(&office, vec![machine("v1", "10.0.0.1")]).await;
    let mut without = setup(&world, &office);
    without.sources.clear();
    engine.reconfigure(without).await.unwrap();
    settle(&engine).await;
    let what = Cleaning::Source(ident("pve"));
    let shown = engine.clean(&what, true, None, "alice").await.unwrap();
    let providers: Vec<_> =
        shown.plans.iter().map(|plan| (plan.provider().to_string(), plan.steps())).collect();
    assert!(providers.contains(&("office".to_owned(), 3)), "{providers:?}");
    engine.clean(&what, false, Some(&shown.hash), "alice").await.unwrap();
    assert_eq!(office.count(), 0);
    assert!(!world.server().has("v1.example.com", "A 10.0.0.1"));
    engine.close().await;
}

#[tokio::test]
async fn explain_says_where_a_name_is_on_an_ipam_system() {
    let office = Arc::new(Office::default());
    let (_world, engine) = begin(&office, vec![machine("v1", "10.0.0.1")]).await;
    let said = engine.explain(&"v1.example.com".parse().unwrap(), None).await;
    let wanted = "office: address:pve:10.0.0.1@v1 with dns_name v1.example.com is ours there.";
    assert!(said.iter().any(|one| one == wanted), "{said:#?}");
    engine.close().await;
}

#[tokio::test]
async fn many_removed_workloads_wait_for_the_hash() {
    let office = Arc::new(Office::default());
    let fleet: Vec<Workload> = (1..30).map(|n| machine(&format!("v{n}"), &format!("10.0.0.{n}"))).collect();
    let (world, engine) = begin(&office, fleet.clone()).await;
    assert_eq!(office.count(), 87);
    world.source.says(View::Complete, fleet[12..].to_vec(), &[]);
    world.minutes(&engine, 8).await;
    assert_eq!(office.count(), 87);
    let status = engine.status();
    let parked = status.providers.iter().find(|one| one.ipam).unwrap().parked.clone().unwrap();
    assert_eq!(parked.count, 36);
    engine.approve(&parked.hash, "alice").await.unwrap();
    settle(&engine).await;
    assert_eq!(office.count(), 51);
    engine.close().await;
}
