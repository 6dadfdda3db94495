//! Claims that phpIPAM also knows by a hostname, as pools of Cluster API have them.
//!
//! Another program made such addresses before, with the hostname as their only key. They are found by it, kept, and get our key.

use netstead_model::{BackendClaim, BackendError, BackendObject};
use netstead_wire::http::Method;
use serde_json::{Map, json};

use super::{PhpIpamPools, object, of_pool};
use crate::phpipam::{AddressRow, ApiError, Marks, Subnet};

impl PhpIpamPools {
    /// The address of the key; else the one that was made for this hostname and has no key, which gets the key; else a new one.
    pub async fn claim_for_host(
        &self,
        claim: &BackendClaim,
        hostname: &str,
    ) -> Result<BackendObject, BackendError> {
        let subnet = self.subnet(&claim.pool).await?;
        let of_this = |error| of_pool(error, &claim.pool);
        let found = self.having(&subnet, &claim.key).await.map_err(of_this)?;
        if let Some(oldest) = found.into_iter().next() {
            return Ok(object(oldest));
        }
        match self.made_for_host(&subnet, hostname).await.map_err(of_this)? {
            Some(row) => self.give_key(row, &claim.key).await,
            None => self.make(&subnet, claim, Some(hostname)).await,
        }
    }

    /// Removes all addresses of the key, or else the one that was made for this hostname and has no key.
    pub async fn release_for_host(&self, pool: &str, key: &str, hostname: &str) -> Result<(), BackendError> {
        let subnet = self.subnet(pool).await?;
        let mut rows = self.having(&subnet, key).await.map_err(|error| of_pool(error, pool))?;
        if rows.is_empty() {
            let made = self.made_for_host(&subnet, hostname).await.map_err(|error| of_pool(error, pool))?;
            rows.extend(made);
        }
        for row in rows {
            match self.api.change(Method::DELETE, &["addresses", &row.id], None).await {
                Ok(_) | Err(ApiError::Refused { code: 404, .. }) => {}
                Err(error) => return Err(error.of_backend()),
            }
        }
        Ok(())
    }

    /// The oldest address of a subnet whose hostname and description are both this name, without any of our marks: a person
    /// would describe it otherwise.
    async fn made_for_host(&self, subnet: &Subnet, hostname: &str) -> Result<Option<AddressRow>, ApiError> {
        let query = [("filter_by", "hostname"), ("filter_value", hostname), ("filter_match", "full")];
        let rows = match self.api.addresses(&subnet.id, &query, &self.key_field).await {
            // The filter knows a field by the first row, which may have no hostname: then all are looked at.
            Err(ApiError::Refused { code: 400, message }) if message.contains("filter_by") => {
                self.api.addresses(&subnet.id, &[], &self.key_field).await?
            }
            rows => rows?,
        };
        let is_of = |row: &AddressRow| {
            let unmarked = row.marks.claim.is_none() && row.marks.object.is_none();
            unmarked && row.field("hostname") == Some(hostname) && row.field("description") == Some(hostname)
        };
        Ok(rows.into_iter().filter(is_of).min_by_key(|row| row.id.parse::<u64>().unwrap_or(u64::MAX)))
    }

    async fn give_key(&self, row: AddressRow, key: &str) -> Result<BackendObject, BackendError> {
        let marks = Marks { claim: Some(key.to_owned()), ..row.marks.clone() };
        let mut body = Map::from_iter([(self.key_field.name().to_owned(), json!(marks.field()))]);
        // A change that names no tag sets one by itself.
        body.insert("tag".to_owned(), json!(row.tag));
        let done = self.api.change(Method::PATCH, &["addresses", &row.id], Some(&body)).await;
        done.map_err(ApiError::of_backend)?;
        Ok(object(AddressRow { marks, ..row }))
    }
}
