//! NetBox: a pool is one of its prefixes or ranges, over its REST API.
//!
//! NetBox finds and takes the next free address, or the next free prefix in a prefix, in one step, under a lock of its database,
//! so two claims never get the same one. It knows no keys: ours stands in a custom field, and is looked up before every claim. Two
//! claims with one key that arrive together may get two addresses; the worker gives one of them back.

mod named_addresses;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use netstead_model::{
    Address, BackendClaim, BackendError, BackendErrorKind, BackendObject, BackendPoolInfo, Cidr, Family,
    GivenBack, Kind as AddressKind, ObjectPage, PoolBackend, Range, Want,
};
use netstead_settings::{Configured, Identity, Kind, table};
use netstead_wire::http::Method;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

pub use self::named_addresses::{NamedAddress, NewAddressFields, PrefixFacts, PrefixUsage};
use super::{BackendKind, BackendTraits};
use crate::{
    BuildContext, Secret, SettingsError,
    netbox::{Api, ApiError, Connection, Prefix, Row, address_and_length, id_of, marks_of, name_of, text_of},
    phpipam::{CLAIM_DESCRIPTION, Mark, Marks},
};

pub const KIND: BackendKind =
    Kind::new::<Config>("netbox", "NetBox: its prefixes and ranges, over its REST API", traits);

/// How long one request may take. The worker waits for no claim longer than 10 s.
const TIMEOUT: Duration = Duration::from_secs(8);
/// Claims that are asked for at a time: NetBox makes them one after the other.
const AT_ONCE: usize = 4;
/// The characters of a description that NetBox has room for.
const ROOM: usize = 200;

const ADDRESSES: &str = "/api/ipam/ip-addresses/";
const PREFIXES: &str = "/api/ipam/prefixes/";
const RANGES: &str = "/api/ipam/ip-ranges/";

table! {
    /// `[backend.NAME]` with `type = "netbox"`.
    pub struct Config {
        connection: Connection, all;
        /// the VRF of the prefixes
        vrf: Option<String>, unset "the global table";
    }
}

impl Configured<dyn PoolBackend> for Config {
    fn identity(&self) -> Identity {
        self.connection.identity()
    }

    fn server(&self) -> String {
        self.connection.url.clone()
    }

    fn check(&self) -> Result<(), SettingsError> {
        self.connection.check()
    }

    fn build(&self, context: &BuildContext) -> Result<Arc<dyn PoolBackend>, SettingsError> {
        Ok(Arc::new(self.open(context)?))
    }
}

impl Config {
    /// Everything but address and token at its default.
    pub fn new(url: impl Into<String>, token: Secret) -> Self {
        Self { connection: Connection::new(url, token), vrf: None }
    }

    /// Opens files and secrets; the server itself is asked later.
    pub fn open(&self, context: &BuildContext) -> Result<NetBoxPools, SettingsError> {
        let api = self.connection.open(context)?.timeout(TIMEOUT);
        Ok(NetBoxPools { api, vrf: self.vrf.clone(), making: Semaphore::new(AT_ONCE) })
    }
}

/// NetBox keeps no keys of its own, so a key may have two objects for a while.
fn traits() -> BackendTraits {
    BackendTraits { one_object_per_key: false, prefixes: true, macs: false }
}

/// The prefixes and ranges of one NetBox.
#[derive(Debug)]
pub struct NetBoxPools {
    api: Api,
    vrf: Option<String>,
    making: Semaphore,
}

/// A pool as NetBox has it.
#[derive(Debug)]
struct Place {
    /// `/api/ipam/prefixes/7/`.
    path: String,
    range: Range,
    /// The prefix; a range has none.
    prefix: Option<Prefix>,
    /// The length of the mask of its addresses.
    length: u8,
    vrf: Option<u64>,
    /// The custom fields of the prefix or range.
    custom_fields: Row,
}

