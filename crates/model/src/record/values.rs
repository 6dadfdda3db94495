//! The values of one record set.

use serde::{Deserialize, Serialize};

use crate::RecordData;

/// Values in order, no two alike. Nearly every set has one or two of them: side by side they take a tenth of the room
/// that a tree would.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "Vec<RecordData>")]
pub struct Values(Vec<RecordData>);

impl Values {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn contains(&self, value: &RecordData) -> bool {
        self.0.binary_search(value).is_ok()
    }

    pub fn first(&self) -> Option<&RecordData> {
        self.0.first()
    }

    pub fn iter(&self) -> std::slice::Iter<'_, RecordData> {
        self.0.iter()
    }

    /// Whether it is new.
    pub fn insert(&mut self, value: RecordData) -> bool {
        match self.0.binary_search(&value) {
            Ok(_) => false,
            Err(at) => {
                self.0.insert(at, value);
                true
            }
        }
    }

    /// Whether it was there.
    pub fn remove(&mut self, value: &RecordData) -> bool {
        let found = self.0.binary_search(value);
        if let Ok(at) = found {
            self.0.remove(at);
        }
        found.is_ok()
    }

    /// The first value, taken out.
    pub fn pop_first(&mut self) -> Option<RecordData> {
        (!self.0.is_empty()).then(|| self.0.remove(0))
    }

    /// Those that `other` lacks.
    pub fn difference<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a RecordData> {
        self.iter().filter(|value| !other.contains(value))
    }
}

impl From<Vec<RecordData>> for Values {
    fn from(mut values: Vec<RecordData>) -> Self {
        values.sort_unstable();
        values.dedup();
        values.shrink_to_fit();
        Self(values)
    }
}

impl<const N: usize> From<[RecordData; N]> for Values {
    fn from(values: [RecordData; N]) -> Self {
        Vec::from(values).into()
    }
}

impl FromIterator<RecordData> for Values {
    fn from_iter<I: IntoIterator<Item = RecordData>>(values: I) -> Self {
        values.into_iter().collect::<Vec<_>>().into()
    }
}

impl IntoIterator for Values {
    type Item = RecordData;
    type IntoIter = std::vec::IntoIter<RecordData>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Values {
    type Item = &'a RecordData;
    type IntoIter = std::slice::Iter<'a, RecordData>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
