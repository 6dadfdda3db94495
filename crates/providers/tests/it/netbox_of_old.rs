//! NetBox 3.7 and faults, on a fake that knows no filter and names no member of a batch.

use std::sync::Arc;

use netstead_model::{
    Fence, FieldValue, IpamObject, IpamProvider, ObjectChange, ObjectUnit, ObjectWrite, ProviderError,
    UnitOutcome,
};
use netstead_providers::{
    Secret,
    contract::ipam::{self, IpamSubjectUnderTest},
    ipam::netbox::{Config, Made},
};
use netstead_settings::Configured as _;
use netstead_testkit::{FakeNetBox, HttpFault};
use serde_json::json;

use crate::{
    netbox::{machine, settle},
    support::context,
};

const ADDRESSES: &str = "/api/ipam/ip-addresses/";
const MACHINES: &str = "/api/virtualization/virtual-machines/";

fn config(fake: &FakeNetBox) -> Config {
    let config = Config::new(fake.url(), Secret::new(fake.token()));
    Config { cluster: Some("lab".into()), make: vec![Made::Cluster], ..config }
}

fn open(config: &Config) -> Arc<dyn IpamProvider> {
    Arc::new(config.open(&context()).unwrap())
}

#[tokio::test]
async fn netbox_3_7_keeps_the_contract() {
    let fake = Arc::new(FakeNetBox::start("3.7"));
    let mut wrong = config(&fake);
    wrong.connection.token = Secret::new("wrong");
    let hand = Arc::clone(&fake);
    let by_hand = move |object: &IpamObject, field: &str, value: &str| {
        hand.set(ADDRESSES, object.id.parse().unwrap(), field, &json!(value));
    };
    ipam::all(&IpamSubjectUnderTest::new(open(&config(&fake)), Some(open(&wrong)), by_hand)).await;
    assert!(fake.http().requests().iter().all(|one| one.path.ends_with('/')));
}

#[tokio::test]
async fn netbox_3_7_has_macs_in_interfaces_and_disks_in_gigabytes() {
    let fake = FakeNetBox::start("3.7");
    fake.put("/api/ipam/prefixes/", &json!({ "prefix": "10.8.0.0/16", "status": "active", "vrf": null }));
    let provider = open(&config(&fake));
    let web = machine("web", &["10.8.3.11"]);
    let outcomes = settle(&provider, std::slice::from_ref(&web)).await;
    assert!(outcomes.iter().all(|one| *one == UnitOutcome::Applied), "{outcomes:?}");
    let made = &fake.list(MACHINES)[0];
    assert_eq!(
        json!([made["disk"], made["memory"], made["primary_ip4"]["address"]]),
        json!([32, 4096, "10.8.3.11/16"])
    );
    assert_eq!(fake.list("/api/virtualization/interfaces/")[0]["mac_address"], "02:00:00:00:77:01");
    assert!(fake.list("/api/dcim/mac-addresses/").is_empty());
    let field = &fake.list("/api/extras/custom-fields/")[0];
    assert!(field["content_types"].as_array().unwrap().iter().all(|one| one != "dcim.macaddress"), "{field}");
    assert_eq!(settle(&provider, std::slice::from_ref(&web)).await, [], "a second run writes nothing");
    let old = open(&config(&FakeNetBox::start("3.6"))).read().await;
    let Err(ProviderError::Malformed { reason, .. } | ProviderError::Unreachable { reason, .. }) = old else {
        panic!("{old:?}")
    };
    assert!(!reason.is_empty());
}

/// Creates of machines, one of which NetBox refuses.
fn creates(provider: &Arc<dyn IpamProvider>, names: &[&str]) -> ObjectWrite {
    let unit = |name: &&str| {
        let draft =
            provider.objects(&machine(name, &[])).into_iter().find(|one| one.key.part.is_empty()).unwrap();
        let mut fields = draft.fields;
        if *name == "refused" {
            fields.insert("name".into(), FieldValue::Text("x".repeat(65)));
        }
        ObjectUnit { key: draft.key, change: ObjectChange::Create { fields }, needs: Vec::new() }
    };
    let units = names.iter().map(unit).collect();
    ObjectWrite::new(units, Fence { owner: "blue".into(), epoch: 1, generation: 1 })
}

#[tokio::test]
async fn a_refused_member_is_found_by_halving_and_the_others_are_made() {
    let fake = FakeNetBox::start("4.4");
    let provider = open(&config(&fake));
    provider.read().await.unwrap();
    let names = ["a", "b", "c", "refused", "e", "f", "g"];
    let outcomes = provider.write(&creates(&provider, &names)).await.unwrap().outcomes;
    for (name, outcome) in names.iter().zip(&outcomes) {
        let wanted = match *name {
            "refused" => UnitOutcome::Rejected { reason: "A name is too long.".into() },
            _ => UnitOutcome::Applied,
        };
        assert_eq!(*outcome, wanted, "{name}");
    }
    assert_eq!(fake.list(MACHINES).len(), 6);
}