impl Place {
    /// The network that holds its objects, for filters.
    fn parents(&self) -> Vec<String> {
        match &self.prefix {
            Some(prefix) => vec![prefix.cidr.to_string()],
            None => self.range.cidrs().iter().map(Cidr::to_string).collect(),
        }
    }

    /// The addresses that NetBox hands out.
    fn hosts(&self) -> Range {
        let Some(prefix) = &self.prefix else { return self.range };
        let (first, last) = (prefix.cidr.first(), prefix.cidr.last());
        let v4 = prefix.cidr.kind() == AddressKind::V4;
        if prefix.is_pool || prefix.cidr.len() >= if v4 { 31 } else { 127 } {
            return self.range;
        }
        // Of IPv6 only the address of all routers is kept back.
        let last = if v4 { last.pred().unwrap_or(last) } else { last };
        first.succ().and_then(|first| Range::new(first, last).ok()).unwrap_or(self.range)
    }
}

impl NetBoxPools {
    async fn place(&self, pool: &str) -> Result<Place, BackendError> {
        let found = self.find(pool).await.map_err(ApiError::of_backend)?;
        match found.len() {
            0 => Err(no_such_pool(pool)),
            1 => found.into_iter().next().ok_or_else(|| no_such_pool(pool)),
            _ => {
                let paths: Vec<&str> = found.iter().map(|place| place.path.as_str()).collect();
                let message = format!("NetBox has `{pool}` several times: {}", paths.join(", "));
                Err(BackendError::new(BackendErrorKind::NoSuchPool, message)
                    .hint("name a prefix by its id: `backend_pool = \"7\"`"))
            }
        }
    }

    async fn find(&self, pool: &str) -> Result<Vec<Place>, ApiError> {
        if let Ok(id) = pool.parse::<u64>() {
            return match self.api.get(&format!("{PREFIXES}{id}/"), &[]).await {
                Ok(row) => Ok(of_prefix(&row).into_iter().collect()),
                Err(ApiError::Refused { code: 404, .. }) => Ok(Vec::new()),
                Err(error) => Err(error),
            };
        }
        let in_vrf = |row: &Row| {
            self.vrf.as_ref().map_or_else(|| id_of(row, "vrf").is_none(), |vrf| name_of(row, "vrf") == *vrf)
        };
        if let Ok(cidr) = pool.parse::<Cidr>() {
            let rows = self.api.list(PREFIXES, &[("prefix", &cidr.to_string())]).await?;
            let places = rows.iter().filter(|row| in_vrf(row)).filter_map(of_prefix);
            return Ok(places
                .filter(|place| place.prefix.as_ref().is_some_and(|one| one.cidr == cidr))
                .collect());
        }
        let Ok(range) = pool.parse::<Range>() else { return Ok(Vec::new()) };
        let rows = self.api.list(RANGES, &[("fields", "id,start_address,end_address,vrf")]).await?;
        let places = rows.iter().filter(|row| in_vrf(row)).filter_map(of_range);
        Ok(places.filter(|place| place.range == range).collect())
    }

    /// The objects of a pool that have the key, the oldest first. With no key, all that are in it.
    async fn having(&self, place: &Place, key: Option<&str>) -> Result<Vec<BackendObject>, ApiError> {
        let field = self.api.key_field().name();
        let mark = key.map(|key| Mark::Claim(key.to_owned()).text());
        let filter = format!("cf_{field}__ic");
        let mut query: Vec<(&str, &str)> = Vec::new();
        query.extend(mark.as_ref().map(|mark| (filter.as_str(), mark.as_str())));
        let mut objects = Vec::new();
        let addresses = self.api.list_by(ADDRESSES, &query, "parent", &place.parents()).await?;
        for row in addresses.iter().filter(|row| id_of(row, "vrf") == place.vrf) {
            let Some((address, _)) = address_and_length(&text_of(row, "address")) else { continue };
            if place.range.contains(address) {
                objects.extend(object(row, field, address, None));
            }
        }
        if let Some(prefix) = &place.prefix {
            let within = prefix.cidr.to_string();
            query.push(("within", &within));
            for row in &self.api.list(PREFIXES, &query).await? {
                let Some(inner) = Prefix::read(row).filter(|inner| inner.vrf == place.vrf) else { continue };
                // A prefix of others only says how the addresses below it are used.
                let ours = marks_of(row, field).claim.is_some();
                if ours && inner.cidr != prefix.cidr && prefix.cidr.contains_cidr(inner.cidr) {
                    objects.extend(object(row, field, inner.cidr.network(), Some(inner.cidr.len())));
                }
            }
        }
        objects.retain(|object| key.is_none_or(|key| object.key == key));
        objects.sort_by_key(|object| id_in(&object.reference));
        Ok(objects)
    }

