//! [`IpamDesired`]: the objects that should exist on an IPAM system.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use netstead_model::{
    Address, FieldValue, Fields, Ident, IpamCapabilities, IpamSubject, Key, ObjectDraft, ObjectKey,
    ObjectRole, Workload,
};

use super::{
    IpamBlocked, IpamClaim, IpamSettings, OwnedObjects,
    subjects::{keep_own, of_claim, of_workload},
};
use crate::{Cause, Domains, Inventory, KeptReason, Now, inventory::GraceVerdict};

/// An object that should exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedObject {
    pub fields: Fields,
    /// The end of the sentence that says why.
    pub why: Arc<str>,
}

/// The objects that should exist, and what is known about the workloads of the others.
#[derive(Debug, Clone, Default)]
pub struct IpamDesired {
    pub objects: BTreeMap<ObjectKey, WantedObject>,
    /// Objects that stay as they are, because a former version of their workload may still exist.
    pub kept: BTreeMap<ObjectKey, KeptReason>,
    /// Objects that cannot be made.
    pub blocked: Vec<IpamBlocked>,
    /// Workloads that may still exist: everything of them stays.
    pub(crate) waiting: BTreeMap<(Ident, Key), KeptReason>,
    /// Workloads that are gone, and why.
    pub(crate) gone: BTreeMap<(Ident, Key), (Cause, Arc<str>)>,
    /// Workloads that exist.
    pub(crate) present: BTreeSet<(Ident, Key)>,
    /// Sources that are known and have said all there is.
    pub(crate) settled: BTreeSet<Ident>,
    pub(crate) claims: ClaimsView,
    /// Engine time at which the next object may go because its workload ended.
    pub next_end: Option<u64>,
}

/// How much is known of the claims.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ClaimsView {
    /// No ledger can be asked: objects of claims stay as they are.
    #[default]
    Unasked,
    /// The settings say that claims have no objects here.
    Unwanted,
    /// All of them are known.
    Complete,
}

/// Everything that objects are made of, at one moment.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "it holds a function")]
pub struct IpamWorld<'a> {
    pub inventory: &'a Inventory,
    /// None if no ledger can be asked: then objects of claims stay as they are.
    pub claims: Option<&'a [IpamClaim]>,
    pub domains: &'a Domains,
    /// The abilities of the system.
    pub can: &'a IpamCapabilities,
    /// The objects of a subject ([`netstead_model::IpamProvider::objects`]).
    pub shape: &'a dyn Fn(&IpamSubject) -> Vec<ObjectDraft>,
}

/// The objects for all workloads and claims.
pub fn ipam_desired(
    world: &IpamWorld<'_>,
    settings: &IpamSettings,
    owned: &OwnedObjects,
    now: Now,
) -> IpamDesired {
    let mut maker = Maker { world, settings, desired: IpamDesired::default(), holders: BTreeMap::new() };
    let mut workloads: Vec<(u64, &Workload)> = Vec::new();
    for (source, state) in world.inventory.sources() {
        if !settings.sources.is_empty() && !settings.sources.contains(source) {
            continue;
        }
        if state.says_all() {
            maker.desired.settled.insert(source.clone());
        }
        for (id, entry) in &state.entries {
            let at = (source.clone(), id.clone());
            let verdict = GraceVerdict::of(source, state, entry, settings.graces(), now);
            for former in &entry.former {
                let stands =
                    GraceVerdict::of_former(source, state, entry, former, &verdict, settings.graces());
                if let GraceVerdict::Waiting(why) = stands {
                    maker.keep(&former.workload, &why);
                }
            }
            let desired = &mut maker.desired;
            match verdict {
                GraceVerdict::Present => {
                    desired.present.insert(at);
                    workloads.push((entry.first, &entry.workload));
                }
                GraceVerdict::Waiting(why) => {
                    if let KeptReason::Ended { ended, grace } = &why {
                        let end = ended.saturating_add(grace.as_millis());
                        desired.next_end = Some(desired.next_end.map_or(end, |next| next.min(end)));
                    }
                    desired.waiting.insert(at, why);
                }
                GraceVerdict::Gone(cause, why) => {
                    desired.gone.insert(at, (cause, why));
                }
            }
        }
    }
    workloads.sort_by_key(|(first, workload)| (*first, workload.source.clone(), workload.id.clone()));
    let named = |workload: &Workload| -> Arc<str> {
        format!("{} {} of {}", workload.kind, workload.name, workload.source).into()
    };
    let subject = |(_, workload): (u64, &Workload)| {
        Some((of_workload(workload, settings, world.domains)?, named(workload)))
    };
    let subjects: Vec<(IpamSubject, Arc<str>)> = workloads.into_iter().filter_map(subject).collect();
    maker.hold(&subjects, owned);
    let mut subjects = maker.keep_addresses(subjects);
    maker.join_claims(&mut subjects);
    for (subject, why) in subjects {
        maker.want(&subject, &why);
    }
    let mut desired = maker.desired;
    desired.kept.retain(|key, _| !desired.objects.contains_key(key));
    desired
}

