//! Changes of objects.

use serde::{Deserialize, Serialize};

use super::{Fields, ObjectKey};
use crate::{Fence, WriteGuard};

/// A change of one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ObjectChange {
    /// Makes it, with our mark.
    Create { fields: Fields },
    /// Changes some fields. A field that is in `before` alone is emptied, one in `after` alone is filled. If it is
    /// `adopted`, it does not carry our mark yet and gets it.
    Update {
        id: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        adopted: bool,
        before: Fields,
        after: Fields,
    },
    /// Removes it. `before` are the fields that are ours.
    Delete { id: String, before: Fields },
}

/// All that happens to one object at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectUnit {
    pub key: ObjectKey,
    pub change: ObjectChange,
    /// Objects whose own unit must have been applied before this one may be tried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<ObjectKey>,
}

/// Units for the server, and their place in the order of all changes.
#[derive(Debug, Clone)]
pub struct ObjectWrite {
    pub units: Vec<ObjectUnit>,
    pub fence: Fence,
    /// Asked before every request.
    pub guard: WriteGuard,
}

impl ObjectWrite {
    /// A request that nothing holds back.
    pub fn new(units: Vec<ObjectUnit>, fence: Fence) -> Self {
        Self { units, fence, guard: WriteGuard::open() }
    }
}