    /// Makes the object of a claim, with `fields` of a caller's own beside those that it needs.
    async fn make(
        &self,
        place: &Place,
        claim: &BackendClaim,
        fields: &NewAddressFields,
    ) -> Result<BackendObject, BackendError> {
        let field = self.api.key_field().name();
        let marks = Marks { claim: Some(claim.key.clone()), ..Marks::default() };
        let begun = CLAIM_DESCRIPTION.trim_end_matches('`');
        let note = claim.note.split_whitespace().collect::<Vec<_>>().join(" ");
        // The note begins with the key in quotes; other words follow where there is none.
        let note = if note.starts_with('`') { note } else { format!("`{}` {note}", claim.key) };
        let description: String = format!("{begun}{note}").chars().take(ROOM).collect();
        let mut body = fields.body();
        let mut custom_fields = fields.custom_fields.clone();
        custom_fields.insert(field.to_owned(), json!(marks.field()));
        body.insert("description".to_owned(), json!(description.trim_end()));
        body.insert("custom_fields".to_owned(), json!(custom_fields));
        let asked = match claim.want {
            Want::Exact(address) | Want::Prefer(address) => Some(address),
            Want::Any => None,
        };
        let path = match (claim.length, asked) {
            (Some(_), Some(_)) => {
                let message = "NetBox hands out the next free prefix, not a certain one";
                return Err(BackendError::new(BackendErrorKind::Refused, message));
            }
            (Some(length), None) => {
                body.insert("prefix_length".to_owned(), json!(length));
                format!("{}available-prefixes/", place.path)
            }
            (None, None) => format!("{}available-ips/", place.path),
            (None, Some(address)) => {
                self.is_free(place, address).await?;
                body.insert("address".to_owned(), json!(format!("{address}/{}", place.length)));
                body.extend(place.vrf.map(|vrf| ("vrf".to_owned(), json!(vrf))));
                ADDRESSES.to_owned()
            }
        };
        let row = match self.api.create_one(&path, &body).await {
            Ok(row) => row,
            Err(ApiError::Refused { code: 409, .. }) => {
                let message = format!("{} has nothing free", shown(place));
                return Err(BackendError::new(BackendErrorKind::Exhausted, message));
            }
            Err(ApiError::Refused { message, .. }) if message.contains("Duplicate") => {
                return Err(held(asked.unwrap_or_else(|| place.range.first())));
            }
            Err(ApiError::Refused { code: 404, .. }) => return Err(no_such_pool(&claim.pool)),
            Err(error) => return Err(error.of_backend()),
        };
        let made = match claim.length {
            Some(_) => Prefix::read(&row).map(|prefix| (prefix.cidr.network(), Some(prefix.cidr.len()))),
            None => address_and_length(&text_of(&row, "address")).map(|(address, _)| (address, None)),
        };
        let made = made.and_then(|(address, length)| object(&row, field, address, length));
        let Some(made) = made else {
            return Err(BackendError::unknown("NetBox's answer to a claim has no id or no address"));
        };
        if made.key != claim.key {
            // What has no key could never be found again.
            let gone = self.api.change_one(Method::DELETE, &made.reference, None, None).await;
            gone.map_err(|error| BackendError::unknown(error.to_string()))?;
            let message = format!("NetBox does not keep the custom field `{field}`");
            return Err(BackendError::new(BackendErrorKind::Refused, message));
        }
        Ok(made)
    }

