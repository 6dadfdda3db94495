//! Single addresses, the stream of events, and what was seen in use.

use super::Client;
use crate::{
    ClientError, EventStream,
    types::{ExplainOutput, ObservationInput, ObservationOutput},
};

impl Client {
    /// Everything known about one address or prefix.
    pub async fn explain(&self, address: &str) -> Result<ExplainOutput, ClientError> {
        self.get(&["addresses", address], &()).await
    }

    /// Events as they happen, from the one after the cursor `after`, or from now.
    pub fn follow(&self, after: Option<String>) -> EventStream {
        EventStream::new(self.transport.clone(), after)
    }

    pub async fn observe(
        &self,
        source: &str,
        seen: &ObservationInput,
    ) -> Result<ObservationOutput, ClientError> {
        let call = self.put(&["observations", source], seen)?;
        self.send(call).await
    }
}
