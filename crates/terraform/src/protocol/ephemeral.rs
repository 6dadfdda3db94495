//! [`Ephemeral`]: the trait behind which ephemeral resources stand. They exist during one run of Terraform, and no state has them.

use std::time::Duration;

use async_trait::async_trait;

use super::{diagnostic::Diagnostic, resource::Failed, schema::Schema, value::Object};

/// An ephemeral resource that was opened.
#[derive(Debug)]
pub struct Opened {
    pub value: Object,
    /// Kept by Terraform for the renewals and the end of this one.
    pub private: Vec<u8>,
    /// When it must be renewed, from now. `None`: never.
    pub renew_in: Option<Duration>,
}

#[async_trait]
pub trait Ephemeral<S: Sync>: Send + Sync {
    /// The type as users write it: `netstead_address`.
    fn name(&self) -> &'static str;
    fn schema(&self) -> Schema;
    fn example(&self) -> &'static str;

    /// Finds attributes that do not fit together. Values may be unknown.
    fn validate(&self, _config: &Object) -> Vec<Diagnostic> {
        Vec::new()
    }

    async fn open(&self, session: &S, config: &Object) -> Result<Opened, Failed>;

    /// Answers when it must be renewed again, from now.
    async fn renew(&self, session: &S, private: &[u8]) -> Result<Option<Duration>, Failed>;

    /// One that is gone already is fine.
    async fn close(&self, session: &S, private: &[u8]) -> Result<(), Failed>;
}
