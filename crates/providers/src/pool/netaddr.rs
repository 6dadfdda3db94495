//! terraform-provider-netaddr's ranges in an etcd: a pool is one of its ranges, by key prefix.
//!
//! Both that provider and this backend may give addresses of a range at the same time. A claim is one transaction, because a mirror
//! has what must be read; claims that wait together share it.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use netstead_model::{
    BackendClaim, BackendError, BackendErrorKind, BackendObject, BackendPoolInfo, GivenBack, ObjectPage,
    PoolBackend, Range, Span, Want,
};
use netstead_settings::{Configured, Identity, Kind, OneOrMore, table};
use netstead_wire::{Tls, etcd::EtcdConnection};

use super::{BackendKind, BackendTraits};
use crate::{
    BuildContext, Secret, SettingsError,
    netaddr::{Freed, HeldName, Netaddr, NetaddrOptions, RangeType, RawAddress, endpoint_url},
};

pub const KIND: BackendKind =
    Kind::new::<Config>("netaddr", "ranges of terraform-provider-netaddr, in an etcd", traits);

/// Objects of a page.
const PAGE: u16 = 1000;
/// The worker waits for no claim longer than 10 s: a claim is begun within this time, and a request takes no longer than `timeout`.
const PATIENCE: Duration = Duration::from_secs(4);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(5);
const RETRIES: u32 = 1;

table! {
    /// `[backend.NAME]` with `type = "netaddr"`.
    pub struct Config {
        /// URLs of the etcd's members; any that answers will do. One without `http://` means TLS
        endpoints: OneOrMore<String>, required "[\"https://etcd-1:2379\"]";
        /// a user of etcd
        username: Option<String>, unset "none";
        /// of that user, a secret
        password: Option<Secret>, unset "none";
        tls: Tls, all;
        /// how long one request to one member may take, 5 s at most
        timeout: Span, default "5s";
    }
}

impl Configured<dyn PoolBackend> for Config {
    fn identity(&self) -> Identity {
        self.urls().iter().fold(Identity::default(), |identity, url| identity.and_url(url, ""))
    }

    fn server(&self) -> String {
        self.urls().join(",")
    }

    fn check(&self) -> Result<(), SettingsError> {
        if self.endpoints.iter().any(|url| url.trim().is_empty()) || self.endpoints.is_empty() {
            return Err(SettingsError::new("endpoints", "an endpoint is empty")
                .hint("write `endpoints = [\"https://etcd-1:2379\"]`"));
        }
        if self.username.is_some() != self.password.is_some() {
            let missing = if self.username.is_some() { "password" } else { "username" };
            return Err(SettingsError::new(missing, "it is missing"));
        }
        let timeout = Duration::from(self.timeout);
        if timeout.is_zero() || timeout > LONGEST_TIMEOUT {
            return Err(SettingsError::new("timeout", "it is not from 1 ms to 5 s").hint("leave it out"));
        }
        self.tls.check()
    }

    fn build(&self, context: &BuildContext) -> Result<Arc<dyn PoolBackend>, SettingsError> {
        Ok(Arc::new(self.open(context)?))
    }
}

impl Config {
    /// An etcd without TLS and users.
    pub fn plain(endpoints: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            endpoints: OneOrMore(endpoints.into_iter().map(Into::into).collect()),
            username: None,
            password: None,
            tls: Tls::default(),
            timeout: Span::from_secs(5),
        }
    }

    /// Opens files and secrets; etcd itself is asked later.
    pub fn open(&self, context: &BuildContext) -> Result<NetaddrPools, SettingsError> {
        self.check()?;
        let password = self.password.as_ref().map(|secret| secret.reveal(context)).transpose();
        let password = password.map_err(|problem| SettingsError::new("password", problem))?;
        let user = self.username.clone().zip(password.map(|password| password.expose().to_owned()));
        let connection = EtcdConnection {
            user,
            tls: self.tls.clone(),
            timeout: self.timeout.into(),
            ..EtcdConnection::new(self.urls())
        };
        let options = NetaddrOptions {
            retries: RETRIES,
            patience: PATIENCE,
            mirror: true,
            ..NetaddrOptions::new(connection)
        };
        let ranges =
            Netaddr::new(options).map_err(|error| SettingsError::new("endpoints", error.to_string()))?;
        Ok(NetaddrPools { ranges })
    }

    fn urls(&self) -> Vec<String> {
        self.endpoints.iter().map(|url| endpoint_url(url)).collect()
    }
}

/// A name has one address in a range, for every caller.
fn traits() -> BackendTraits {
    BackendTraits { one_object_per_key: true, prefixes: false, macs: true }
}

/// The ranges of one etcd, as pools.
#[derive(Debug)]
pub struct NetaddrPools {
    ranges: Netaddr,
}