#[tokio::test]
async fn a_busy_server_is_left_alone_and_lost_answers_make_no_object_twice() {
    let fake = FakeNetBox::start("4.7");
    let provider = open(&config(&fake));
    provider.read().await.unwrap();
    let post = |request: &netstead_testkit::HttpRequest| {
        request.method == "POST" && request.path.starts_with(MACHINES)
    };
    fake.http().fail(0, 1, HttpFault::status(429, Some(30)), post);
    let refused = provider.write(&creates(&provider, &["a", "b"])).await;
    assert!(
        matches!(refused, Err(ProviderError::Busy { retry_after: Some(wait), .. }) if wait.as_secs() == 30),
        "{refused:?}"
    );
    for fault in [HttpFault::Lost, HttpFault::Half, HttpFault::status(502, None)] {
        fake.http().fail(0, 1, fault, post);
        let reply = provider.write(&creates(&provider, &["a", "b"])).await.unwrap();
        if reply.stopped.is_some() {
            assert_eq!(reply.outcomes, [UnitOutcome::Unknown, UnitOutcome::Unknown]);
        } else {
            // The first answer was lost, and its objects are found.
            assert_eq!(reply.outcomes, [UnitOutcome::Applied, UnitOutcome::Applied]);
        }
        assert!(fake.list(MACHINES).len() <= 2);
    }
    let reply = provider.write(&creates(&provider, &["a", "b"])).await.unwrap();
    assert_eq!(reply.outcomes, [UnitOutcome::Applied, UnitOutcome::Applied]);
    assert_eq!(fake.list(MACHINES).len(), 2);
    // Half a list is no list.
    fake.http().fail(0, 3, HttpFault::Half, |request| request.path.starts_with(MACHINES));
    assert!(provider.read().await.is_err());
    assert_eq!(provider.read().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_vrf_that_cannot_be_made_is_the_reason_and_not_an_address_of_the_global_table() {
    let fake = FakeNetBox::start("4.7");
    fake.put("/api/ipam/prefixes/", &json!({ "prefix": "10.8.3.0/24", "status": "active", "vrf": null }));
    let theirs = json!({ "address": "10.8.3.11/24", "status": "active", "vrf": null, "dns_name": "printer" });
    fake.put(ADDRESSES, &theirs);
    let late = Config { vrf: Some("late".into()), make: vec![Made::Cluster, Made::Vrf], ..config(&fake) };
    let provider = open(&late);
    provider.read().await.unwrap();
    let draft = |name: &str, address: &str| {
        let all = provider.objects(&machine(name, &[address]));
        all.into_iter().find(|one| one.key.kind.as_str() == "address").unwrap()
    };
    let web = draft("web", "10.8.3.11");
    assert_eq!(web.fields["address"], FieldValue::Text("10.8.3.11/32".into()));
    let write = |draft: netstead_model::ObjectDraft| {
        let mut fields = draft.fields;
        fields.retain(|_, value| !matches!(value, FieldValue::Ref(_)));
        let unit = ObjectUnit { key: draft.key, change: ObjectChange::Create { fields }, needs: Vec::new() };
        ObjectWrite::new(vec![unit], Fence { owner: "blue".into(), epoch: 1, generation: 1 })
    };
    let refusal = netstead_testkit::HttpResponse::json(403, r#"{"detail":"You do not have permission."}"#);
    fake.http().fail_at("POST /api/ipam/vrfs/", 0, HttpFault::Answer(refusal));
    let outcomes = provider.write(&write(web.clone())).await.unwrap().outcomes;
    let [UnitOutcome::Rejected { reason }] = outcomes.as_slice() else { panic!("{outcomes:?}") };
    assert!(reason.starts_with("there is no vrf `late`, and it cannot be made: You do not have"), "{reason}");
    // A mark of ours in the global table, from before the VRF was named, is not the object either.
    let marked = json!({ "address": "10.8.3.12/32", "status": "active", "vrf": null,
        "custom_fields": { "netstead_key": "[netstead blue address:pve:10.8.3.12@db]" } });
    fake.put(ADDRESSES, &marked);
    for draft in [web, draft("db", "10.8.3.12")] {
        let outcomes = provider.write(&write(draft)).await.unwrap().outcomes;
        assert_eq!(outcomes, [UnitOutcome::Applied]);
    }
    let made: Vec<String> =
        fake.list(ADDRESSES).iter().map(|one| format!("{} {}", one["address"], one["vrf"]["name"])).collect();
    assert_eq!(
        made,
        [
            "\"10.8.3.11/24\" null",
            "\"10.8.3.12/32\" null",
            "\"10.8.3.11/32\" \"late\"",
            "\"10.8.3.12/32\" \"late\""
        ]
    );
    assert_eq!(provider.read().await.unwrap().iter().filter(|one| one.kind.as_str() == "address").count(), 2);
}

#[test]
fn mistakes_in_the_table_are_told() {
    let config = Config::new("https://netbox.example.com/api/", Secret::new("x"));
    assert_eq!(config.check(), Ok(()));
    let mut wrong = config.clone();
    wrong.connection.key_field = "My Field".into();
    assert_eq!(wrong.check().unwrap_err().to_string(), "key_field: `My Field` is no name of a custom field");
    let wrong = Config { cluster: Some(" ".into()), ..config };
    assert_eq!(wrong.check().unwrap_err().to_string(), "cluster: ` ` is no name: it has 1 to 100 characters");
    assert_eq!(
        "device".parse::<Made>(),
        Err("`device` is never made; write `cluster`, `tenant` or `vrf`".into())
    );
}
