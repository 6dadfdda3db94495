//! Adopt, recover, clean and rollback.

use super::Client;
use crate::{
    ClientError,
    transport::Repeat,
    types::{AdoptInput, CleanInput, RecoverInput, RollbackInput, TakeOutput, UndoOutput},
};

impl Client {
    /// Takes over foreign records.
    pub async fn adopt(&self, adopt: &AdoptInput) -> Result<TakeOutput, ClientError> {
        self.send(self.post(&["adopt"], Repeat::Idempotent, adopt)?).await
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