impl NetaddrPools {
    async fn kind(&self, pool: &str) -> Result<RangeType, BackendError> {
        let info = self.ranges.range(pool).await?;
        info.map(|info| info.kind)
            .ok_or_else(|| crate::netaddr::NetaddrError::NoRange { range: pool.to_owned() }.into())
    }
}

#[async_trait]
impl PoolBackend for NetaddrPools {
    async fn claim(&self, claim: &BackendClaim) -> Result<BackendObject, BackendError> {
        let refused = |message: String| BackendError::new(BackendErrorKind::Refused, message);
        if claim.length.is_some() {
            return Err(refused("netaddr hands out single addresses, no prefixes".into()));
        }
        let ranges = [claim.pool.clone()];
        match claim.want {
            Want::Any => {
                let claimed = self.ranges.claim(&ranges, None, &claim.key).await?;
                let name = claim.key.clone();
                object(HeldName { name, address: claimed.address, created: claimed.created }, claimed.kind)
            }
            Want::Exact(address) | Want::Prefer(address) => {
                let kind = self.kind(&claim.pool).await?;
                let Some(wanted) = RawAddress::of(address, kind) else {
                    let message = format!("{address} is not {}", kind.noun());
                    return Err(
                        BackendError::new(BackendErrorKind::NotHere, message).fact("address", address)
                    );
                };
                let claimed = self.ranges.claim_fixed(&ranges, kind, &claim.key, &wanted).await?;
                let name = claim.key.clone();
                object(HeldName { name, address: claimed.address, created: claimed.created }, kind)
            }
        }
    }

    async fn release(&self, pool: &str, released: &BackendObject) -> Result<GivenBack, BackendError> {
        let created = released.reference.parse().map_err(|_| {
            let message = format!("`{}` is no object of netaddr", released.reference);
            BackendError::new(BackendErrorKind::Refused, message)
        })?;
        let kinds = [RangeType::Ipv4, RangeType::Mac];
        let Some(address) = kinds.iter().find_map(|kind| RawAddress::of(released.address, *kind)) else {
            return Ok(GivenBack::AlreadyGone);
        };
        match self.ranges.release(pool, &released.key, &address, Some(created)).await? {
            Freed::Done => Ok(GivenBack::Done),
            Freed::AlreadyGone => Ok(GivenBack::AlreadyGone),
        }
    }

    async fn look_up(&self, pool: &str, key: &str) -> Result<Vec<BackendObject>, BackendError> {
        let (kind, held) = self.ranges.look_up(pool, None, key).await?;
        held.map(|held| object(held, kind)).transpose().map(|found| found.into_iter().collect())
    }

    async fn list(&self, pool: &str, prefix: &str, after: Option<&str>) -> Result<ObjectPage, BackendError> {
        let kind = self.kind(pool).await?;
        let (page, more) = self.ranges.names(pool, prefix, after, PAGE).await?;
        let next = if more { page.last().map(|last| last.name.clone()) } else { None };
        // A MAC of 8 bytes, which no pool can have, belongs to no claim.
        let objects = page.into_iter().filter_map(|held| object(held, kind).ok()).collect();
        Ok(ObjectPage { objects, next })
    }

    async fn describe(&self, pool: &str) -> Result<BackendPoolInfo, BackendError> {
        let usage = self.ranges.usage(pool).await?;
        let kind = usage.info.kind;
        let ends = (usage.info.first.address(kind), usage.info.last.address(kind));
        let (Some(first), Some(last)) = ends else {
            let message = format!("the range `{pool}` has addresses that are not 6 bytes long");
            return Err(BackendError::new(BackendErrorKind::Refused, message));
        };
        let range = Range::new(first, last)
            .map_err(|error| BackendError::new(BackendErrorKind::Refused, error.to_string()))?;
        Ok(BackendPoolInfo {
            family: kind.family(),
            network: None,
            ranges: vec![range],
            exclude: Vec::new(),
            gateway: None,
            use_reserved: true,
            length: None,
            size: usage.capacity,
            free: usage.capacity.saturating_sub(usage.used),
            installations: Vec::new(),
        })
    }

    async fn changed(&self, pool: &str) -> Result<Option<String>, BackendError> {
        Ok(self.ranges.changed(pool))
    }
}

fn object(held: HeldName, kind: RangeType) -> Result<BackendObject, BackendError> {
    let Some(address) = held.address.address(kind) else {
        let message = format!(
            "{} of `{}` is {} that no pool can have",
            held.address.text(kind),
            held.name,
            kind.noun()
        );
        return Err(BackendError::new(BackendErrorKind::Refused, message));
    };
    Ok(BackendObject {
        reference: held.created.to_string(),
        key: held.name,
        holder: None,
        address,
        length: None,
        since: None,
    })
}
