//! NetBox itself, as an IPAM system.

use std::sync::{Arc, OnceLock};

use netstead_model::{
    Facts, Fence, FieldValue, Fields, IpamAddress, IpamInterface, IpamObject, IpamProvider, IpamSubject,
    ObjectChange, ObjectDraft, ObjectKey, ObjectUnit, ObjectWrite, ProviderError, UnitOutcome,
};
use netstead_providers::{
    Secret,
    contract::ipam::{self, IpamSubjectUnderTest},
    ipam::netbox::{Config, Made},
};
use netstead_testkit::NetBox;
use serde_json::{Value, json};

use crate::support::context;

/// Only one test at a time reads and writes: each looks at all objects.
async fn alone() -> tokio::sync::MutexGuard<'static, ()> {
    static TURN: OnceLock<tokio::sync::Mutex<()>> = OnceLock::new();
    TURN.get_or_init(tokio::sync::Mutex::default).lock().await
}

fn config(netbox: &NetBox, cluster: &str) -> Config {
    Config {
        cluster: Some(cluster.into()),
        make: vec![Made::Cluster],
        ..Config::new(netbox.url(), Secret::new(netbox.token()))
    }
}

fn open(config: &Config) -> Arc<dyn IpamProvider> {
    Arc::new(config.open(&context()).unwrap())
}

fn request(units: Vec<ObjectUnit>) -> ObjectWrite {
    ObjectWrite::new(units, Fence { owner: "blue".into(), epoch: 1, generation: 1 })
}

/// A machine with one interface.
pub fn machine(name: &str, addresses: &[&str]) -> IpamSubject {
    let address = |text: &&str| IpamAddress {
        address: text.parse().unwrap(),
        dns_name: Some(format!("{name}.lab.test").parse().unwrap()),
        claim: None,
        reserved: false,
    };
    let facts = Facts {
        cpus: Some(2),
        memory: Some(4 << 30),
        disk: Some(32 << 30),
        status: Some("running".into()),
        comments: Some("Made by hand.\n".into()),
        ..Facts::default()
    };
    IpamSubject {
        source: "pve".parse().unwrap(),
        id: name.parse().unwrap(),
        kind: "vm".into(),
        name: name.into(),
        tags: ["prod".to_owned(), "unheard-of".to_owned()].into(),
        facts,
        interfaces: vec![IpamInterface {
            name: "eth0".into(),
            mac: Some("02:00:00:00:77:01".parse().unwrap()),
            vlan: Some(77),
            addresses: addresses.iter().map(address).collect(),
        }],
        addresses: Vec::new(),
    }
}

/// Writes what is missing or differs, kind by kind and twice, as passes do: the second time for references to later kinds.
pub async fn settle(provider: &Arc<dyn IpamProvider>, subjects: &[IpamSubject]) -> Vec<UnitOutcome> {
    let mut outcomes = Vec::new();
    for _ in 0..2 {
        for kind in provider.capabilities().kinds {
            let there = provider.read().await.unwrap();
            let drafts = subjects.iter().flat_map(|subject| provider.objects(subject));
            let drafts = drafts.filter(|draft| draft.key.kind == kind.kind);
            let units: Vec<ObjectUnit> = drafts.filter_map(|draft| unit(&draft, &there)).collect();
            if !units.is_empty() {
                outcomes.extend(provider.write(&request(units)).await.unwrap().outcomes);
            }
        }
    }
    outcomes
}

/// The unit that brings one object in line. A reference to an object that is not there waits.
fn unit(draft: &ObjectDraft, there: &[IpamObject]) -> Option<ObjectUnit> {
    let of =
        |key: &ObjectKey| there.iter().find(|one| one.mark.as_ref().is_some_and(|mark| mark.key == *key));
    let mut fields = draft.fields.clone();
    fields.retain(|_, value| !matches!(value, FieldValue::Ref(target) if of(target).is_none()));
    let change = match of(&draft.key) {
        None => ObjectChange::Create { fields },
        Some(object) => {
            fields.retain(|name, value| object.fields.get(name) != Some(value));
            if fields.is_empty() {
                return None;
            }
            let before =
                fields.keys().filter_map(|name| Some((name.clone(), object.fields.get(name)?.clone())));
            ObjectChange::Update {
                id: object.id.clone(),
                adopted: false,
                before: before.collect(),
                after: fields,
            }
        }
    };
    Some(ObjectUnit { key: draft.key.clone(), change, needs: Vec::new() })
}

