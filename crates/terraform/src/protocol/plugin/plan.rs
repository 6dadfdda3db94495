//! Plans: which values will be there, which are known only after apply, and what needs a new resource.

use std::sync::PoisonError;

use super::{Plugin, identity_of, messages, object};
use crate::protocol::{
    diagnostic::{Diagnostic, Step, path_of},
    messages::{AttributePath, PlanAnswer, PlanRequest},
    msgpack::encode,
    resource::{Change, Resource},
    schema::{Mode, Schema},
    value::{Fields as _, Object, Value},
};

impl<S: Send + Sync> Plugin<S> {
    pub(in crate::protocol) async fn plan(&self, asked: PlanRequest) -> PlanAnswer {
        match self.planned(&asked).await {
            Ok(answer) => answer,
            Err(wrong) => PlanAnswer { diagnostics: vec![wrong.into()], ..PlanAnswer::default() },
        }
    }

    async fn planned(&self, asked: &PlanRequest) -> Result<PlanAnswer, Diagnostic> {
        let resource = self.resource(&asked.type_name)?;
        let schema = resource.schema();
        let prior = object(&schema, asked.prior.as_ref())?;
        let Some(proposed) = object(&schema, asked.proposed.as_ref())? else {
            return Ok(PlanAnswer { planned: Some(encode(&Value::Null)), ..PlanAnswer::default() });
        };
        let config = object(&schema, asked.config.as_ref())?.unwrap_or_default();
        let mut planned = proposed;
        fill(&schema, prior.as_ref(), &config, &mut planned);
        let session = self.session.get().map(AsRef::as_ref);
        let change = Change { prior: prior.as_ref(), config: &config, planned: &mut planned };
        let mut found = resource.plan(session, change).await;
        let requires_replace = match &prior {
            Some(prior) => replacing(resource, &schema, session, prior, &planned).await,
            None => Vec::new(),
        };
        let this = (
            asked.type_name.clone(),
            asked.config.as_ref().map(|one| one.msgpack.clone()).unwrap_or_default(),
        );
        let mut replaced = self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
        if !requires_replace.is_empty() {
            replaced.insert(this);
        } else if prior.is_none() && replaced.contains(&this) {
            // A warning would be about the resource that this one takes the place of.
            found.retain(|one| !one.warning);
        }
        drop(replaced);
        let diagnostics = messages(found);
        // The identity of a resource that is replaced is that of the one that is there.
        let named = prior.as_ref().filter(|_| requires_replace.is_empty()).unwrap_or(&planned);
        let identity = identity_of(resource, named);
        let planned = Some(encode(&Value::Map(planned)));
        Ok(PlanAnswer { planned, requires_replace, private: asked.private.clone(), diagnostics, identity })
    }
}

/// Sets defaults, and marks as unknown what only the apply will say.
fn fill(schema: &Schema, prior: Option<&Object>, config: &Object, planned: &mut Object) {
    for attribute in schema.attributes.iter().filter(|one| one.is_computed()) {
        let said = attribute.mode == Mode::OptionalComputed && !config.value(attribute.name).is_null();
        if said {
            continue;
        }
        if let Some(default) = &attribute.default {
            planned.insert(attribute.name.to_owned(), default.clone());
        } else if prior.is_none() {
            planned.insert(attribute.name.to_owned(), Value::UNKNOWN);
        }
    }
    let Some(prior) = prior else { return };
    let changed = schema.attributes.iter().any(|one| {
        let given = !one.is_computed() || !config.value(one.name).is_null() || one.default.is_some();
        given && planned.value(one.name) != prior.value(one.name)
    });
    if changed {
        for attribute in schema.attributes.iter().filter(|one| one.follows) {
            if config.value(attribute.name).is_null() {
                planned.insert(attribute.name.to_owned(), Value::UNKNOWN);
            }
        }
    }
}

async fn replacing<S: Send + Sync>(
    resource: &dyn Resource<S>,
    schema: &Schema,
    session: Option<&S>,
    prior: &Object,
    planned: &Object,
) -> Vec<AttributePath> {
    let mut paths = Vec::new();
    for attribute in schema.attributes.iter().filter(|one| one.replaces) {
        let differs = planned.value(attribute.name) != prior.value(attribute.name);
        if differs && resource.replaces(session, attribute.name, prior, planned).await {
            paths.push(path_of(vec![Step::Attribute(attribute.name.to_owned())]));
        }
    }
    paths
}
