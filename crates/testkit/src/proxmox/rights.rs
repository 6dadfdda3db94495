//! [`PveRights`]: the privileges of a token or user, by path.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::{PveGuest, PveVersion};

/// Privileges by path; each counts for everything below its path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PveRights(BTreeMap<String, BTreeSet<String>>);

impl PveRights {
    /// None at all: a token with privilege separation that got no ACL of its own.
    pub fn none() -> Self {
        Self::default()
    }

    /// These privileges on `/`.
    pub fn on_root(privileges: &[&str]) -> Self {
        Self::default().and("/", privileges)
    }

    /// More privileges, on `path`.
    #[must_use]
    pub fn and(mut self, path: &str, privileges: &[&str]) -> Self {
        let own = self.0.entry(path.to_owned()).or_default();
        own.extend(privileges.iter().map(|privilege| (*privilege).to_owned()));
        self
    }

    /// The role `PVEAuditor` of this release.
    pub fn auditor(version: PveVersion) -> Self {
        let common = ["VM.Audit", "Sys.Audit", "SDN.Audit", "Pool.Audit", "Datastore.Audit", "Mapping.Audit"];
        let rights = Self::on_root(&common);
        match version {
            PveVersion::Eight => rights,
            PveVersion::Nine => rights.and("/", &["VM.GuestAgent.Audit"]),
        }
    }

    /// Everything a reader needs: `PVEAuditor`, and in 8.x `VM.Monitor`.
    pub fn reader(version: PveVersion) -> Self {
        match version {
            PveVersion::Eight => Self::auditor(version).and("/", &["VM.Monitor"]),
            PveVersion::Nine => Self::auditor(version),
        }
    }

    /// Takes away what is granted on exactly this path.
    pub fn remove(&mut self, path: &str) {
        self.0.remove(path);
    }

    /// Whether it has a privilege on a guest: by its number, or by its pool.
    pub(super) fn allow_guest(&self, guest: &PveGuest, privilege: &str) -> bool {
        let pool = guest.pool.as_ref().map(|pool| format!("/pool/{pool}"));
        self.allows(&format!("/vms/{}", guest.vmid), privilege)
            || pool.is_some_and(|pool| self.allows(&pool, privilege))
    }

    pub(super) fn allows(&self, path: &str, privilege: &str) -> bool {
        let covers = |own: &str| own == "/" || path == own || path.starts_with(&format!("{own}/"));
        self.0.iter().any(|(own, privileges)| covers(own) && privileges.contains(privilege))
    }

    /// As `/access/permissions` shows them.
    pub(super) fn shown(&self) -> Value {
        let mut paths = Map::new();
        for (path, privileges) in &self.0 {
            let privileges: Map<String, Value> =
                privileges.iter().map(|privilege| (privilege.clone(), json!(1))).collect();
            paths.insert(path.clone(), privileges.into());
        }
        paths.into()
    }
}
