//! Pools and reservations.

use reqwest::header::{IF_MATCH, IF_NONE_MATCH};
use serde::{Deserialize, Serialize};

use super::{Change, Client, Tagged};
use crate::{
    ClientError,
    transport::Repeat,
    types::{
        PoolHistoryOutput, PoolInput, PoolOutput, ReleaseDriftInput, ReleaseOutput, ReservationInput,
        ReservationOutput, RestoreDriftInput, UsageOutput,
    },
};

#[derive(Deserialize)]
struct Deleted {
    released: u64,
    #[serde(default)]
    owed: u64,
}

#[derive(Serialize)]
struct Force<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    force: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    abandon: Option<&'a str>,
}

#[derive(Serialize)]
struct Days {
    days: u32,
}

/// The result of deleting a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeletedPool {
    /// Claims that were released.
    pub released: u64,
    /// Addresses that its backend has not got back yet; the pool goes when it has.
    pub owed: u64,
}

impl Client {
    pub async fn pool(&self, name: &str) -> Result<Tagged<PoolOutput>, ClientError> {
        let answer = self.get_tagged(&["pools", name], &()).await?;
        Ok(Tagged { value: answer.value, etag: answer.etag })
    }

    /// How full a pool was, and when it will be full.
    pub async fn pool_history(&self, name: &str) -> Result<PoolHistoryOutput, ClientError> {
        Ok(self.get_tagged(&["pools", name, "usage"], &()).await?.value)
    }

    /// How much changed on each of the last days, and which pools fill.
    pub async fn usage(&self, days: u32) -> Result<UsageOutput, ClientError> {
        Ok(self.get_tagged(&["usage"], &Days { days }).await?.value)
    }

    /// Makes a pool. One that is there with the same settings is fine.
    pub async fn create_pool(
        &self,
        name: &str,
        pool: &PoolInput,
    ) -> Result<(PoolOutput, Change), ClientError> {
        let call = self.put(&["pools", name], pool)?.header(IF_NONE_MATCH, "*")?;
        let answer = self.transport.json(call).await?;
        Ok((answer.value, answer.status.into()))
    }

    /// Replaces all settings of a pool that still has the version `etag`, or has these settings since then.
    pub async fn replace_pool(
        &self,
        name: &str,
        pool: &PoolInput,
        etag: &str,
    ) -> Result<PoolOutput, ClientError> {
        let call = self.put(&["pools", name], pool)?.header(IF_MATCH, etag)?;
        self.send(call).await
    }

    /// Deletes a pool that still has the version `etag`, or is gone since then; with a reason, together with its claims.
    /// Returns how many those were. `abandon` forgets what its backend holds, with the reason.
    pub async fn delete_pool(
        &self,
        name: &str,
        force: Option<&str>,
        abandon: Option<&str>,
        etag: &str,
    ) -> Result<DeletedPool, ClientError> {
        let call = self.delete(&["pools", name], Repeat::Idempotent, &Force { force, abandon })?;
        let Deleted { released, owed } = self.send(call.header(IF_MATCH, etag)?).await?;
        Ok(DeletedPool { released, owed })
    }

    /// Lets a backend hold the address of a claim again that it lost.
    pub async fn restore_drift(&self, pool: &str, key: &str) -> Result<(), ClientError> {
        let input = RestoreDriftInput { pool: pool.to_owned(), key: key.to_owned() };
        self.send::<serde_json::Value>(self.post(&["drift", "restore"], Repeat::Idempotent, &input)?)
            .await
            .map(drop)
    }

    /// Gives a stray object back to its backend.
    pub async fn release_drift(&self, stray: u64) -> Result<(), ClientError> {
        let input = ReleaseDriftInput { stray };
        self.send::<serde_json::Value>(self.post(&["drift", "release"], Repeat::Idempotent, &input)?)
            .await
            .map(drop)
    }

    pub async fn reserve(
        &self,
        pool: &str,
        key: &str,
        reservation: &ReservationInput,
    ) -> Result<ReservationOutput, ClientError> {
        let call = self.put(&["pools", pool, "reservations", key], reservation)?;
        self.send(call).await
    }

    /// Ends a reservation; one that is gone already is fine.
    pub async fn unreserve(&self, pool: &str, key: &str) -> Result<ReleaseOutput, ClientError> {
        let call = self.delete(&["pools", pool, "reservations", key], Repeat::Idempotent, &())?;
        self.send(call).await
    }
}
