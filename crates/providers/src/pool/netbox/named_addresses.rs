//! Addresses with a name, a tenant, tags and a gateway, as pools of Cluster API have them.
//!
//! The gateway of a prefix need not be an address in NetBox, which would then hand it out. A claim that is given the gateway makes
//! its next address first and removes the gateway afterwards, so no other claim is given the gateway meanwhile.

use netstead_model::{
    Address, BackendClaim, BackendError, BackendErrorKind, BackendObject, Cidr, Range, Want,
};
use serde_json::{Map, Value, json};

use super::{ADDRESSES, NetBoxPools, Place, object};
use crate::{
    netbox::{ApiError, Row, address_and_length, marks_of, text_of},
    phpipam::Mark,
};

/// Fields of a new address, beside those that every claim has.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewAddressFields {
    /// The slug of its tenant.
    pub tenant: Option<String>,
    /// The slugs of its tags.
    pub tags: Vec<String>,
    pub status: Option<String>,
    pub custom_fields: Map<String, Value>,
    pub dns_name: Option<String>,
}

impl NewAddressFields {
    pub(super) fn body(&self) -> Row {
        let mut body = Row::new();
        let mut put = |name: &str, value: Option<Value>| {
            body.extend(value.map(|value| (name.to_owned(), value)));
        };
        put("tenant", self.tenant.as_ref().map(|slug| json!({ "slug": slug })));
        let tags: Vec<Value> = self.tags.iter().map(|slug| json!({ "slug": slug })).collect();
        put("tags", (!tags.is_empty()).then(|| json!(tags)));
        put("status", self.status.as_ref().map(|status| json!(status)));
        put("dns_name", self.dns_name.as_ref().map(|name| json!(name)));
        body
    }
}

/// A prefix as a pool of Cluster API sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefixFacts {
    pub network: Cidr,
    /// The addresses that NetBox hands out.
    pub hosts: Range,
    pub gateway: Option<Address>,
}

/// How full a prefix is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrefixUsage {
    /// The addresses that can be handed out: not the gateway.
    pub size: u128,
    pub free: u128,
}

/// An address that has a name in NetBox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedAddress {
    pub address: Address,
    /// Our key; none of an address that is not ours.
    pub key: Option<String>,
    pub description: String,
}

impl NetBoxPools {
    /// A prefix. Its gateway is that of its custom field `gateway_field`, else `gateway`.
    pub async fn prefix(
        &self,
        pool: &str,
        gateway_field: Option<&str>,
        gateway: Option<Address>,
    ) -> Result<PrefixFacts, BackendError> {
        let place = self.place(pool).await?;
        let Some(network) = place.prefix.as_ref().map(|prefix| prefix.cidr) else {
            let message = format!("`{pool}` is a range of NetBox, and a prefix is needed");
            return Err(BackendError::new(BackendErrorKind::NoSuchPool, message));
        };
        let gateway = match gateway_field {
            Some(field) => gateway_in(&place, field)?.or(gateway),
            None => gateway,
        };
        Ok(PrefixFacts { network, hosts: place.hosts(), gateway })
    }

    /// How full a prefix is: all its addresses are looked at.
    pub async fn usage(&self, pool: &str, facts: &PrefixFacts) -> Result<PrefixUsage, BackendError> {
        let place = self.place(pool).await?;
        let PrefixFacts { hosts, gateway, .. } = *facts;
        let objects = self.having(&place, None).await.map_err(ApiError::of_backend)?;
        let is_host = |address: Address| hosts.contains(address) && Some(address) != gateway;
        let without_gateway = u128::from(gateway.is_some_and(|gateway| hosts.contains(gateway)));
        let size = hosts.len().saturating_sub(without_gateway);
        let held = |object: &&BackendObject| object.length.is_none() && is_host(object.address);
        let held = u128::try_from(objects.iter().filter(held).count()).unwrap_or(u128::MAX);
        Ok(PrefixUsage { size, free: size.saturating_sub(held) })
    }

    /// The addresses of a key, wherever in NetBox they are, with the lengths of their networks; the oldest first.
    pub async fn held_for(&self, key: &str) -> Result<Vec<(BackendObject, u8)>, BackendError> {
        let field = self.api.key_field().name();
        let (filter, mark) = (format!("cf_{field}__ic"), Mark::Claim(key.to_owned()).text());
        self.api.ensure_key_field(None).await.map_err(ApiError::of_backend)?;
        let rows = self.api.list(ADDRESSES, &[(&filter, &mark)]).await.map_err(ApiError::of_backend)?;
        let held = rows.iter().filter_map(|row| {
            let (address, length) = address_and_length(&text_of(row, "address"))?;
            let held = object(row, field, address, None).filter(|object| object.key == key)?;
            Some((held, length))
        });
        // The list is in order of ids.
        Ok(held.collect())
    }

