//! Calls for administrators: tokens, backup, check.

use futures::{Stream, StreamExt as _};
use reqwest::Method;
use serde::{Deserialize, Serialize};

use super::Client;
use crate::{
    ClientError,
    transport::Repeat,
    types::{ClusterOutput, LoginLinkOutput, NodeInput, Page, SessionOutput, TokenInput, TokenOutput},
};

/// The result of a check of the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckOutput {
    pub problems: Vec<CheckProblem>,
    pub keys: u64,
}

/// One thing in the store that should not be so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckProblem {
    pub key: String,
    pub problem: String,
    #[serde(default)]
    pub repairable: bool,
}

impl Client {
    /// The nodes, as the one that is asked knows them.
    pub async fn cluster(&self) -> Result<ClusterOutput, ClientError> {
        self.get(&["cluster"], &()).await
    }

    /// Forgets a node that is gone for good, by its id or name.
    pub async fn remove_member(&self, id: &str) -> Result<(), ClientError> {
        let call = self.delete(&["cluster", "members", id], Repeat::Once, &())?;
        self.send::<serde_json::Value>(call).await.map(drop)
    }

    /// Lets a node that waits for it into the cluster.
    pub async fn add_node(&self, node: &NodeInput) -> Result<(), ClientError> {
        let call = self.post(&["cluster", "nodes"], Repeat::Once, node)?;
        self.send::<serde_json::Value>(call).await.map(drop)
    }

    /// Removes a node from the cluster for good, by its id, name or address.
    pub async fn remove_node(&self, id: &str) -> Result<(), ClientError> {
        let call = self.delete(&["cluster", "nodes", id], Repeat::Once, &())?;
        self.send::<serde_json::Value>(call).await.map(drop)
    }

    pub async fn tokens(&self) -> Result<Page<TokenOutput>, ClientError> {
        self.get(&["tokens"], &()).await
    }

    /// Makes a token; the answer is the only one that has its secret.
    pub async fn create_token(&self, token: &TokenInput) -> Result<TokenOutput, ClientError> {
        self.send(self.post(&["tokens"], Repeat::Once, token)?).await
    }

    pub async fn revoke_token(&self, id: &str) -> Result<(), ClientError> {
        let call = self.delete(&["tokens", id], Repeat::Idempotent, &())?;
        self.send::<serde_json::Value>(call).await.map(drop)
    }

    /// Makes a link that opens one session of the web page, within a minute.
    pub async fn create_login_link(&self) -> Result<LoginLinkOutput, ClientError> {
        self.send(self.post(&["sessions", "link"], Repeat::Once, &serde_json::json!({}))?).await
    }

    /// Sessions of the web page that still live.
    pub async fn sessions(&self) -> Result<Page<SessionOutput>, ClientError> {
        self.get(&["sessions"], &()).await
    }

    /// Ends a session; one that ended already is fine.
    pub async fn end_session(&self, id: &str) -> Result<(), ClientError> {
        let call = self.delete(&["sessions", id], Repeat::Idempotent, &())?;
        self.send::<serde_json::Value>(call).await.map(drop)
    }

    /// The backup file as it comes. History that is damaged is left out if that is asked for.
    pub async fn backup(
        &self,
        leave_out_damaged: bool,
    ) -> Result<impl Stream<Item = Result<Vec<u8>, ClientError>> + use<>, ClientError> {
        let mut call = self.transport.call(Method::GET, &["backup"], Repeat::Read)?;
        if leave_out_damaged {
            call = call.query(&serde_json::json!({ "damaged": "leave-out" }))?;
        }
        let response = self.transport.stream(call).await?;
        let url = self.url().clone();
        Ok(response.bytes_stream().map(move |chunk| match chunk {
            Ok(bytes) => Ok(bytes.into()),
            Err(source) => Err(ClientError::BrokenOff { url: url.clone(), source: source.without_url() }),
        }))
    }

    /// Compares what is stored with what may be stored.
    pub async fn check(&self) -> Result<CheckOutput, ClientError> {
        self.send(self.post(&["check"], Repeat::Idempotent, &serde_json::json!({}))?).await
    }
}
