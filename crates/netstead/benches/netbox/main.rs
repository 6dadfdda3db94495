#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a bench may end badly")]
//! `cargo xtask bench netbox`: objects written into a NetBox per second, beside the same bulk calls sent by a bare HTTP client.
//!
//! Both write 125 machines with an interface, a MAC address and an IP address each, 50 objects to a request and one request after
//! the other. Ours also looks whether an object is there already, and reads back the keys. Figures of one machine mean little; the
//! ratio is what a change is measured by.

mod bare;
#[allow(dead_code, reason = "other benches need more of it")]
#[path = "../shared/report.rs"]
mod report;

use std::{path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use netstead_model::{
    Clock as _, Facts, Fence, FieldValue, IpamAddress, IpamInterface, IpamProvider, IpamSubject,
    ObjectChange, ObjectUnit, ObjectWrite, SystemClock, UnitOutcome,
};
use netstead_providers::{BuildContext, Secret, ipam::netbox::Config};
use netstead_testkit::NetBox;

use report::{Report, median};

/// As the binary has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Machines of one round; each has four objects.
const MACHINES: u32 = 125;
const ROUNDS: u32 = 3;
const MOST: f64 = 1.5;
/// The cluster and the prefix that both sides write into are there before.
const CLUSTER: &str = "bench";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let json = match &arguments[..] {
        [flag, file] if flag == "--json" => Some(PathBuf::from(file)),
        [] => None,
        other => {
            eprintln!("error: {other:?} is not known\nhint: --json FILE writes the figures");
            return ExitCode::FAILURE;
        }
    };
    let Some(netbox) = NetBox::start() else { return ExitCode::FAILURE };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let mut report = Report::default();
    runtime.block_on(measure(&netbox, &mut report));
    report.finish(json.as_deref())
}

async fn measure(netbox: &NetBox, report: &mut Report) {
    let provider = prepare(netbox).await;
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        // Turn about, so that what else the machine does meets both.
        ours.push(through_the_provider(&provider, round * 2).await.as_secs_f64());
        bare.push(bare::write(netbox, round * 2 + 1).await.as_secs_f64());
    }
    let objects = f64::from(MACHINES * 4);
    let (ours, bare) = (median(ours), median(bare));
    report.note("500 objects, through the provider", ours, "s");
    report.note("500 objects, the same bulk calls bare", bare, "s");
    report.note("objects per second, through the provider", objects / ours, "");
    report.note("objects per second, bare", objects / bare, "");
    let ratio = ours / bare;
    report.judge("  to the bare calls", ratio, "x", "within 1.5", ratio <= MOST);
}

/// A provider that has read once, with the cluster, the tag and the custom field there.
async fn prepare(netbox: &NetBox) -> Arc<dyn IpamProvider> {
    netbox.make("/api/ipam/prefixes/", &serde_json::json!({ "prefix": "10.0.0.0/8" }));
    let kind = netbox.make("/api/virtualization/cluster-types/", &bare::named(CLUSTER));
    let cluster = serde_json::json!({ "name": CLUSTER, "type": kind });
    netbox.make("/api/virtualization/clusters/", &cluster);
    netbox.make("/api/extras/tags/", &bare::named("vm"));
    let config =
        Config { cluster: Some(CLUSTER.into()), ..Config::new(netbox.url(), Secret::new(netbox.token())) };
    let context = BuildContext::new("bench".parse().expect("a name"));
    let provider: Arc<dyn IpamProvider> = Arc::new(config.open(&context).expect("a provider"));
    // One machine makes the custom field, and warms NetBox up.
    provider.read().await.expect("a NetBox that can be read");
    let units = units(&provider, [subject(u32::from(u8::MAX), 0)].iter());
    write(&provider, units).await;
    provider.read().await.expect("a NetBox that can be read");
    provider
}

async fn through_the_provider(provider: &Arc<dyn IpamProvider>, round: u32) -> Duration {
    let subjects: Vec<IpamSubject> = (0..MACHINES).map(|number| subject(round, number)).collect();
    let units = units(provider, subjects.iter());
    assert_eq!(units.len(), 4 * MACHINES as usize);
    let begun = SystemClock.monotonic();
    write(provider, units).await;
    SystemClock.monotonic().saturating_sub(begun)
}

async fn write(provider: &Arc<dyn IpamProvider>, units: Vec<ObjectUnit>) {
    let fence = Fence { owner: "bench".into(), epoch: 1, generation: 1 };
    let reply = provider.write(&ObjectWrite::new(units, fence)).await.expect("a reply");
    assert!(reply.stopped.is_none(), "{:?}", reply.stopped);
    let failed = reply.outcomes.iter().find(|outcome| **outcome != UnitOutcome::Applied);
    assert!(failed.is_none(), "{failed:?}");
}

/// Creates of all objects. A reference to a later kind is written by a later pass, so it is left out.
fn units<'a>(
    provider: &Arc<dyn IpamProvider>,
    subjects: impl Iterator<Item = &'a IpamSubject>,
) -> Vec<ObjectUnit> {
    let drafts = subjects.flat_map(|subject| provider.objects(subject));
    let unit = |mut draft: netstead_model::ObjectDraft| {
        let later = |name: &str| name.starts_with("primary_ip") || name == "mac";
        draft.fields.retain(|name, value| !(matches!(value, FieldValue::Ref(_)) && later(name)));
        ObjectUnit {
            key: draft.key,
            change: ObjectChange::Create { fields: draft.fields },
            needs: Vec::new(),
        }
    };
    drafts.map(unit).collect()
}

fn name(round: u32, number: u32) -> String {
    format!("guest-{round}-{number}")
}

fn mac(round: u32, number: u32) -> String {
    format!("02:00:00:{round:02x}:00:{number:02x}")
}

fn address(round: u32, number: u32) -> String {
    format!("10.{round}.0.{}", number + 1)
}

/// A machine with one interface.
fn subject(round: u32, number: u32) -> IpamSubject {
    let name = name(round, number);
    let address = IpamAddress {
        address: address(round, number).parse().expect("an address"),
        dns_name: Some(format!("{name}.bench.test").parse().expect("a name")),
        claim: None,
        reserved: false,
    };
    let facts = Facts {
        cpus: Some(2),
        memory: Some(4 << 30),
        disk: Some(32 << 30),
        status: Some("running".into()),
        ..Facts::default()
    };
    IpamSubject {
        source: "pve".parse().expect("a name"),
        id: name.parse().expect("an id"),
        kind: "vm".into(),
        name,
        tags: std::collections::BTreeSet::new(),
        facts,
        interfaces: vec![IpamInterface {
            name: "eth0".into(),
            mac: Some(mac(round, number).parse().expect("a MAC")),
            vlan: None,
            addresses: vec![address],
        }],
        addresses: Vec::new(),
    }
}