    /// Makes an address for a key that has none, and never the gateway.
    pub async fn claim_named(
        &self,
        claim: &BackendClaim,
        fields: &NewAddressFields,
        gateway: Option<Address>,
    ) -> Result<BackendObject, BackendError> {
        let place = self.place(&claim.pool).await?;
        if let Want::Exact(wanted) = claim.want
            && Some(wanted) == gateway
        {
            let message = format!("{wanted} is the gateway of {}", super::shown(&place));
            return Err(BackendError::new(BackendErrorKind::NotHere, message));
        }
        let _turn = self.making.acquire().await;
        let made = self.make(&place, claim, fields).await?;
        if Some(made.address) != gateway {
            return Ok(made);
        }
        let next = self.make(&place, claim, fields).await;
        self.remove(&made).await?;
        next
    }

    /// Removes all addresses of a key.
    pub async fn release_all(&self, key: &str) -> Result<(), BackendError> {
        for (object, _) in self.held_for(key).await? {
            self.remove(&object).await?;
        }
        Ok(())
    }

    /// Removes one of several addresses of a key.
    pub async fn release_one(&self, object: &BackendObject) -> Result<(), BackendError> {
        self.remove(object).await.map(drop)
    }

    /// The addresses that have this name.
    pub async fn named(&self, name: &str) -> Result<Vec<NamedAddress>, BackendError> {
        let rows = self.api.list(ADDRESSES, &[("dns_name", name)]).await.map_err(ApiError::of_backend)?;
        let field = self.api.key_field().name();
        let has_it = |row: &&Row| text_of(row, "dns_name").eq_ignore_ascii_case(name);
        let named = rows.iter().filter(has_it).filter_map(|row| {
            let (address, _) = address_and_length(&text_of(row, "address"))?;
            let (key, description) = (marks_of(row, field).claim, text_of(row, "description"));
            Some(NamedAddress { address, key, description })
        });
        Ok(named.collect())
    }
}

/// The gateway in a custom field: a text, or a reference to an address of NetBox.
fn gateway_in(place: &Place, field: &str) -> Result<Option<Address>, BackendError> {
    let text = match place.custom_fields.get(field) {
        None => {
            let message = format!("prefixes of NetBox have no custom field `{field}`");
            return Err(BackendError::new(BackendErrorKind::Refused, message).hint("look at gatewayField"));
        }
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(Value::Object(reference)) => text_of(reference, "address"),
        Some(_) => String::new(),
    };
    if text.is_empty() {
        return Ok(None);
    }
    let bare = text.split_once('/').map_or(text.as_str(), |(address, _)| address);
    let read = bare.parse::<Address>().map(Some);
    read.map_err(|error| {
        let message = format!("custom field `{field}` of {}: `{text}`: {error}", super::shown(place));
        BackendError::new(BackendErrorKind::Refused, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::netbox::of_prefix;

    #[test]
    fn a_gateway_is_a_text_or_an_address_of_netbox() {
        let row = json!({ "id": 7, "prefix": "10.0.3.0/24", "custom_fields": {
            "text": " 10.0.3.1", "mask": "10.0.3.2/24", "object": { "id": 3, "address": "10.0.3.3/24" }, "none": null, "odd": "first" } });
        let place = of_prefix(row.as_object().unwrap()).unwrap();
        let read = |field: &str| {
            gateway_in(&place, field)
                .map(|found| found.map(|one| one.to_string()))
                .map_err(|error| error.to_string())
        };
        assert_eq!(read("text"), Ok(Some("10.0.3.1".into())));
        assert_eq!(read("mask"), Ok(Some("10.0.3.2".into())));
        assert_eq!(read("object"), Ok(Some("10.0.3.3".into())));
        assert_eq!(read("none"), Ok(None));
        assert!(read("odd").unwrap_err().starts_with("custom field `odd` of prefix 10.0.3.0/24: `first`"));
        assert_eq!(read("other").unwrap_err(), "prefixes of NetBox have no custom field `other`");
    }

    #[test]
    fn only_fields_that_are_set_are_sent() {
        assert_eq!(NewAddressFields::default().body(), Row::new());
        let fields = NewAddressFields {
            tenant: Some("lab".into()),
            tags: vec!["capi".into()],
            status: Some("reserved".into()),
            custom_fields: Map::new(),
            dns_name: Some("web-1.example.com".into()),
        };
        let wanted = json!({ "tenant": { "slug": "lab" }, "tags": [{ "slug": "capi" }], "status": "reserved",
            "dns_name": "web-1.example.com" });
        assert_eq!(Value::Object(fields.body()), wanted);
    }
}
