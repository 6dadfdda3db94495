//! The keyspace of terraform-provider-netaddr in an etcd: ranges of IPv4 and MAC addresses, byte for byte as that provider has them.
//!
//! The pool backend `netaddr` and the resources `netaddr_*` of our Terraform provider use it, at the same time as the original
//! provider does.
//!
//! - `netaddr/layout.rs`: the keys. `netaddr/raw.rs`: addresses as bytes. `netaddr/view.rs`: what one transaction reads of a range.
//! - `netaddr/claims.rs`: claims of any free address, packed by `netaddr/packing.rs`. `netaddr/fixed.rs`: claims of one address.
//! - `netaddr/release.rs`, `netaddr/listing.rs`, `netaddr/ranges.rs`, `netaddr/resize.rs`: the rest. `netaddr/mirror.rs`: copies of
//!   ranges, for a server. `netaddr/leases.rs`: leases of the keys that a process leaves behind for some time.
//!
//! Every write is one transaction with conditions on all that it was decided from. Three faults of the original are not repeated:
//! a fixed address that is given back while another client takes it stays out of the free list; a fixed address that is released
//! in front of the pointer cannot be passed at the same moment; and a range that is in use is not deleted.

mod claims;
mod error;
mod fixed;
mod layout;
mod leases;
mod listing;
mod mirror;
mod packing;
mod ranges;
mod raw;
mod release;
mod resize;
mod session;
mod view;

use std::sync::Arc;

pub use self::{
    claims::{Claimed, MOST_RANGES},
    error::NetaddrError,
    listing::{HeldName, Listed, Named},
    ranges::NewRange,
    raw::{RangeType, RawAddress},
    release::Freed,
    session::NetaddrOptions,
};
use self::{layout::RangeKeys, session::Session};

/// The ranges of one etcd.
#[derive(Debug, Clone)]
pub struct Netaddr {
    session: Arc<Session>,
}

/// A range as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeInfo {
    pub kind: RangeType,
    pub first: RawAddress,
    pub last: RawAddress,
}

/// How full a range is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeUsage {
    pub info: RangeInfo,
    /// The pointer: the next address to be given that was never given.
    pub next: RawAddress,
    pub capacity: u128,
    pub used: u128,
}

/// An obstacle to a creation, before anything is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// The name holds this address of this range.
    Name { range: String, address: RawAddress },
    /// The fixed address is held by this name.
    Address { range: String, name: String },
    /// The ranges have nothing left.
    Full,
}

impl Netaddr {
    /// Checks the options; connects when something is asked.
    pub fn new(options: NetaddrOptions) -> Result<Self, NetaddrError> {
        Ok(Self { session: Arc::new(Session::new(options)?) })
    }

    /// Gives `name` an address of the first of `ranges` with room, or the one that it holds.
    pub async fn claim(
        &self,
        ranges: &[String],
        kind: Option<RangeType>,
        name: &str,
    ) -> Result<Claimed, NetaddrError> {
        check(ranges, name)?;
        let claimed = self.session.claim(ranges, kind, name).await?;
        for range in ranges {
            self.session.follow(range);
        }
        Ok(claimed)
    }

    /// Gives `name` exactly this address, or tells the one that it holds.
    pub async fn claim_fixed(
        &self,
        ranges: &[String],
        kind: RangeType,
        name: &str,
        address: &RawAddress,
    ) -> Result<Claimed, NetaddrError> {
        check(ranges, name)?;
        self.session.claim_fixed(ranges, kind, name, address).await
    }

    /// Gives back what `name` holds, if that is `address`; with `created`, only the object that was made then.
    pub async fn release(
        &self,
        range: &str,
        name: &str,
        address: &RawAddress,
        created: Option<i64>,
    ) -> Result<Freed, NetaddrError> {
        self.session.release(range, name, address, created).await
    }

    /// The address that a name holds in a range, and the type of the range, which must be `kind` if that is given.
    pub async fn look_up(
        &self,
        range: &str,
        kind: Option<RangeType>,
        name: &str,
    ) -> Result<(RangeType, Option<HeldName>), NetaddrError> {
        let (info, held) = self.session.held(range, name).await?;
        if let Some(kind) = kind {
            info.is(&RangeKeys::new(range), kind)?;
        }
        let named = |held: view::Held| HeldName {
            name: name.to_owned(),
            address: held.address,
            created: held.created,
        };
        Ok((info.kind, held.map(named)))
    }

    /// Whether the address of a name was fixed.
    pub async fn is_fixed(
        &self,
        range: &str,
        name: &str,
        address: &RawAddress,
    ) -> Result<bool, NetaddrError> {
        let keys = [RangeKeys::new(range)];
        let (info, _) = self.session.held(range, name).await?;
        let place = self.session.place(&keys, info.kind, name, address).await?;
        Ok(place.holder.is_some_and(|(_, fixed)| fixed))
    }

    /// Whether a creation of this name was cut off: by another process of the same origin, and not long ago.
    pub async fn was_cut_off(&self, range: &str, name: &str) -> Result<bool, NetaddrError> {
        self.session.was_cut_off(range, name).await
    }

