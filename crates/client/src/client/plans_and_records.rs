//! Plans, records and pauses.

use super::Client;
use crate::{
    ClientError,
    transport::Repeat,
    types::{
        ApplyInput, ApplyOutput, ManualOutput, NameOutput, PauseInput, PauseOutput, PlanOutput, RecordInput,
        ResumeInput, WhatIfInput, WhatIfOutput,
    },
};

impl Client {
    /// The newest plan of one provider.
    pub async fn plan(&self, provider: &str) -> Result<PlanOutput, ClientError> {
        self.get(&["plans", provider], &()).await
    }

    /// The same, with every parked change and every note in its text.
    pub async fn full_plan(&self, provider: &str) -> Result<PlanOutput, ClientError> {
        self.get(&["plans", provider], &serde_json::json!({ "all": true })).await
    }

    /// Everything the provider's plan is made of now: a case for the tests of planning.
    pub async fn case(&self, provider: &str) -> Result<serde_json::Value, ClientError> {
        self.get(&["plans", provider, "case"], &()).await
    }

    /// Plans another configuration. Nothing is changed by asking.
    pub async fn what_if(&self, input: &WhatIfInput) -> Result<WhatIfOutput, ClientError> {
        self.send(self.post(&["what-if"], Repeat::Idempotent, input)?).await
    }

    /// Why a name is as it is.
    pub async fn explain_name(&self, name: &str) -> Result<NameOutput, ClientError> {
        self.get(&["names", name], &()).await
    }

    /// Looks at the sources and brings the providers in line, or the one that is named.
    pub async fn apply(&self, provider: Option<String>) -> Result<ApplyOutput, ClientError> {
        self.send(self.post(&["apply"], Repeat::Idempotent, &ApplyInput { provider })?).await
    }

    /// Does exactly the parked changes with this hash, once.
    pub async fn approve(&self, hash: &str) -> Result<ApplyOutput, ClientError> {
        self.send(self.post(&["apply", hash], Repeat::Once, &serde_json::json!({}))?).await
    }

    /// Sets all values of one type at one name.
    pub async fn set_record(
        &self,
        name: &str,
        kind: &str,
        record: &RecordInput,
    ) -> Result<ManualOutput, ClientError> {
        self.send(self.put(&["records", name, kind], record)?).await
    }

    /// The record of one type at one name that was set by hand; `None` if there is none.
    pub async fn record(&self, name: &str, kind: &str) -> Result<Option<ManualOutput>, ClientError> {
        match self.get(&["records", name, kind], &()).await {
            Ok(record) => Ok(Some(record)),
            Err(error) if error.is("no-such-record") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes away what was set by hand; nothing there is fine. Says whether there was something.
    pub async fn delete_record(&self, name: &str, kind: Option<&str>) -> Result<bool, ClientError> {
        let path = ["records", name].into_iter().chain(kind).collect::<Vec<_>>();
        let call = self.delete(&path, Repeat::Idempotent, &())?;
        let answer = self.send::<serde_json::Value>(call).await?;
        Ok(answer.get("deleted").and_then(serde_json::Value::as_bool).unwrap_or_default())
    }

    /// Stops writing to everything, to a provider or to a zone.
    pub async fn pause(&self, pause: &PauseInput) -> Result<PauseOutput, ClientError> {
        self.send(self.post(&["pause"], Repeat::Idempotent, pause)?).await
    }

    /// Ends pauses. Without a provider all of them end, and a restored ledger hands out addresses again.
    pub async fn resume(&self, resume: &ResumeInput) -> Result<(), ClientError> {
        let call = self.post(&["resume"], Repeat::Idempotent, resume)?;
        self.send::<serde_json::Value>(call).await.map(drop)
    }
}
