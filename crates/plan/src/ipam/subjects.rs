//! Workloads and claims as subjects of an IPAM system.

use std::collections::{BTreeMap, BTreeSet};

use netstead_model::{
    Address, Content, Facts, Ident, IpamAddress, IpamInterface, IpamSubject, Key, Kind, Name, ObjectKey,
    Workload,
};

use super::{IpamScope, IpamSettings};
use crate::{Domains, desired::names_of_addresses};

/// A claim of the ledger that holds an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IpamClaim {
    pub pool: Ident,
    pub key: Key,
    pub owner: String,
    pub address: Address,
    pub name: Option<Name>,
}

impl IpamClaim {
    /// `POOL/KEY`.
    pub(super) fn title(&self) -> String {
        format!("{}/{}", self.pool, self.key.as_str())
    }
}

/// The source of claims in object keys.
fn ledger() -> Ident {
    Ident::from_static("ledger")
}

/// Whether the object is that of a claim.
pub(super) fn is_of_claim(key: &ObjectKey) -> bool {
    key.source == ledger()
}

/// A workload; none if nothing of it shall be there. A claim is none here: it is in the Book.
pub(super) fn of_workload(
    workload: &Workload,
    settings: &IpamSettings,
    domains: &Domains,
) -> Option<IpamSubject> {
    if workload.owner.is_some() {
        return None;
    }
    let names = names_of_addresses(workload, domains);
    let (mut interfaces, mut taken) = (Vec::new(), BTreeSet::new());
    let around = workload.interfaces.iter().filter(|interface| !interface.local);
    for (number, interface) in around.enumerate() {
        let mac = interface.mac.map(|mac| mac.to_string());
        let mut name = interface.name.clone().or(mac).unwrap_or_else(|| format!("net{number}"));
        if !taken.insert(name.clone()) {
            name = format!("{name}-{number}");
            taken.insert(name.clone());
        }
        let all = settings.scope == IpamScope::All;
        let mut seen = BTreeSet::new();
        let addresses = interface.addresses.iter().copied().filter(|address| {
            address.kind() != Kind::Mac && (all || names.contains_key(address)) && seen.insert(*address)
        });
        let address = |address| IpamAddress {
            address,
            dns_name: names.get(&address).cloned(),
            claim: None,
            reserved: false,
        };
        let addresses = addresses.map(address).collect();
        interfaces.push(IpamInterface { name, mac: interface.mac, vlan: interface.vlan, addresses });
    }
    let none = interfaces.iter().all(|interface| interface.addresses.is_empty());
    if none && settings.scope == IpamScope::Named {
        interfaces.clear();
    }
    let addresses = if interfaces.is_empty() { addresses_of_wishes(workload, &names) } else { Vec::new() };
    if interfaces.is_empty() && addresses.is_empty() {
        return None;
    }
    Some(IpamSubject {
        source: workload.source.clone(),
        id: workload.id.clone(),
        kind: workload.kind.clone(),
        name: workload.name.clone(),
        tags: workload.tags.iter().cloned().collect(),
        facts: workload.facts().clone(),
        interfaces,
        addresses,
    })
}

/// The addresses of a workload that has no interface: those that its own names have.
fn addresses_of_wishes(workload: &Workload, names: &BTreeMap<Address, Name>) -> Vec<IpamAddress> {
    if !workload.interfaces.is_empty() {
        return Vec::new();
    }
    let own = workload.wishes.iter().filter(|wish| !wish.borrowed);
    let wished = own.flat_map(|wish| match &wish.content {
        Content::Addresses(addresses) => addresses.as_slice(),
        Content::Records { .. } => &[],
    });
    let addresses: BTreeSet<Address> = wished.copied().filter(|one| one.kind() != Kind::Mac).collect();
    let named = addresses.into_iter().filter_map(|address| Some((address, names.get(&address)?)));
    named
        .map(|(address, name)| IpamAddress {
            address,
            dns_name: Some(name.clone()),
            claim: None,
            reserved: false,
        })
        .collect()
}

/// A claim whose address no workload has.
pub(super) fn of_claim(claim: &IpamClaim) -> Option<IpamSubject> {
    if claim.address.kind() == Kind::Mac {
        return None;
    }
    let address = IpamAddress {
        address: claim.address,
        dns_name: claim.name.clone(),
        claim: Some(claim.title()),
        reserved: true,
    };
    Some(IpamSubject {
        source: ledger(),
        id: claim.title().parse().ok()?,
        kind: "claim".to_owned(),
        name: claim.key.as_str().to_owned(),
        tags: BTreeSet::new(),
        facts: Facts::default(),
        interfaces: Vec::new(),
        addresses: vec![address],
    })
}

/// Takes addresses that `holders` gives to another workload away, and returns them with their holders.
pub(super) fn keep_own(
    subject: &mut IpamSubject,
    holders: &mut BTreeMap<Address, (Ident, Key)>,
) -> Vec<(Address, (Ident, Key))> {
    let me = (subject.source.clone(), subject.id.clone());
    let mut lost = Vec::new();
    let lists = subject.interfaces.iter_mut().map(|interface| &mut interface.addresses);
    for list in lists.chain([&mut subject.addresses]) {
        list.retain(|one| {
            let holder = holders.entry(one.address).or_insert_with(|| me.clone());
            if *holder != me {
                lost.push((one.address, holder.clone()));
            }
            *holder == me
        });
    }
    lost
}