    /// Removes exactly this object, if it still carries its key.
    async fn remove(&self, object: &BackendObject) -> Result<GivenBack, BackendError> {
        let known = [ADDRESSES, PREFIXES].iter().any(|path| object.reference.starts_with(path));
        if !known || id_in(&object.reference) == u64::MAX {
            return Ok(GivenBack::AlreadyGone);
        }
        let (row, etag) = match self.api.get_with_etag(&object.reference, &[]).await {
            Ok(found) => found,
            Err(ApiError::Refused { code: 404, .. }) => return Ok(GivenBack::AlreadyGone),
            Err(error) => return Err(error.of_backend()),
        };
        if marks_of(&row, self.api.key_field().name()).claim.as_deref() != Some(object.key.as_str()) {
            return Ok(GivenBack::AlreadyGone);
        }
        match self.api.change_one(Method::DELETE, &object.reference, None, etag.as_deref()).await {
            Ok(()) => Ok(GivenBack::Done),
            Err(ApiError::Refused { code: 404, .. }) => Ok(GivenBack::AlreadyGone),
            // It changed meanwhile: a look says what it is now.
            Err(ApiError::Refused { code: 412, message, .. }) => Err(BackendError::unavailable(message)),
            Err(error) => Err(error.of_backend()),
        }
    }

    /// Sees that the pool hands out an address, and that it is free.
    async fn is_free(&self, place: &Place, address: Address) -> Result<(), BackendError> {
        if !place.hosts().contains(address) {
            let message = format!("{address} is no address that {} hands out", shown(place));
            return Err(BackendError::new(BackendErrorKind::NotHere, message).fact("address", address));
        }
        let rows = self.api.list(ADDRESSES, &[("address", &address.to_string())]).await;
        let there = |row: &Row| {
            let found = address_and_length(&text_of(row, "address")).map(|(address, _)| address);
            found == Some(address) && id_of(row, "vrf") == place.vrf
        };
        if rows.map_err(ApiError::of_backend)?.iter().any(there) { Err(held(address)) } else { Ok(()) }
    }
}

#[async_trait]
impl PoolBackend for NetBoxPools {
    async fn claim(&self, claim: &BackendClaim) -> Result<BackendObject, BackendError> {
        let place = self.place(&claim.pool).await?;
        if claim.length.is_some() && place.prefix.is_none() {
            let message = "a range of NetBox hands out single addresses";
            return Err(BackendError::new(BackendErrorKind::Refused, message));
        }
        self.api.ensure_key_field(None).await.map_err(ApiError::of_backend)?;
        let found = self.having(&place, Some(&claim.key)).await.map_err(ApiError::of_backend)?;
        if let Some(oldest) = found.into_iter().next() {
            return Ok(oldest);
        }
        let _turn = self.making.acquire().await;
        self.make(&place, claim, &NewAddressFields::default()).await
    }

    async fn release(&self, pool: &str, object: &BackendObject) -> Result<GivenBack, BackendError> {
        self.place(pool).await?;
        self.remove(object).await
    }

    async fn look_up(&self, pool: &str, key: &str) -> Result<Vec<BackendObject>, BackendError> {
        let place = self.place(pool).await?;
        self.having(&place, Some(key)).await.map_err(ApiError::of_backend)
    }

    /// The pages of NetBox are read together: the first one has everything.
    async fn list(&self, pool: &str, prefix: &str, _after: Option<&str>) -> Result<ObjectPage, BackendError> {
        let place = self.place(pool).await?;
        let mut objects = self.having(&place, None).await.map_err(ApiError::of_backend)?;
        objects.retain(|object| object.key.starts_with(prefix));
        Ok(ObjectPage { objects, next: None })
    }

