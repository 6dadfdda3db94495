//! Plans for IPAM systems against a naive model.

use std::collections::{BTreeMap, BTreeSet};

use netstead_model::{FieldValue, Fields, IpamObject, ObjectKey, ObjectKind, Workload};
use proptest::prelude::*;

use super::{Ipam, key, machine, text};

#[derive(Debug, Clone)]
enum Happens {
    Sees(BTreeMap<u8, (u8, u8)>),
    Waits(u64),
    Hand(u8, u8),
    Clears(u8),
    Foreign(u8),
    Pass,
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        4 => prop::collection::btree_map(0u8..5, (0u8..6, 0u8..3), 0..5).prop_map(Happens::Sees),
        2 => (1u64..400).prop_map(Happens::Waits),
        1 => (0u8..5, 0u8..4).prop_map(|(at, value)| Happens::Hand(at, value)),
        1 => (0u8..5).prop_map(Happens::Clears),
        1 => (0u8..6).prop_map(Happens::Foreign),
        5 => Just(Happens::Pass),
    ]
}

proptest! {
    /// The naive model: values that others wrote, and objects that others made, are where they were; what a present workload
    /// wants is there unless others are in the way; nothing of a workload that may exist goes; and passes come to rest.
    #[test]
    fn whatever_happens_others_keep_theirs_and_present_workloads_get_theirs(all in prop::collection::vec(happens(), 1..40)) {
        let mut ipam = Ipam::new();
        let mut hand: BTreeMap<ObjectKey, FieldValue> = BTreeMap::new();
        let mut present: BTreeMap<u8, (u8, u8)> = BTreeMap::new();
        for one in all {
            match one {
                Happens::Sees(seen) => {
                    let workload = |(id, (address, name)): (&u8, &(u8, u8))| Workload {
                        name: format!("n{id}-{name}"),
                        ..machine(&format!("v{id}"), &[&format!("10.0.0.{address}")])
                    };
                    ipam.sees(&seen.iter().map(workload).collect::<Vec<_>>());
                    present = seen;
                }
                Happens::Waits(seconds) => { ipam.world.wait(seconds); }
                Happens::Hand(at, value) => {
                    let at = key(ObjectKind::MACHINE, &format!("v{at}"), "");
                    if let Some(object) = ipam.at(&at) {
                        let value = text(&format!("hand-{value}"));
                        object.fields.insert("name".into(), value.clone());
                        hand.insert(at, value);
                    }
                }
                Happens::Clears(at) => {
                    let at = key(ObjectKind::MACHINE, &format!("v{at}"), "");
                    if let Some(object) = ipam.at(&at) {
                        object.fields.remove("name");
                        hand.remove(&at);
                    }
                }
                Happens::Foreign(n) => {
                    let address = text(&format!("10.0.0.{n}"));
                    let taken = ipam.server.values().any(|one| one.fields.get("address") == Some(&address));
                    if !taken {
                        ipam.foreign(ObjectKind::ADDRESS, Fields::from([("address".into(), address)]));
                    }
                }
                Happens::Pass => { ipam.pass(); }
            }
            let foreign: Vec<IpamObject> = ipam.server.values().filter(|one| one.mark.is_none()).cloned().collect();
            let now = ipam.world.now();
            let grace = ipam.settings.graces();
            let alive: BTreeSet<String> = ipam.world.inventory.alive(&"pve".parse().unwrap(), grace, now)
                .iter().map(|one| one.id.as_str().to_owned()).collect();
            let machines: BTreeSet<ObjectKey> = ipam.server.values().filter_map(|one| one.mark.clone())
                .map(|mark| mark.key).filter(|key| key.kind == ObjectKind::MACHINE).collect();
            for _ in 0..4 { ipam.pass(); }
            let plan = ipam.plan();
            prop_assert!(plan.is_empty(), "passes never come to rest: {plan}");
            let still: Vec<IpamObject> = ipam.server.values().filter(|one| one.mark.is_none()).cloned().collect();
            prop_assert_eq!(still, foreign);
            for key in machines.iter().filter(|key| alive.contains(key.workload.as_str())) {
                prop_assert!(ipam.at(key).is_some(), "{key} went although it may exist");
            }
            hand.retain(|key, _| ipam.at(key).is_some());
            for (key, value) in &hand {
                prop_assert_eq!(ipam.at(key).unwrap().fields.get("name"), Some(value));
            }
            let mut held = BTreeMap::new();
            for (id, (address, name)) in &present {
                let at = key(ObjectKind::MACHINE, &format!("v{id}"), "");
                let object = ipam.at(&at);
                prop_assert!(object.is_some(), "{at} is missing");
                if !hand.contains_key(&at) {
                    prop_assert_eq!(object.unwrap().fields.get("name"), Some(&text(&format!("n{id}-{name}"))));
                }
                held.entry(*address).or_insert(*id);
            }
            let addresses: Vec<String> = ipam.server.values().filter_map(|one| one.fields.get("address"))
                .map(ToString::to_string).collect();
            let distinct: BTreeSet<&String> = addresses.iter().collect();
            prop_assert_eq!(addresses.len(), distinct.len(), "an address is there twice");
            for address in held.keys() {
                let text = format!("10.0.0.{address}");
                prop_assert!(distinct.contains(&text) , "{text} is missing");
            }
        }
    }
}
