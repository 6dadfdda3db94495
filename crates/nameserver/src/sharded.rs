//! A map that is cheap to copy and change a little: a change copies one part of 64.

use std::{collections::HashMap, sync::Arc};

const PARTS: usize = 64;

type Part<V> = HashMap<Arc<[u8]>, V>;

/// A map of names in wire form. Clones share all parts neither side has changed.
#[derive(Debug, Clone)]
pub(crate) struct Sharded<V> {
    parts: Vec<Arc<Part<V>>>,
}

impl<V: Clone> Sharded<V> {
    pub(crate) fn new() -> Self {
        Self { parts: (0..PARTS).map(|_| Arc::default()).collect() }
    }

    pub(crate) fn get(&self, name: &[u8]) -> Option<&V> {
        self.parts.get(part_of(name))?.get(name)
    }

    pub(crate) fn get_mut(&mut self, name: &[u8]) -> Option<&mut V> {
        let part = self.parts.get_mut(part_of(name))?;
        if part.contains_key(name) { Arc::make_mut(part).get_mut(name) } else { None }
    }

    pub(crate) fn insert(&mut self, name: &[u8], value: V) {
        if let Some(part) = self.parts.get_mut(part_of(name)) {
            Arc::make_mut(part).insert(name.into(), value);
        }
    }

    pub(crate) fn remove(&mut self, name: &[u8]) {
        if let Some(part) = self.parts.get_mut(part_of(name)).filter(|part| part.contains_key(name)) {
            Arc::make_mut(part).remove(name);
        }
    }

    /// The parts one after the other, so that a long walk can pause between them.
    pub(crate) fn parts(&self) -> &[Arc<Part<V>>] {
        &self.parts
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.parts.iter().flat_map(|part| part.values())
    }
}

/// Spreads names over the parts; the map inside a part has a hash that cannot be foreseen.
fn part_of(name: &[u8]) -> usize {
    let hash =
        name.iter().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    (hash ^ (hash >> 16)) as usize % PARTS
}
