//! What a server holds.

use netstead_model::{Name, RecordSet};
use serde::{Deserialize, Serialize};

/// All zones of a server that matter here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Actual {
    pub zones: Vec<ActualZone>,
}

/// One zone as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActualZone {
    pub name: Name,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<u32>,
    /// Missing when the zone could not be read: nothing is planned for it, nor for its parent in its place.
    pub sets: Option<Vec<RecordSet>>,
}
