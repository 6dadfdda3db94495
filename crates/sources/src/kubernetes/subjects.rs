//! Finds the objects that something is written to.

use std::sync::Arc;

use netstead_model::Key;

use super::{
    Kubernetes, annotations,
    kinds::ObjectKind,
    load_balancer::SeenServices,
    object::{ObjectName, Stored},
    reporting::{Subject, Subjects},
    workload,
};

impl Kubernetes {
    /// The Services that name a class of load balancers.
    pub(super) fn seen_services(&self) -> SeenServices {
        let reflectors = self.reflectors();
        let all: Vec<_> = reflectors.iter().filter(|one| one.kind == ObjectKind::Service).collect();
        let mut services = Vec::new();
        for reflector in &all {
            let state = reflector.state();
            let status = |name: &ObjectName| state.statuses.get(name).cloned();
            services.extend(
                state.objects.iter().filter_map(|(name, stored)| Some((Arc::clone(stored), status(name)?))),
            );
        }
        SeenServices { services, complete: !all.is_empty() && all.iter().all(|one| one.is_watching()) }
    }
}

impl Subjects for Kubernetes {
    fn subject(&self, id: &Key) -> Option<Subject> {
        let (word, rest) = id.as_str().split_once('/')?;
        let name = match rest.split_once('/') {
            Some((namespace, name)) => ObjectName::new(namespace, name),
            None => ObjectName::new("", rest),
        };
        for reflector in self.reflectors().iter().filter(|one| one.definition.word == word) {
            let state = reflector.state();
            let whole = |object: &&Arc<Stored>| {
                workload::id(&reflector.definition, &object.name).as_ref() == Some(id)
            };
            // The end of an id that would be too long is a digest.
            let found = match state.objects.get(&name) {
                None if rest.contains('~') => state.objects.values().find(whole),
                found => found,
            };
            if let (Some(object), Some(resource)) = (found, &state.resource) {
                let record = reflector.kind.is_record();
                return Some(Subject {
                    resource: resource.clone(),
                    object: Arc::clone(object),
                    status: record.then(|| state.statuses.get(&object.name).cloned().unwrap_or_default()),
                    silenced: annotations::is_silenced(object),
                });
            }
        }
        None
    }
}
