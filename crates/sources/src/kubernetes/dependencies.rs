//! Kinds that others depend on: which of them can be seen, and which objects a change of them concerns.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use netstead_model::View;

use super::{
    Kubernetes,
    kinds::{Body, ObjectKind},
    object::{ObjectName, Stored},
    reflector::{Dirty, Reflector},
    surroundings::Surroundings,
};

/// The kinds that others depend on.
const HELPERS: [ObjectKind; 3] = [ObjectKind::Gateway, ObjectKind::EndpointSlice, ObjectKind::Node];

impl Kubernetes {
    /// The objects that others depend on, as far as they can be seen.
    pub(super) fn surroundings(
        &self,
        reflectors: &[Arc<Reflector>],
        available: &BTreeSet<ObjectKind>,
    ) -> Surroundings<'_> {
        let of = |kind: ObjectKind| -> Option<Vec<Arc<Stored>>> {
            let mut objects = Vec::new();
            for one in reflectors.iter().filter(|one| one.kind == kind) {
                objects.extend(one.state().objects.values().cloned());
            }
            available.contains(&kind).then_some(objects)
        };
        let gateways = of(ObjectKind::Gateway)
            .map(|all| all.into_iter().map(|stored| (stored.name.clone(), stored)).collect());
        let nodes = of(ObjectKind::Node)
            .map(|all| all.into_iter().map(|stored| (stored.name.name.clone(), stored)).collect());
        let slices = of(ObjectKind::EndpointSlice).map(|all| {
            let mut by_service: BTreeMap<ObjectName, Vec<Arc<Stored>>> = BTreeMap::new();
            for stored in all {
                by_service.entry(service_of(&stored)).or_default().push(stored);
            }
            by_service
        });
        Surroundings {
            source: &self.name,
            settings: &self.settings,
            reader: &self.reader,
            gateways,
            slices,
            nodes,
        }
    }

    /// Marks the objects whose workload depends on something that changed, or that can be seen again. Returns the kinds that
    /// can be seen.
    pub(super) fn spread_changes(&self, reflectors: &[Arc<Reflector>]) -> BTreeSet<ObjectKind> {
        let available: BTreeSet<ObjectKind> =
            HELPERS.into_iter().filter(|kind| is_seen(*kind, reflectors)).collect();
        let before = std::mem::replace(&mut self.state().available, available.clone());
        let back = |kind: ObjectKind| available.contains(&kind) && !before.contains(&kind);
        let mut routes = back(ObjectKind::Gateway);
        let mut all_services = back(ObjectKind::Node) || back(ObjectKind::EndpointSlice);
        let mut services = BTreeSet::new();
        for reflector in reflectors {
            let mut state = reflector.state();
            let objects = &state.objects;
            match reflector.kind {
                ObjectKind::Gateway => routes |= !state.dirty.names.is_empty() || state.dirty.all,
                ObjectKind::Node => all_services |= !state.dirty.names.is_empty() || state.dirty.all,
                ObjectKind::EndpointSlice => {
                    all_services |= state.dirty.all;
                    for name in &state.dirty.names {
                        match objects.get(name) {
                            Some(stored) => drop(services.insert(service_of(stored))),
                            // A slice that is gone does not say whose it was.
                            None => all_services = true,
                        }
                    }
                }
                _ => continue,
            }
            if self.is_helper(reflector.kind) {
                state.dirty = Dirty::default();
                state.ended.clear();
            }
        }
        for reflector in reflectors {
            let mut state = reflector.state();
            match reflector.kind {
                ObjectKind::Service | ObjectKind::Pod if all_services => state.dirty.all = true,
                ObjectKind::Service => {
                    let here: Vec<ObjectName> =
                        services.iter().filter(|name| state.objects.contains_key(*name)).cloned().collect();
                    state.dirty.names.extend(here);
                }
                kind if kind.is_route() && routes => state.dirty.all = true,
                _ => {}
            }
        }
        available
    }

    /// Why the objects of a kind cannot be judged though they are seen: a kind that they depend on is not.
    pub(super) fn lacking(&self, kind: ObjectKind, reflectors: &[Arc<Reflector>]) -> View {
        let needs: &[ObjectKind] = match kind {
            kind if kind.is_route() => &[ObjectKind::Gateway],
            ObjectKind::Service => &[ObjectKind::EndpointSlice, ObjectKind::Node],
            ObjectKind::Pod => &[ObjectKind::Node],
            _ => &[],
        };
        let needed = self.state().needed.clone();
        let needs = |kind: ObjectKind| {
            needs.contains(&kind) && (kind == ObjectKind::Gateway || needed.contains(&kind))
        };
        let mut broken = reflectors.iter().filter(|one| needs(one.kind)).filter_map(|one| one.view());
        let reason = broken.find_map(|view| view.reason().map(str::to_owned));
        reason.map_or(View::Complete, |reason| View::Partial { reason })
    }
}

/// Whether everything of a kind can be seen; a kind that the cluster does not have is seen to be empty.
fn is_seen(kind: ObjectKind, reflectors: &[Arc<Reflector>]) -> bool {
    let mut all = reflectors.iter().filter(|one| one.kind == kind).peekable();
    all.peek().is_some() && all.all(|one| one.is_watching() || one.is_absent())
}

/// The service that a slice is of.
fn service_of(slice: &Stored) -> ObjectName {
    let service = match &slice.body {
        Body::EndpointSlice(slice) => slice.service.as_str(),
        _ => "",
    };
    ObjectName::new(slice.name.namespace.as_str(), service)
}
