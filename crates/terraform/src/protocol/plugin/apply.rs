//! Reads and changes of resources.

use std::sync::atomic::Ordering;

use super::{Plugin, identity_of, messages, object};
use crate::protocol::{
    diagnostic::Diagnostic,
    messages::{ApplyAnswer, ApplyRequest, ReadAnswer, ReadRequest},
    msgpack::encode,
    resource::{Failed, Resource},
    schema::Schema,
    value::{Fields as _, Object, Value},
};

impl<S: Send + Sync> Plugin<S> {
    pub(in crate::protocol) async fn read(&self, asked: ReadRequest) -> ReadAnswer {
        match self.refreshed(&asked).await {
            Ok(answer) => answer,
            // The state stays as it is: a server that does not answer has lost nothing.
            Err(failed) => ReadAnswer {
                state: asked.state,
                diagnostics: messages(failed.diagnostics),
                private: asked.private,
                identity: None,
            },
        }
    }

    async fn refreshed(&self, asked: &ReadRequest) -> Result<ReadAnswer, Failed> {
        let resource = self.resource(&asked.type_name)?;
        let schema = resource.schema();
        let state = object(&schema, asked.state.as_ref())?.unwrap_or_default();
        let private = asked.private.clone();
        if let Some(found) = resource.read(self.session()?, &state).await? {
            let found = complete(&schema, &found);
            let identity = identity_of(resource, &found);
            let state = Some(encode(&Value::Map(found)));
            return Ok(ReadAnswer { state, diagnostics: Vec::new(), private, identity });
        }
        let named: Vec<String> = resource
            .identity()
            .iter()
            .map(|name| format!("{name} = {}", state.value(name).as_text().unwrap_or("?")))
            .collect();
        let gone = Diagnostic::warning(
            format!("a {} is gone", resource.name()),
            format!(
                "It was removed outside of Terraform ({}). The plan makes it again; to leave it out, remove it from the \
                 configuration.",
                named.join(", ")
            ),
        );
        Ok(ReadAnswer {
            state: Some(encode(&Value::Null)),
            diagnostics: vec![gone.into()],
            private,
            identity: None,
        })
    }

    pub(in crate::protocol) async fn apply(&self, asked: ApplyRequest) -> ApplyAnswer {
        match self.applied(&asked).await {
            Ok(answer) => answer,
            Err(wrong) => ApplyAnswer {
                state: asked.prior,
                private: asked.private,
                diagnostics: vec![wrong.into()],
                identity: None,
            },
        }
    }

    async fn applied(&self, asked: &ApplyRequest) -> Result<ApplyAnswer, Diagnostic> {
        let resource = self.resource(&asked.type_name)?;
        let schema = resource.schema();
        let prior = object(&schema, asked.prior.as_ref())?;
        let planned = object(&schema, asked.planned.as_ref())?;
        let config = object(&schema, asked.config.as_ref())?.unwrap_or_default();
        if self.stopped.load(Ordering::Relaxed) {
            return Err(Diagnostic::error(
                format!("a {} was not changed", resource.name()),
                "Terraform was interrupted before this change began. Apply again.",
            ));
        }
        let done = self.change(resource, &schema, prior.as_ref(), planned.as_ref(), &config).await;
        let (state, diagnostics) = match done {
            Ok(state) => (state, Vec::new()),
            Err(failed) => {
                (failed.state.map(|state| complete(&schema, &state)).or(prior), failed.diagnostics)
            }
        };
        Ok(ApplyAnswer {
            identity: state.as_ref().and_then(|state| identity_of(resource, state)),
            state: Some(encode(&state.map_or(Value::Null, Value::Map))),
            private: asked.private.clone(),
            diagnostics: messages(diagnostics),
        })
    }

    async fn change(
        &self,
        resource: &dyn Resource<S>,
        schema: &Schema,
        prior: Option<&Object>,
        planned: Option<&Object>,
        config: &Object,
    ) -> Result<Option<Object>, Failed> {
        let session = self.session()?;
        let done = match (prior, planned) {
            (Some(prior), None) => return resource.delete(session, prior).await.map(|()| None),
            (None, None) => return Ok(None),
            (None, Some(planned)) => (resource.create(session, planned, config).await?, planned),
            (Some(prior), Some(planned)) => {
                (resource.update(session, prior, planned, config).await?, planned)
            }
        };
        let (found, planned) = done;
        Ok(Some(as_planned(schema, planned, &found)))
    }
}

/// Terraform wants what it was promised: a server's own spelling of a value comes with the next read, which knows both.
fn as_planned(schema: &Schema, planned: &Object, found: &Object) -> Object {
    let attributes = schema.attributes.iter().map(|one| {
        let promised = planned.value(one.name);
        let value = if promised.is_known() { promised } else { found.value(one.name) };
        (one.name.to_owned(), value.clone())
    });
    attributes.collect()
}

/// All attributes of the schema, and no others.
fn complete(schema: &Schema, found: &Object) -> Object {
    schema.attributes.iter().map(|one| (one.name.to_owned(), found.value(one.name).clone())).collect()
}
