//! [`Zone`]: one zone in memory, ready to answer from.

mod history;
mod lookup;

use std::sync::Arc;

use netstead_model::{Name, RecordSet, RecordType};

use crate::{
    sharded::Sharded,
    wire::{body, kind, parent, soa_body},
};

pub(crate) use self::{
    history::{Diff, History},
    lookup::LookupResult,
};

/// Time to live of the records every zone has by itself.
const OWN_TTL: u32 = 300;
/// How long a denial may be kept: names come and go quickly here.
const NEGATIVE_TTL: u32 = 60;

/// One generation of a zone. Copies are cheap and share what is the same.
#[derive(Debug, Clone)]
pub(crate) struct Zone {
    pub(crate) apex: Arc<[u8]>,
    pub(crate) serial: u32,
    /// It stands for single names, and says nothing about others.
    pub(crate) lone: bool,
    host: Name,
    soa: Box<[u8]>,
    denial: Box<[u8]>,
    ns: Arc<Set>,
    nodes: Sharded<Node>,
    sets: usize,
    /// Names below the apex with an NS set.
    cuts: usize,
    pub(crate) history: History,
}

/// The record sets of one name; a name that only has others below it has none.
#[derive(Debug, Clone, Default)]
pub(crate) struct Node {
    sets: Vec<Arc<Set>>,
    children: usize,
}

/// The records of one type at one name, each in wire form without its owner.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Set {
    pub(crate) kind: u16,
    pub(crate) records: Vec<Box<[u8]>>,
}

impl Set {
    pub(crate) fn new(set: &RecordSet) -> Self {
        let records = set.values.iter().filter_map(|value| body(value, set.ttl)).collect();
        Self { kind: set.kind.number(), records }
    }

    /// Where the data of the first record lies in it: the target of a CNAME or an NS.
    pub(crate) fn targets(&self) -> impl Iterator<Item = &[u8]> {
        self.records.iter().filter_map(|record| record.get(10..))
    }
}

impl Node {
    pub(crate) fn set(&self, kind: u16) -> Option<&Arc<Set>> {
        self.sets.iter().find(|set| set.kind == kind)
    }

    pub(crate) fn sets(&self) -> &[Arc<Set>] {
        &self.sets
    }
}

impl Zone {
    pub(crate) fn new(name: Name, host: Name, serial: u32, lone: bool) -> Self {
        let apex: Arc<[u8]> = name.to_wire().into();
        let ns =
            RecordSet::new(name, RecordType::Ns, OWN_TTL, [netstead_model::RecordData::Ns(host.clone())]);
        let mut nodes = Sharded::new();
        nodes.insert(&apex, Node::default());
        let mut zone = Self {
            apex,
            serial,
            lone,
            host,
            soa: Box::default(),
            denial: Box::default(),
            ns: Arc::new(Set::new(&ns)),
            nodes,
            sets: 0,
            cuts: 0,
            history: History::default(),
        };
        zone.set_serial(serial);
        zone
    }

    pub(crate) fn set_serial(&mut self, serial: u32) {
        self.serial = serial;
        self.soa = self.soa_of(serial);
        self.denial = soa_body(&self.host, serial, NEGATIVE_TTL, NEGATIVE_TTL);
    }

    pub(crate) fn soa(&self) -> &[u8] {
        &self.soa
    }

    /// The SOA the zone had at another serial.
    pub(crate) fn soa_of(&self, serial: u32) -> Box<[u8]> {
        soa_body(&self.host, serial, OWN_TTL, NEGATIVE_TTL)
    }

    /// The SOA that says "there is no such thing".
    pub(crate) fn denial(&self) -> &[u8] {
        &self.denial
    }

    /// The NS set of the apex: what was written there, else our own name.
    pub(crate) fn ns(&self) -> &Arc<Set> {
        self.nodes.get(&self.apex).and_then(|apex| apex.set(kind::NS)).unwrap_or(&self.ns)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sets == 0
    }

    pub(crate) fn nodes(&self) -> &Sharded<Node> {
        &self.nodes
    }

    /// Puts `set` in the place of what stands at `owner`, and returns that. None and an empty set take it away.
    pub(crate) fn replace(&mut self, owner: &[u8], kind: u16, set: Option<Arc<Set>>) -> Option<Arc<Set>> {
        let set = set.filter(|set| !set.records.is_empty());
        let new = set.is_some();
        if new && self.nodes.get(owner).is_none() {
            self.add_node(owner);
        }
        let node = self.nodes.get_mut(owner)?;
        let place = node.sets.iter().position(|set| set.kind == kind);
        let old = place.map(|place| node.sets.remove(place));
        node.sets.extend(set);
        node.sets.sort_by_key(|set| set.kind);
        let gone = node.sets.is_empty();
        self.sets = self.sets + usize::from(new) - usize::from(old.is_some());
        if kind == kind::NS && *owner != *self.apex && !owner.starts_with(b"\x01*") {
            self.cuts = self.cuts + usize::from(new) - usize::from(old.is_some());
        }
        if gone {
            self.remove_nodes(owner);
        }
        old
    }

    /// A node at `owner` and at every name between it and the apex.
    fn add_node(&mut self, owner: &[u8]) {
        self.nodes.insert(owner, Node::default());
        let mut name = owner;
        while let Some(above) = parent(name).filter(|_| *name != *self.apex) {
            if let Some(node) = self.nodes.get_mut(above) {
                node.children += 1;
                return;
            }
            self.nodes.insert(above, Node { sets: Vec::new(), children: 1 });
            name = above;
        }
    }

    /// Takes away the node at `owner`, and those above it that were there for its sake.
    fn remove_nodes(&mut self, owner: &[u8]) {
        let mut name = owner;
        while *name != *self.apex
            && self.nodes.get(name).is_some_and(|node| node.sets.is_empty() && node.children == 0)
        {
            self.nodes.remove(name);
            let Some(above) = parent(name) else { return };
            if let Some(node) = self.nodes.get_mut(above) {
                node.children = node.children.saturating_sub(1);
            }
            name = above;
        }
    }
}