    /// Looks at a creation before it is made. A fixed address is kept for its name for some minutes, so that it is given to no other; also in
    /// a range that is not there yet, because the same plan may make it.
    pub async fn foresee(
        &self,
        ranges: &[String],
        kind: RangeType,
        name: &str,
        address: Option<&RawAddress>,
    ) -> Result<Option<Obstacle>, NetaddrError> {
        check(ranges, name)?;
        let keys: Vec<RangeKeys> = ranges.iter().map(|range| RangeKeys::new(range)).collect();
        let at = |number: usize| ranges.get(number).cloned().unwrap_or_default();
        if let Some(address) = address {
            let place = match self.session.place(&keys, kind, name, address).await {
                Err(error @ NetaddrError::NoRange { .. }) => {
                    for range in ranges {
                        if self.session.range(range).await?.is_none() {
                            self.session.note_planned(range, name, address).await;
                        }
                    }
                    return Err(error);
                }
                place => place?,
            };
            if let Some((number, held)) = place.held {
                return Ok(Some(Obstacle::Name { range: at(number), address: held.address }));
            }
            let range = at(place.range);
            if let Some((name, _)) = place.holder {
                return Ok(Some(Obstacle::Address { range, name }));
            }
            self.session.note_planned(&range, name, address).await;
            return Ok(None);
        }
        let views = self.session.read_views(&keys, &[name.to_owned()]).await?;
        let mut room = false;
        for (number, view) in views.iter().enumerate() {
            view.info.is(&view.keys, kind)?;
            if let Some(held) = view.names.get(name) {
                return Ok(Some(Obstacle::Name { range: at(number), address: held.address.clone() }));
            }
            room |= !view.freed.is_empty() || view.info.contains(&view.next);
        }
        Ok((!room).then_some(Obstacle::Full))
    }

    /// A page of names that begin with `begin`, after the name `after`; and whether there are more.
    pub async fn names(
        &self,
        range: &str,
        begin: &str,
        after: Option<&str>,
        limit: u16,
    ) -> Result<(Vec<HeldName>, bool), NetaddrError> {
        self.session.names(range, begin, after, i64::from(limit)).await
    }

    /// All names of a range, by name.
    pub async fn all_names(&self, range: &str) -> Result<Vec<HeldName>, NetaddrError> {
        self.session.all_names(range).await
    }

    /// All addresses of a list, by name.
    pub async fn list(&self, range: &str, list: Listed) -> Result<Vec<Named>, NetaddrError> {
        self.session.list(range, list).await
    }

    pub async fn usage(&self, range: &str) -> Result<RangeUsage, NetaddrError> {
        let (info, next, used) = self.session.count(range).await?;
        let capacity = info.first.count_to(&info.last);
        let info = RangeInfo { kind: info.kind, first: info.first, last: info.last };
        Ok(RangeUsage { info, next, capacity, used })
    }

    /// `None` if it does not exist.
    pub async fn range(&self, range: &str) -> Result<Option<RangeInfo>, NetaddrError> {
        let info = self.session.range(range).await?;
        Ok(info.map(|info| RangeInfo { kind: info.kind, first: info.first, last: info.last }))
    }

    pub async fn create_range(&self, range: &NewRange) -> Result<(), NetaddrError> {
        self.session.create_range(range).await
    }

    /// As [`Netaddr::create_range`]; one under the same path that has addresses of it is an error.
    pub async fn create_range_alone(&self, range: &NewRange) -> Result<(), NetaddrError> {
        self.session.create_range_alone(range).await
    }

    /// Changes the bounds of a range in place. Every address in use must stay inside.
    pub async fn resize_range(&self, range: &NewRange) -> Result<(), NetaddrError> {
        self.session.resize_range(range).await
    }

    /// Removes a range that no name has an address of. Returns whether it was there.
    pub async fn delete_range(&self, range: &str) -> Result<bool, NetaddrError> {
        self.session.delete_range(range).await
    }

    /// Other ranges under the same path that have addresses of this one.
    pub async fn overlapping(&self, range: &NewRange) -> Result<Vec<String>, NetaddrError> {
        self.session.overlapping(range).await
    }

    /// A text that differs when the range changed; `None` without a mirror, and while it is not loaded.
    pub fn changed(&self, range: &str) -> Option<String> {
        self.session.follow(range);
        self.session.changed(range).map(|revision| revision.to_string())
    }

    /// Ends well: creations of this process were not cut off.
    pub async fn close(&self) {
        self.session.close().await;
    }
}

/// An endpoint as a URL. As the original reads them, one without a scheme means TLS.
pub fn endpoint_url(endpoint: &str) -> String {
    let endpoint = endpoint.trim();
    if endpoint.contains("://") { endpoint.to_owned() } else { format!("https://{endpoint}") }
}

/// The name of the pool that a range becomes: the last part of its prefix, `lan` of `/ranges/lan/`.
pub fn pool_name(prefix: &str) -> Option<String> {
    let last = prefix.trim_end_matches('/').rsplit('/').next()?;
    let text: String =
        last.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let text = text.trim_matches('-').to_owned();
    (!text.is_empty()).then_some(text)
}

fn check(ranges: &[String], name: &str) -> Result<(), NetaddrError> {
    let invalid = |reason: String| Err(NetaddrError::Invalid { reason });
    if ranges.is_empty() || ranges.iter().any(String::is_empty) {
        return invalid("no range is named".into());
    }
    if ranges.len() > MOST_RANGES {
        return invalid(format!("{} ranges are named; a name can choose from {MOST_RANGES}", ranges.len()));
    }
    if name.is_empty() {
        return invalid("the name is empty".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_and_prefixes_mean_urls_and_pools() {
        assert_eq!(endpoint_url("etcd-1:2379"), "https://etcd-1:2379");
        assert_eq!(endpoint_url(" http://etcd-1:2379"), "http://etcd-1:2379");
        assert_eq!(pool_name("/ranges/lan/").as_deref(), Some("lan"));
        assert_eq!(pool_name("/ranges/Site_A.ipv4").as_deref(), Some("site-a-ipv4"));
        assert_eq!(pool_name("///"), None);
    }
}