struct Maker<'a> {
    world: &'a IpamWorld<'a>,
    settings: &'a IpamSettings,
    desired: IpamDesired,
    /// Each address and the workload that has it.
    holders: BTreeMap<Address, (Ident, Key)>,
}

impl Maker<'_> {
    fn keep(&mut self, workload: &Workload, why: &KeptReason) {
        let Some(subject) = of_workload(workload, self.settings, self.world.domains) else { return };
        for draft in (self.world.shape)(&subject) {
            self.desired.kept.entry(draft.key).or_insert_with(|| why.clone());
        }
    }

    /// An address stays with the workload whose object has it, as long as that asks for it or may still exist.
    fn hold(&mut self, subjects: &[(IpamSubject, Arc<str>)], owned: &OwnedObjects) {
        let Some(kind) = self.world.can.kind_of(ObjectRole::Address).map(|one| &one.kind) else { return };
        let mut asked: BTreeSet<(&Ident, &Key, Address)> = BTreeSet::new();
        for (subject, _) in subjects {
            asked.extend(subject.all_addresses().map(|(_, one)| (&subject.source, &subject.id, one.address)));
        }
        for key in owned.0.keys().filter(|key| key.kind == *kind) {
            let Ok(address) = key.part.parse::<Address>() else { continue };
            let at = (key.source.clone(), key.workload.clone());
            let waits = self.desired.waiting.contains_key(&at) || self.desired.kept.contains_key(key);
            if waits || asked.contains(&(&key.source, &key.workload, address)) {
                self.holders.entry(address).or_insert(at);
            }
        }
    }

    /// Takes away addresses that another workload has.
    fn keep_addresses(&mut self, subjects: Vec<(IpamSubject, Arc<str>)>) -> Vec<(IpamSubject, Arc<str>)> {
        let mut left = Vec::with_capacity(subjects.len());
        for (mut subject, why) in subjects {
            let lost = keep_own(&mut subject, &mut self.holders);
            // Many names may share an address; one that is no machine has it by its name alone.
            for (address, (source, workload)) in lost.into_iter().filter(|_| subject.is_machine()) {
                let Some(kind) = self.world.can.kind_of(ObjectRole::Address) else { continue };
                let key = subject.key(kind.kind.clone(), address.to_string());
                let why = format!("{address} is the address of {source}/{}", workload.as_str());
                self.desired.blocked.push(IpamBlocked { key, why, adopt: None });
            }
            left.push((subject, why));
        }
        left
    }

    /// Claims whose address no workload has become subjects of their own; the others are part of the workload.
    fn join_claims(&mut self, subjects: &mut Vec<(IpamSubject, Arc<str>)>) {
        self.desired.claims = match self.world.claims {
            _ if !self.settings.claims => ClaimsView::Unwanted,
            Some(_) => ClaimsView::Complete,
            None => ClaimsView::Unasked,
        };
        let claims = self.world.claims.unwrap_or_default().iter().filter(|_| self.settings.claims);
        let by_address: BTreeMap<Address, &IpamClaim> = claims.map(|claim| (claim.address, claim)).collect();
        for (subject, _) in subjects.iter_mut() {
            let placed = subject.interfaces.iter_mut().flat_map(|interface| &mut interface.addresses);
            for one in placed.chain(&mut subject.addresses) {
                one.claim = by_address.get(&one.address).map(|claim| claim.title());
            }
        }
        for claim in by_address.values() {
            let Some(subject) = of_claim(claim) else { continue };
            let at = (subject.source.clone(), subject.id.clone());
            self.desired.present.insert(at.clone());
            if *self.holders.entry(claim.address).or_insert_with(|| at.clone()) == at {
                let why = format!("claim {} of {}", claim.title(), claim.owner).into();
                subjects.push((subject, why));
            }
        }
    }

    /// The objects of a subject, as far as the system holds their kinds and fields.
    fn want(&mut self, subject: &IpamSubject, why: &Arc<str>) {
        let kinds = &self.world.can.kinds;
        let held = |kind| kinds.iter().find(|one| one.kind == kind);
        for ObjectDraft { key, mut fields } in (self.world.shape)(subject) {
            let Some(about) = held(key.kind.clone()) else { continue };
            fields.retain(|name, value| {
                let lost = matches!(value, FieldValue::Ref(target) if held(target.kind.clone()).is_none());
                !lost && about.has_field(name)
            });
            self.desired.objects.entry(key).or_insert(WantedObject { fields, why: why.clone() });
        }
    }
}
