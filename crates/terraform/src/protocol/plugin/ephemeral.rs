//! Ephemeral resources: opened, renewed and closed.

use std::{sync::atomic::Ordering, time::Duration};

use netstead_model::{Clock as _, SystemClock};

use super::{Plugin, messages, object, unknown_type};
use crate::protocol::{
    diagnostic::Diagnostic,
    ephemeral::Ephemeral,
    messages::{
        DiagnosticsAnswer, EphemeralRequest, OpenEphemeralAnswer, OpenEphemeralRequest, RenewEphemeralAnswer,
        Timestamp, ValidateRequest,
    },
    msgpack::encode,
    resource::Failed,
    value::{Fields as _, Object, Value},
};

impl<S: Send + Sync> Plugin<S> {
    pub(in crate::protocol) fn validate_ephemeral(&self, asked: &ValidateRequest) -> DiagnosticsAnswer {
        let check = || {
            let ephemeral = self.ephemeral(&asked.type_name)?;
            let schema = ephemeral.schema();
            let config = object(&schema, asked.config.as_ref())?.unwrap_or_default();
            let mut found = schema.problems(&config);
            found.extend(ephemeral.validate(&config));
            Ok(found)
        };
        DiagnosticsAnswer { diagnostics: messages(check().unwrap_or_else(|wrong: Diagnostic| vec![wrong])) }
    }

    pub(in crate::protocol) async fn open_ephemeral(
        &self,
        asked: OpenEphemeralRequest,
    ) -> OpenEphemeralAnswer {
        match self.opened(&asked).await {
            Ok(answer) => answer,
            Err(failed) => OpenEphemeralAnswer {
                diagnostics: messages(failed.diagnostics),
                ..OpenEphemeralAnswer::default()
            },
        }
    }

    async fn opened(&self, asked: &OpenEphemeralRequest) -> Result<OpenEphemeralAnswer, Failed> {
        let ephemeral = self.ephemeral(&asked.type_name)?;
        let schema = ephemeral.schema();
        let config = object(&schema, asked.config.as_ref())?.unwrap_or_default();
        if self.stopped.load(Ordering::Relaxed) {
            let said = format!("a {} was not opened", ephemeral.name());
            return Err(Diagnostic::error(said, "Terraform was interrupted before. Run it again.").into());
        }
        let opened = ephemeral.open(self.session()?, &config).await?;
        let attributes = schema.attributes.iter().map(|one| {
            let given = config.value(one.name);
            let value = if given.is_null() { opened.value.value(one.name) } else { given };
            (one.name.to_owned(), value.clone())
        });
        Ok(OpenEphemeralAnswer {
            diagnostics: Vec::new(),
            renew_at: opened.renew_in.map(from_now),
            result: Some(encode(&Value::Map(attributes.collect::<Object>()))),
            private: Some(opened.private),
        })
    }

    pub(in crate::protocol) async fn renew_ephemeral(&self, asked: EphemeralRequest) -> RenewEphemeralAnswer {
        let renew = async {
            let ephemeral = self.ephemeral(&asked.type_name)?;
            ephemeral.renew(self.session()?, asked.private.as_deref().unwrap_or_default()).await
        };
        let (renew_in, diagnostics) = match renew.await {
            Ok(renew_in) => (renew_in, Vec::new()),
            Err(failed) => (None, messages(failed.diagnostics)),
        };
        RenewEphemeralAnswer { diagnostics, renew_at: renew_in.map(from_now), private: asked.private }
    }

    /// Also after an interruption: what was opened is closed.
    pub(in crate::protocol) async fn close_ephemeral(&self, asked: EphemeralRequest) -> DiagnosticsAnswer {
        let close = async {
            let ephemeral = self.ephemeral(&asked.type_name)?;
            ephemeral.close(self.session()?, asked.private.as_deref().unwrap_or_default()).await
        };
        let diagnostics = close.await.err().map(|failed: Failed| messages(failed.diagnostics));
        DiagnosticsAnswer { diagnostics: diagnostics.unwrap_or_default() }
    }

    fn ephemeral(&self, name: &str) -> Result<&dyn Ephemeral<S>, Diagnostic> {
        let found = self.provider.ephemerals.iter().find(|one| one.name() == name);
        found.map(AsRef::as_ref).ok_or_else(|| unknown_type(name))
    }
}

fn from_now(time: Duration) -> Timestamp {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    Timestamp { seconds: SystemClock.wall().as_second().saturating_add(seconds), nanos: 0 }
}
