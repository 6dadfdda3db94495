//! [`Case`]: the whole input of a plan in one file.

use netstead_model::Report;
use serde::{Deserialize, Serialize};

use crate::{
    Actual, Domains, Guard, Input, Inventory, Now, Owned, Plan, ReportArrival, Settings, desired, diff,
};

/// The input of a plan, without secrets, as `netstead plan --save case.json` writes it. With the expected plan it is a test: a file in
/// `tests/cases` is all it takes to keep a bug from coming back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub settings: Settings,
    #[serde(default)]
    pub domains: Domains,
    #[serde(default)]
    pub inventory: Inventory,
    /// Reports that came after the inventory was saved. For cases written by hand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looks: Vec<(ReportArrival, Report)>,
    #[serde(default)]
    pub actual: Actual,
    #[serde(default)]
    pub owned: Owned,
    #[serde(default)]
    pub guard: Guard,
    pub now: Now,
    /// The provider is to be cleaned.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clean: bool,
    /// The plan as it prints, line by line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect: Vec<String>,
}

impl Case {
    /// The plan of this case.
    pub fn plan(&self) -> Plan {
        let mut inventory = self.inventory.clone();
        for (look, report) in &self.looks {
            inventory.ingest(report.clone(), *look);
        }
        let Self { settings, domains, actual, owned, guard, now, clean, .. } = self;
        let desired = desired(&inventory, settings, domains, &actual.zone_tops(settings), owned, *now);
        diff(&Input { desired: &desired, actual, owned, guard, settings, now: *now, clean: *clean })
    }
}