async fn find(provider: &Arc<dyn IpamProvider>, key: &str) -> IpamObject {
    let all = provider.read().await.unwrap();
    let found = all.into_iter().find(|one| one.mark.as_ref().is_some_and(|mark| mark.key.to_string() == key));
    found.unwrap_or_else(|| panic!("{key} should be there"))
}

fn delete(object: &IpamObject) -> ObjectUnit {
    let change = ObjectChange::Delete { id: object.id.clone(), before: object.fields.clone() };
    ObjectUnit { key: object.mark.clone().unwrap().key, change, needs: Vec::new() }
}

fn rejection(outcomes: &[UnitOutcome]) -> &str {
    match outcomes {
        [UnitOutcome::Rejected { reason }] => reason,
        other => panic!("it should be rejected: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn netbox_keeps_the_contract_with_a_token_of_either_version() {
    let Some(netbox) = NetBox::shared() else { return };
    let _turn = alone().await;
    netbox.make("/api/ipam/prefixes/", &json!({ "prefix": "10.7.7.0/24" }));
    let subject = |token: &str, network: &'static str| {
        let mut config = config(netbox, "contract");
        config.connection.token = Secret::new(token);
        let mut wrong = config.clone();
        wrong.connection.token = Secret::new("0000000000000000000000000000000000000000");
        let by_hand = |object: &IpamObject, field: &str, value: &str| {
            let at = format!("/api/ipam/ip-addresses/{}/", object.id);
            netbox.call("PATCH", &at, Some(&json!({ field: value })));
        };
        let subject = IpamSubjectUnderTest::new(open(&config), Some(open(&wrong)), by_hand);
        IpamSubjectUnderTest { network, ..subject }
    };
    ipam::all(&subject(netbox.token(), "10.7.7")).await;
    // The second round begins without the machines of the first.
    let path = "/api/virtualization/virtual-machines/";
    let ids: Vec<Value> = netbox.list(path).iter().map(|row| json!({ "id": row["id"] })).collect();
    netbox.call("DELETE", path, Some(&json!(ids)));
    let bearer = subject(netbox.bearer(), "10.7.8");
    ipam::objects_come_back_as_they_were_wanted(&bearer).await;
    ipam::fields_change_and_can_be_emptied(&bearer).await;
    ipam::strangers_are_refused_and_lose_nothing(&bearer).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_becomes_the_whole_cascade_and_a_second_run_writes_nothing() {
    let Some(netbox) = NetBox::shared() else { return };
    let _turn = alone().await;
    netbox.make("/api/ipam/prefixes/", &json!({ "prefix": "10.8.0.0/16" }));
    netbox.make("/api/ipam/prefixes/", &json!({ "prefix": "10.8.3.0/24" }));
    netbox.make("/api/ipam/vlans/", &json!({ "vid": 77, "name": "guests" }));
    netbox.make("/api/extras/tags/", &json!({ "name": "Prod", "slug": "prod" }));
    let kind_tags = [("vm".to_owned(), "qemu".to_owned())].into();
    let tenant = Some("Team Blue".to_owned());
    let make = vec![Made::Cluster, Made::Tenant];
    let provider = open(&Config { kind_tags, tenant, make, ..config(netbox, "lab") });
    let web = machine("web", &["10.8.3.11", "fd00:8::11"]);
    let outcomes = settle(&provider, std::slice::from_ref(&web)).await;
    assert!(outcomes.iter().all(|one| *one == UnitOutcome::Applied), "{outcomes:?}");
    let machines = netbox.list("/api/virtualization/virtual-machines/?name=web");
    let made = &machines[0];
    let tags: Vec<&str> =
        made["tags"].as_array().unwrap().iter().filter_map(|tag| tag["slug"].as_str()).collect();
    assert_eq!(
        json!([
            made["cluster"]["name"],
            made["status"]["value"],
            made["vcpus"],
            made["memory"],
            made["disk"],
            made["comments"],
            made["tenant"]["name"],
            tags
        ]),
        json!(["lab", "active", 2.0, 4096, 32768, "Made by hand.", "Team Blue", ["prod", "qemu"]])
    );
    assert_eq!(made["primary_ip4"]["address"], "10.8.3.11/24", "the longest prefix has the mask");
    assert_eq!(made["primary_ip6"]["address"], "fd00:8::11/128");
    let interfaces =
        netbox.list(&format!("/api/virtualization/interfaces/?virtual_machine_id={}", made["id"]));
    let interface = &interfaces[0];
    assert_eq!(
        json!([
            interface["name"],
            interface["mac_address"],
            interface["untagged_vlan"]["vid"],
            interface["mode"]["value"]
        ]),
        json!(["eth0", "02:00:00:00:77:01", 77, "access"])
    );
    let addresses = netbox.list("/api/ipam/ip-addresses/?address=10.8.3.11");
    assert_eq!(
        json!([
            addresses[0]["dns_name"],
            addresses[0]["status"]["value"],
            addresses[0]["assigned_object_id"]
        ]),
        json!(["web.lab.test", "active", interface["id"]])
    );
    let changes = || netbox.call("GET", "/api/core/object-changes/?limit=1", None)["count"].clone();
    let before = changes();
    assert_eq!(settle(&provider, std::slice::from_ref(&web)).await, []);
    assert_eq!(changes(), before, "a second run writes nothing");

    // The machine does not go while something that others made hangs on it.
    let theirs = netbox.make(
        "/api/virtualization/interfaces/",
        &json!({ "virtual_machine": made["id"], "name": "by-hand" }),
    );
    for key in [
        "address:pve:10.8.3.11@web",
        "address:pve:fd00:8::11@web",
        "mac:pve:eth0@web",
        "interface:pve:eth0@web",
    ] {
        let object = find(&provider, key).await;
        let outcomes = provider.write(&request(vec![delete(&object)])).await.unwrap().outcomes;
        assert_eq!(outcomes, [UnitOutcome::Applied], "{key}");
    }
    let object = find(&provider, "machine:pve:@web").await;
    let outcomes = provider.write(&request(vec![delete(&object)])).await.unwrap().outcomes;
    assert_eq!(rejection(&outcomes), "interface by-hand still hangs on it, and NetBox would remove that too");
    netbox.call("DELETE", &format!("/api/virtualization/interfaces/{theirs}/"), None);
    let outcomes = provider.write(&request(vec![delete(&object)])).await.unwrap().outcomes;
    assert_eq!(outcomes, [UnitOutcome::Applied]);
    assert!(netbox.list("/api/virtualization/virtual-machines/?name=web").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_made_stays_and_nothing_is_made_that_is_not_allowed() {
    let Some(netbox) = NetBox::shared() else { return };
    let _turn = alone().await;
    let theirs =
        netbox.make("/api/ipam/ip-addresses/", &json!({ "address": "10.9.3.9/24", "dns_name": "printer" }));
    let provider = open(&config(netbox, "others"));
    let printer = machine("printer", &["10.9.3.9"]);
    let outcomes = settle(&provider, std::slice::from_ref(&printer)).await;
    let rejected = outcomes.iter().find(|one| **one != UnitOutcome::Applied).unwrap().clone();
    assert_eq!(rejection(&[rejected]), format!("10.9.3.9 is there already, with the id {theirs}"));
    let strict = open(&Config { make: Vec::new(), ..config(netbox, "nowhere") });
    let drafts = strict.objects(&machine("lost", &[]));
    let draft = drafts.iter().find(|draft| draft.key.kind.as_str() == "machine").unwrap();
    let create = ObjectChange::Create { fields: draft.fields.clone() };
    let units = vec![ObjectUnit { key: draft.key.clone(), change: create, needs: Vec::new() }];
    let outcomes = strict.write(&request(units)).await.unwrap().outcomes;
    assert_eq!(
        rejection(&outcomes),
        "there is no cluster `nowhere`: add it to NetBox, or write `make = [\"cluster\"]`"
    );
    let refused = open(&Config { vrf: Some("none".into()), ..config(netbox, "others") }).read().await;
    assert!(
        matches!(&refused, Err(ProviderError::Malformed { reason, .. }) if reason == "it has no vrf `none`: add it there, or write `make = [\"vrf\"]`"),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_may_only_read_reads_and_is_told_the_command_for_the_custom_field() {
    let Some(netbox) = NetBox::shared() else { return };
    let _turn = alone().await;
    // The field of the other tests is made by one that may.
    let mut writer = config(netbox, "others");
    settle(&open(&writer), &[machine("field", &[])]).await;
    let reader = |field: &str| {
        let mut config = config(netbox, "others");
        config.connection.token = Secret::new(netbox.reader());
        config.connection.key_field = field.into();
        open(&config)
    };
    let provider = reader("netstead_key");
    provider.read().await.unwrap();
    let drafts = provider.objects(&machine("late", &[]));
    let create = ObjectChange::Create { fields: drafts[0].fields.clone() };
    let unit = ObjectUnit { key: drafts[0].key.clone(), change: create, needs: Vec::new() };
    let refused = provider.write(&request(vec![unit])).await;
    assert!(matches!(refused, Err(ProviderError::Denied { .. })), "{refused:?}");
    let told = provider.diagnose().await;
    assert!(told.iter().any(|one| one.text == "the token may not add virtual machines"), "{told:?}");
    let refused = reader("netstead_other").read().await;
    let Err(ProviderError::Malformed { reason, .. }) = refused else { panic!("{refused:?}") };
    assert!(reason.starts_with("there is no custom field `netstead_other`"), "{reason}");
    let body = reason.split_once("-d '").unwrap().1.trim_end_matches('\'');
    netbox.call("POST", "/api/extras/custom-fields/", Some(&serde_json::from_str(body).unwrap()));
    reader("netstead_other").read().await.unwrap();
    writer.connection.key_field = "netstead_other".into();
    assert!(open(&writer).read().await.unwrap().iter().all(|one| one.mark.is_none()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_people_that_came_first_stays() {
    let Some(netbox) = NetBox::shared() else { return };
    let _turn = alone().await;
    let provider = open(&config(netbox, "others"));
    settle(&provider, &[machine("both", &[])]).await;
    let object = find(&provider, "machine:pve:@both").await;
    netbox.call(
        "PATCH",
        &format!("/api/virtualization/virtual-machines/{}/", object.id),
        Some(&json!({ "comments": "mine" })),
    );
    let text = |text: &str| FieldValue::Text(text.into());
    let update = |before: &str, after: &str| ObjectUnit {
        key: object.mark.clone().unwrap().key,
        change: ObjectChange::Update {
            id: object.id.clone(),
            adopted: false,
            before: Fields::from([("comments".to_owned(), text(before))]),
            after: Fields::from([("comments".to_owned(), text(after))]),
        },
        needs: Vec::new(),
    };
    let outcomes = provider.write(&request(vec![update("Made by hand.", "ours")])).await.unwrap().outcomes;
    assert_eq!(outcomes, [UnitOutcome::Changed]);
    let outcomes = provider.write(&request(vec![update("mine", "ours")])).await.unwrap().outcomes;
    assert_eq!(outcomes, [UnitOutcome::Applied]);
    assert_eq!(find(&provider, "machine:pve:@both").await.fields["comments"], text("ours"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_a_claim_holds_is_filled_in_and_only_emptied_again() {
    let Some(netbox) = NetBox::shared() else { return };
    let _turn = alone().await;
    let provider = open(&config(netbox, "claims"));
    // The first object makes the custom field.
    settle(&provider, &[machine("first", &[])]).await;
    netbox.make("/api/ipam/prefixes/", &json!({ "prefix": "10.11.0.0/24" }));
    let claim = |address: &str, key: &str| {
        let custom = json!({ "netstead_key": format!("[netstead-claim {key}]") });
        let body =
            json!({ "address": address, "description": "claim `web` of `alice`", "custom_fields": custom });
        netbox.make("/api/ipam/ip-addresses/", &body)
    };
    let claimed = claim("10.11.0.7/24", "blue/lan/web");
    let foreign = claim("10.11.0.8/24", "green/lan/db");
    let web = machine("claimed", &["10.11.0.7"]);
    let outcomes = settle(&provider, std::slice::from_ref(&web)).await;
    assert!(outcomes.iter().all(|one| *one == UnitOutcome::Applied), "{outcomes:?}");
    let object = find(&provider, "address:pve:10.11.0.7@claimed").await;
    assert_eq!(object.id, claimed.to_string(), "the object of the claim, and no other one");
    let drafts = provider.objects(&web);
    let draft = drafts.iter().find(|draft| draft.key.kind.as_str() == "address").unwrap();
    for (name, value) in &draft.fields {
        assert_eq!(object.fields.get(name), Some(value), "{name}");
    }
    let now = || netbox.call("GET", &format!("/api/ipam/ip-addresses/{claimed}/"), None);
    let mark = now()["custom_fields"]["netstead_key"].as_str().unwrap().to_owned();
    assert!(mark.starts_with("[netstead blue ") && mark.ends_with("[netstead-claim blue/lan/web]"), "{mark}");
    assert_eq!(settle(&provider, std::slice::from_ref(&web)).await, [], "a second run writes nothing");
    let machine_of = |name: &str| {
        netbox.list(&format!("/api/virtualization/virtual-machines/?name={name}")).into_iter().next().unwrap()
    };
    assert_eq!(machine_of("claimed")["primary_ip4"]["id"], claimed);

    // Its guest is removed: all objects are, but the address stays, empty, with the key of its claim.
    for key in [
        "address:pve:10.11.0.7@claimed",
        "mac:pve:eth0@claimed",
        "interface:pve:eth0@claimed",
        "machine:pve:@claimed",
    ] {
        let mut object = find(&provider, key).await;
        // The description is the claim's.
        object.fields.remove("description");
        let outcomes = provider.write(&request(vec![delete(&object)])).await.unwrap().outcomes;
        assert_eq!(outcomes, [UnitOutcome::Applied], "{key}");
    }
    assert!(netbox.list("/api/virtualization/virtual-machines/?name=claimed").is_empty());
    let left = now();
    assert_eq!(
        json!([
            left["address"],
            left["dns_name"],
            left["assigned_object_id"],
            left["description"],
            left["custom_fields"]["netstead_key"]
        ]),
        json!(["10.11.0.7/24", "", null, "claim `web` of `alice`", "[netstead-claim blue/lan/web]"])
    );
    let all = provider.read().await.unwrap();
    assert!(all.iter().all(|one| one.id != claimed.to_string() || one.kind.as_str() != "address"));
    // An address that another Netstead claimed is left alone.
    let before = netbox.call("GET", &format!("/api/ipam/ip-addresses/{foreign}/"), None);
    let outcomes = settle(&provider, &[machine("other", &["10.11.0.8"])]).await;
    let rejected = outcomes.iter().find(|one| **one != UnitOutcome::Applied).unwrap().clone();
    assert_eq!(rejection(&[rejected]), "10.11.0.8 is claimed as `green/lan/db`");
    assert_eq!(netbox.call("GET", &format!("/api/ipam/ip-addresses/{foreign}/"), None), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vrf_that_is_yet_to_be_made_has_nothing_of_the_global_table() {
    let Some(netbox) = NetBox::shared() else { return };
    let _turn = alone().await;
    netbox.make("/api/ipam/prefixes/", &json!({ "prefix": "10.10.0.0/24" }));
    let theirs =
        netbox.make("/api/ipam/ip-addresses/", &json!({ "address": "10.10.0.9/24", "dns_name": "theirs" }));
    let make = vec![Made::Cluster, Made::Vrf];
    let late = Config { vrf: Some("late".into()), make, ..config(netbox, "late") };
    let provider = open(&late);
    assert!(provider.read().await.unwrap().iter().all(|one| one.kind.as_str() != "address"));
    let web = machine("late-web", &["10.10.0.9"]);
    let draft = provider.objects(&web).into_iter().find(|one| one.key.kind.as_str() == "address").unwrap();
    assert_eq!(
        draft.fields["address"],
        FieldValue::Text("10.10.0.9/32".into()),
        "no prefix of the VRF holds it"
    );
    let outcomes = settle(&provider, std::slice::from_ref(&web)).await;
    assert!(outcomes.iter().all(|one| *one == UnitOutcome::Applied), "{outcomes:?}");
    let all = netbox.list("/api/ipam/ip-addresses/?address=10.10.0.9");
    let shown: Vec<Value> =
        all.iter().map(|one| json!([one["id"] == theirs, one["address"], one["vrf"]["name"]])).collect();
    assert_eq!(json!(shown), json!([[true, "10.10.0.9/24", null], [false, "10.10.0.9/32", "late"]]));
    assert_eq!(settle(&provider, &[web]).await, [], "a second run writes nothing");
}
