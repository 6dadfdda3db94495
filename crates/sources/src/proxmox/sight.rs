//! Doubts about what these credentials may see.
//!
//! Proxmox VE shows a caller only what it may audit, and says nothing of the rest: a list with fewer guests looks the same
//! whether they were deleted or a privilege was taken away.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{
    Shared, State,
    guest::GuestKind,
    types::{Permissions, Resource, grants},
};

/// The longest that a look asks for numbers of missing guests. The look after it asks for the rest.
const ASKING: Duration = Duration::from_secs(5);
/// So many hidden guests are enough to know that something is wrong.
const ENOUGH: usize = 5;

impl Shared {
    /// Doubts about guests that may be there though `guests` does not have them.
    pub(super) async fn check_sight(&self, guests: &BTreeMap<u64, (GuestKind, Resource)>) -> Option<String> {
        let blind = if guests.is_empty() { self.check_blindness().await } else { None };
        match blind {
            Some(doubt) => Some(doubt),
            None => self.check_missing().await,
        }
    }

    /// A token with privilege separation has no privilege of its own at first.
    async fn check_blindness(&self) -> Option<String> {
        let permissions: Permissions = self.api.get(&["access", "permissions"]).await.ok()?;
        let somewhere = permissions.values().any(|own| own.contains_key("VM.Audit"));
        let text = "these credentials may see no guest: they lack `VM.Audit` on `/vms`";
        (!somewhere).then(|| text.to_owned())
    }

    /// Pools of the filter that cannot be seen, though `visible` are: the list leaves out that a guest is in such a pool.
    pub(super) async fn hidden_pools(&self, visible: &BTreeSet<String>) -> Vec<String> {
        let wanted = self.settings.pools.iter();
        let mut hidden: Vec<String> = wanted.filter(|pool| !visible.contains(*pool)).cloned().collect();
        if hidden.is_empty() {
            return hidden;
        }
        // A pool that does not exist, or that an old release does not list, hides nothing.
        let permissions = self.api.get::<Permissions>(&["access", "permissions"]).await;
        if let Ok(permissions) = permissions {
            hidden.retain(|pool| !grants(&permissions, "Pool.Audit", &format!("/pool/{pool}")));
        }
        hidden
    }

    /// Asks the cluster for every missing guest whether its number is free, which every user may. Only then it was deleted:
    /// privileges on the path of a guest end with the guest, so they prove nothing.
    async fn check_missing(&self) -> Option<String> {
        let missing: Vec<u64> = self.state().missing.iter().copied().collect();
        let (mut hidden, mut free, mut failed) = (Vec::new(), BTreeSet::new(), None);
        let ask = async {
            for vmid in &missing {
                match self.api.is_number_free(*vmid).await {
                    Ok(true) => drop(free.insert(*vmid)),
                    Ok(false) => hidden.push(vmid.to_string()),
                    Err(error) => failed = Some((*vmid, error)),
                }
                if failed.is_some() || hidden.len() >= ENOUGH {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(ASKING, ask).await;
        self.state().missing.retain(|vmid| !free.contains(vmid));
        let left = missing.len() - free.len();
        let more = left.saturating_sub(hidden.len());
        match (hidden.as_slice(), failed) {
            ([], None) if left == 0 => None,
            ([], None) => {
                self.wake.notify_one();
                Some(format!("it is not known yet whether {left} missing guests still exist"))
            }
            ([], Some((vmid, error))) => {
                Some(format!("it is not known whether the missing guest {vmid} still exists: {error}"))
            }
            ([one], _) if more == 0 => Some(format!(
                "guest {one} still exists, and these credentials may no longer see it: they lack `VM.Audit` on `/vms/{one}`"
            )),
            (some, _) => {
                let more = if more > 0 { format!(" and perhaps {more} more") } else { String::new() };
                Some(format!(
                    "guests {}{more} still exist, and these credentials may no longer see them: they lack `VM.Audit` on `/vms`",
                    some.join(", ")
                ))
            }
        }
    }
}

impl State {
    /// Notes the guests that were reported and are not in the list, and forgets those that are in it again.
    pub(super) fn note_missing(
        &mut self,
        listed: &BTreeMap<u64, (GuestKind, Resource)>,
        is_wanted: impl Fn(&Resource) -> bool,
    ) {
        self.missing.retain(|vmid| !listed.contains_key(vmid));
        let reported = |vmid: &u64, guest: &Resource| self.ids.contains_key(vmid) && is_wanted(guest);
        let gone = self.guests.iter().filter(|(vmid, _)| !listed.contains_key(vmid));
        let gone = gone.filter(|(vmid, guest)| reported(vmid, &guest.resource));
        self.missing.extend(gone.map(|(vmid, _)| *vmid));
    }

    /// Lets guests stay in the pool they were in while the list does not show it.
    pub(super) fn keep_hidden_pools(
        &self,
        listed: &mut BTreeMap<u64, (GuestKind, Resource)>,
        hidden: &[String],
    ) {
        for (vmid, (_, resource)) in listed.iter_mut().filter(|(_, (_, resource))| resource.pool.is_none()) {
            let known = self.guests.get(vmid).and_then(|guest| guest.resource.pool.clone());
            resource.pool = known.filter(|pool| hidden.contains(pool));
        }
    }
}

/// The doubt about pools that cannot be seen.
pub(super) fn doubt_about(hidden: &[String]) -> Option<String> {
    let paths: Vec<String> = hidden.iter().map(|pool| format!("`/pool/{pool}`")).collect();
    (!hidden.is_empty()).then(|| {
        let paths = paths.join(", ");
        format!("these credentials cannot see which guests are in a pool: they lack `Pool.Audit` on {paths}")
    })
}
