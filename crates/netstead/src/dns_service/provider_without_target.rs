//! A provider whose target is not known yet: nothing is planned until it is.

use std::sync::Arc;

use async_trait::async_trait;
use netstead_model::{
    Capabilities, DnsProvider, Name, ProviderError, UnitOutcome, WriteRequest, Zone, ZoneContent,
};

/// Fails with the reason wherever the server itself would be asked.
#[derive(Debug)]
pub(super) struct ProviderWithoutTarget {
    pub(super) provider: Arc<dyn DnsProvider>,
    /// `public`, `interface:eth0`.
    pub(super) target: String,
    pub(super) reason: String,
}

impl ProviderWithoutTarget {
    fn fails<T>(&self) -> Result<T, ProviderError> {
        let server = format!("the target `{}`", self.target);
        Err(ProviderError::Unreachable { server, reason: self.reason.clone() })
    }
}

#[async_trait]
impl DnsProvider for ProviderWithoutTarget {
    fn kind(&self) -> &'static str {
        self.provider.kind()
    }

    fn server(&self) -> String {
        self.provider.server()
    }

    fn capabilities(&self) -> Capabilities {
        self.provider.capabilities()
    }

    async fn zones(&self, _: &[Name]) -> Result<Vec<Zone>, ProviderError> {
        self.fails()
    }

    async fn read(&self, _: &Name) -> Result<ZoneContent, ProviderError> {
        self.fails()
    }

    async fn write(&self, _: &Name, _: &WriteRequest) -> Result<Vec<UnitOutcome>, ProviderError> {
        self.fails()
    }
}
