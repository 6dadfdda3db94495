//! [`Entries`]: the workloads of one source by id, shared between versions of the inventory until one of them changes.

use std::{collections::BTreeMap, ops::Deref, sync::Arc};

use netstead_model::Key;
use serde::{Deserialize, Serialize};

use super::Entry;

/// All workloads a source brought. A copy costs nothing until it is changed, so a report that brings nothing new leaves
/// every reader with the same map.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entries(Arc<BTreeMap<Key, Entry>>);

impl Entries {
    /// For changing it; other holders keep what they have.
    pub fn edit(&mut self) -> &mut BTreeMap<Key, Entry> {
        Arc::make_mut(&mut self.0)
    }

    /// Whether both are the same map in memory, so that nothing can differ.
    pub fn is_shared_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Deref for Entries {
    type Target = BTreeMap<Key, Entry>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<'a> IntoIterator for &'a Entries {
    type Item = (&'a Key, &'a Entry);
    type IntoIter = std::collections::btree_map::Iter<'a, Key, Entry>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