    async fn describe(&self, pool: &str) -> Result<BackendPoolInfo, BackendError> {
        let place = self.place(pool).await?;
        let objects = self.having(&place, None).await.map_err(ApiError::of_backend)?;
        let hosts = place.hosts();
        let used = |object: &BackendObject| match object.length {
            Some(length) => Cidr::containing(object.address, length).map_or(1, |cidr| cidr.size()),
            None => 1,
        };
        let held: u128 = objects.iter().filter(|object| hosts.contains(object.address)).map(used).sum();
        let family = if hosts.kind() == AddressKind::V6 { Family::Ipv6 } else { Family::Ipv4 };
        Ok(BackendPoolInfo {
            family,
            network: place.prefix.as_ref().map(|prefix| prefix.cidr),
            ranges: vec![hosts],
            exclude: Vec::new(),
            gateway: None,
            use_reserved: place.prefix.as_ref().is_none_or(|prefix| prefix.is_pool),
            length: None,
            size: hosts.len(),
            free: hosts.len().saturating_sub(held),
            installations: Vec::new(),
        })
    }

    /// NetBox has no sign of change.
    async fn changed(&self, _pool: &str) -> Result<Option<String>, BackendError> {
        Ok(None)
    }
}

fn of_prefix(row: &Row) -> Option<Place> {
    let prefix = Prefix::read(row).filter(|prefix| !prefix.is_container)?;
    let range = Range::new(prefix.cidr.first(), prefix.cidr.last()).ok()?;
    let (path, length, vrf) = (format!("{PREFIXES}{}/", prefix.id), prefix.cidr.len(), prefix.vrf);
    let custom_fields = custom_fields_of(row);
    Some(Place { path, range, length, vrf, prefix: Some(prefix), custom_fields })
}

fn of_range(row: &Row) -> Option<Place> {
    let (first, length) = address_and_length(&text_of(row, "start_address"))?;
    let (last, _) = address_and_length(&text_of(row, "end_address"))?;
    let (range, path) = (Range::new(first, last).ok()?, format!("{RANGES}{}/", id_of(row, "id")?));
    let (vrf, custom_fields) = (id_of(row, "vrf"), custom_fields_of(row));
    Some(Place { path, range, length, vrf, prefix: None, custom_fields })
}

fn custom_fields_of(row: &Row) -> Row {
    row.get("custom_fields").and_then(Value::as_object).cloned().unwrap_or_default()
}

/// An object as the worker sees it. One that is not ours has a key that no claim has.
fn object(row: &Row, field: &str, address: Address, length: Option<u8>) -> Option<BackendObject> {
    let id = id_of(row, "id")?;
    let others = || {
        let named =
            [text_of(row, "dns_name"), text_of(row, "description")].into_iter().find(|text| !text.is_empty());
        format!("id {id} {}", named.unwrap_or_default()).trim_end().to_owned()
    };
    let key = marks_of(row, field).claim.unwrap_or_else(others);
    let path = if length.is_some() { PREFIXES } else { ADDRESSES };
    Some(BackendObject { reference: format!("{path}{id}/"), key, holder: None, address, length, since: None })
}

/// The id at the end of a reference.
fn id_in(reference: &str) -> u64 {
    reference.trim_end_matches('/').rsplit('/').next().and_then(|id| id.parse().ok()).unwrap_or(u64::MAX)
}

fn shown(place: &Place) -> String {
    match &place.prefix {
        Some(prefix) => format!("prefix {}", prefix.cidr),
        None => format!("range {}-{}", place.range.first(), place.range.last()),
    }
}

fn held(address: Address) -> BackendError {
    BackendError::new(BackendErrorKind::Held, format!("{address} is there already in NetBox"))
        .fact("address", address)
}

fn no_such_pool(pool: &str) -> BackendError {
    BackendError::new(BackendErrorKind::NoSuchPool, format!("NetBox has no prefix or range `{pool}`"))
        .fact("pool", pool)
        .hint("name a prefix as `10.0.3.0/24` or by its id, or a range as `10.0.3.10-10.0.3.99`; a container is none")
}
