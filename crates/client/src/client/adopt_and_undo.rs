//! Adopt, recover, clean and rollback.

use serde::Serialize;

use super::Client;
use crate::{
    ClientError,
    transport::Repeat,
    types::{
        AdoptInput, CleanInput, IgnoreDriftInput, IgnoredDriftOutput, RecoverInput, RollbackInput,
        TakeOutput, UndoOutput,
    },
};

#[derive(Serialize)]
struct Place<'a> {
    name: &'a str,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<&'a str>,
}

impl Client {
    /// Takes over foreign records.
    pub async fn adopt(&self, adopt: &AdoptInput) -> Result<TakeOutput, ClientError> {
        self.send(self.post(&["adopt"], Repeat::Idempotent, adopt)?).await
    }

    /// Ignores the drift at a name until it changes.
    pub async fn ignore_drift(
        &self,
        drift: &IgnoreDriftInput,
    ) -> Result<Vec<IgnoredDriftOutput>, ClientError> {
        self.send(self.post(&["drift", "ignored"], Repeat::Idempotent, drift)?).await
    }

    /// Reports the drift at a name again.
    pub async fn report_drift_again(
        &self,
        name: &str,
        kind: Option<&str>,
        provider: Option<&str>,
    ) -> Result<Vec<IgnoredDriftOutput>, ClientError> {
        let place = Place { name, kind, provider };
        self.send(self.delete(&["drift", "ignored"], Repeat::Idempotent, &place)?).await
    }

    /// Takes over what the marks of a lost store say is ours.
    pub async fn recover(&self, recover: &RecoverInput) -> Result<TakeOutput, ClientError> {
        self.send(self.post(&["recover"], Repeat::Idempotent, recover)?).await
    }

    /// Removes what a detached source brought, or everything of ours on a provider.
    pub async fn clean(&self, clean: &CleanInput) -> Result<UndoOutput, ClientError> {
        self.send(self.post(&["clean"], Repeat::Once, clean)?).await
    }

    /// Brings a provider back to what a generation had.
    pub async fn rollback(&self, rollback: &RollbackInput) -> Result<UndoOutput, ClientError> {
        self.send(self.post(&["rollback"], Repeat::Once, rollback)?).await
    }
}
