//! phpIPAM: a pool is one of its subnets, over its REST API.
//!
//! phpIPAM finds and takes the next free address in one step, under a lock of the subnet, so two claims never get the same
//! one. It knows no keys: ours stands in the note of the address, or in a custom field, and is looked up before every claim. Two
//! claims with one key that arrive together may get two addresses; the worker gives one of them back.

mod hosts;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use netstead_model::{
    Address, BackendClaim, BackendError, BackendErrorKind, BackendObject, BackendPoolInfo, Cidr, Family,
    GivenBack, Kind as AddressKind, ObjectPage, PoolBackend, Want,
};
use netstead_settings::{Configured, Identity, Kind, Number, table};
use netstead_wire::http::Method;
use serde_json::{Map, Value, json};

use super::{BackendKind, BackendTraits};
use crate::{
    BuildContext, Secret, SettingsError,
    phpipam::{
        AddressRow, Api, ApiError, CLAIM_DESCRIPTION, Connection, KeyField, Mark, Marks, Subnet, clean, cut,
    },
};

pub const KIND: BackendKind =
    Kind::new::<Config>("phpipam", "phpIPAM: its subnets, over its REST API", traits);

/// How long one request may take. The worker waits for no claim longer than 10 s.
const TIMEOUT: Duration = Duration::from_secs(8);
/// The characters of a description that phpIPAM has room for.
const ROOM: usize = 64;

table! {
    /// `[backend.NAME]` with `type = "phpipam"`.
    pub struct Config {
        connection: Connection, all;
        /// the field of addresses that has our keys: `note`, or a custom field of the type `text`, as `custom_netstead`
        key_field: String, default "note";
        /// the tag of claimed addresses, by its id; 2 is Used
        tag: Number<1, 255>, default 2;
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
        self.connection.check()?;
        KeyField::new(&self.key_field).map(drop)
    }

    fn build(&self, context: &BuildContext) -> Result<Arc<dyn PoolBackend>, SettingsError> {
        Ok(Arc::new(self.open(context)?))
    }
}

impl Config {
    /// An app of the security `none`.
    pub fn new(url: impl Into<String>, app: &str, user: &str, password: Secret) -> Self {
        let connection = Connection::plain(url, app, user, password);
        Self { connection, key_field: "note".to_owned(), tag: Number::nearest(2) }
    }

    /// Opens files and secrets; the server itself is asked later.
    pub fn open(&self, context: &BuildContext) -> Result<PhpIpamPools, SettingsError> {
        self.check()?;
        let api = self.connection.open(context)?.timeout(TIMEOUT);
        let (key_field, tag) = (KeyField::new(&self.key_field)?, self.tag.get());
        Ok(PhpIpamPools { api, key_field, tag, subnets: Mutex::default() })
    }
}

/// phpIPAM keeps no keys of its own, so a key may have two objects for a while.
fn traits() -> BackendTraits {
    BackendTraits { one_object_per_key: false, prefixes: false, macs: false }
}

/// The subnets of one phpIPAM.
#[derive(Debug)]
pub struct PhpIpamPools {
    api: Api,
    key_field: KeyField,
    tag: i64,
    /// Subnets by the name of their pool.
    subnets: Mutex<BTreeMap<String, Subnet>>,
}

impl PhpIpamPools {
    fn subnets(&self) -> MutexGuard<'_, BTreeMap<String, Subnet>> {
        self.subnets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The subnet of a pool, as it was found before or as it is now.
    async fn subnet(&self, pool: &str) -> Result<Subnet, BackendError> {
        let known = self.subnets().get(pool).cloned();
        match known {
            Some(subnet) => Ok(subnet),
            None => self.find(pool).await,
        }
    }

    async fn find(&self, pool: &str) -> Result<Subnet, BackendError> {
        self.subnets().remove(pool);
        let id = if let Ok(cidr) = pool.parse::<Cidr>() {
            let found = self.api.subnets_of(cidr).await.map_err(ApiError::of_backend)?;
            match found.as_slice() {
                [] => None,
                [one] => Some(one.id.clone()),
                several => {
                    let ids: Vec<String> =
                        several.iter().map(|one| format!("{} (section {})", one.id, one.section)).collect();
                    let message = format!("phpIPAM has several subnets {cidr}: {}", ids.join(", "));
                    return Err(BackendError::new(BackendErrorKind::NoSuchPool, message)
                        .hint("name the subnet by its id: `backend_pool = \"7\"`"));
                }
            }
        } else {
            pool.parse::<u64>().ok().map(|id| id.to_string())
        };
        let found = match id {
            Some(id) => self.api.subnet(&id).await.map_err(ApiError::of_backend)?,
            None => None,
        };
        let Some(subnet) = found else {
            return Err(no_such_pool(pool));
        };
        self.subnets().insert(pool.to_owned(), subnet.clone());
        Ok(subnet)
    }

    /// The addresses of a subnet that have the key, the oldest first.
    async fn having(&self, subnet: &Subnet, key: &str) -> Result<Vec<AddressRow>, ApiError> {
        let mark = Mark::Claim(key.to_owned()).text();
        let query = [
            ("filter_by", self.key_field.name()),
            ("filter_value", mark.as_str()),
            ("filter_match", "partial"),
        ];
        let rows = match self.api.addresses(&subnet.id, &query, &self.key_field).await {
            // The filter knows a field by the first row.
            Err(ApiError::Refused { code: 400, message }) if message.contains("filter_by") => {
                let message = if self.key_field.is_note() { message } else { self.key_field.missing() };
                return Err(ApiError::Refused { code: 400, message });
            }
            rows => rows?,
        };
        let mut rows: Vec<AddressRow> =
            rows.into_iter().filter(|row| row.marks.claim.as_deref() == Some(key)).collect();
        rows.sort_by_key(|row| row.id.parse::<u64>().unwrap_or(u64::MAX));
        Ok(rows)
    }

    fn body(&self, claim: &BackendClaim) -> Map<String, Value> {
        let marks = Marks { claim: Some(claim.key.clone()), ..Marks::default() };
        let mut body = Map::from_iter([
            ("tag".to_owned(), json!(self.tag)),
            (self.key_field.name().to_owned(), json!(marks.field())),
        ]);
        let note = clean(&claim.note);
        // The note begins with the key in quotes; other words follow where there is none.
        let note = if note.starts_with('`') { note } else { format!("`{}` {note}", claim.key) };
        let begun = CLAIM_DESCRIPTION.trim_end_matches('`');
        body.insert("description".to_owned(), json!(cut(&format!("{begun}{note}"), ROOM)));
        body
    }

    /// Makes an address, with a hostname if one is given.
    async fn make(
        &self,
        subnet: &Subnet,
        claim: &BackendClaim,
        hostname: Option<&str>,
    ) -> Result<BackendObject, BackendError> {
        let mut body = self.body(claim);
        body.extend(hostname.map(|name| ("hostname".to_owned(), json!(name))));
        let (answer, asked) = match claim.want {
            Want::Any => (self.api.post_once(&["addresses", "first_free", &subnet.id], &body).await, None),
            Want::Exact(address) | Want::Prefer(address) => {
                let hosts = subnet.hosts();
                if !hosts.contains(address) {
                    let message = format!("{address} is no address that subnet {} hands out", subnet.cidr);
                    return Err(
                        BackendError::new(BackendErrorKind::NotHere, message).fact("address", address)
                    );
                }
                body.insert("ip".to_owned(), json!(address.to_string()));
                body.insert("subnetId".to_owned(), json!(subnet.id));
                (self.api.post_once(&["addresses"], &body).await, Some(address))
            }
        };
        let made = match answer {
            Ok(made) => made,
            Err(ApiError::Refused { code: 404, message })
                if claim.want == Want::Any && message.starts_with("No free") =>
            {
                let message = format!("subnet {} has no free address", subnet.cidr);
                return Err(BackendError::new(BackendErrorKind::Exhausted, message));
            }
            Err(ApiError::Refused { code: 409, .. }) => {
                let address = asked.unwrap_or_else(|| subnet.cidr.network());
                let message = format!("{address} is there already in phpIPAM");
                return Err(BackendError::new(BackendErrorKind::Held, message).fact("address", address));
            }
            Err(ApiError::Refused { code: 400 | 404, message })
                if !message.contains(self.key_field.name()) =>
            {
                // The subnet may be another one by now.
                self.subnets().remove(&claim.pool);
                return Err(BackendError::new(
                    BackendErrorKind::Refused,
                    format!("phpIPAM refuses: {message}"),
                ));
            }
            Err(ApiError::Refused { code: 400, .. }) => {
                return Err(BackendError::new(BackendErrorKind::Refused, self.key_field.missing()));
            }
            Err(error) => return Err(error.of_backend()),
        };
        let given = made.data.as_ref().and_then(Value::as_str).and_then(|text| text.parse::<Address>().ok());
        let (Some(reference), Some(address)) = (made.made(), given.or(asked)) else {
            return Err(BackendError::unknown("phpIPAM's answer to a claim has no id or no address"));
        };
        self.prove(claim, &reference, address).await?;
        let key = claim.key.clone();
        Ok(BackendObject { reference, key, holder: None, address, length: None, since: None })
    }

    /// Sees that a new address has its key in a custom field: one that phpIPAM does not know could never be found again.
    async fn prove(&self, claim: &BackendClaim, id: &str, address: Address) -> Result<(), BackendError> {
        if self.key_field.is_note() {
            return Ok(());
        }
        let lost = |error: ApiError| BackendError::unknown(error.to_string());
        let rows = self.api.search(address, &self.key_field).await.map_err(lost)?;
        let made = rows.into_iter().find(|row| row.id == id);
        if made.is_some_and(|row| row.marks.claim.as_deref() == Some(&claim.key)) {
            return Ok(());
        }
        self.api.change(Method::DELETE, &["addresses", id], None).await.map_err(lost)?;
        Err(BackendError::new(BackendErrorKind::Refused, self.key_field.missing()))
    }
}

#[async_trait]
impl PoolBackend for PhpIpamPools {
    async fn claim(&self, claim: &BackendClaim) -> Result<BackendObject, BackendError> {
        if claim.length.is_some() {
            let message = "phpIPAM hands out single addresses here, no prefixes";
            return Err(BackendError::new(BackendErrorKind::Refused, message));
        }
        let subnet = self.subnet(&claim.pool).await?;
        let found = self.having(&subnet, &claim.key).await.map_err(|error| of_pool(error, &claim.pool))?;
        match found.into_iter().next() {
            Some(oldest) => Ok(object(oldest)),
            None => self.make(&subnet, claim, None).await,
        }
    }

    async fn release(&self, pool: &str, object: &BackendObject) -> Result<GivenBack, BackendError> {
        let subnet = self.subnet(pool).await?;
        let rows = self.api.search(object.address, &self.key_field).await.map_err(ApiError::of_backend)?;
        let ours = rows.into_iter().find(|row| {
            row.id == object.reference
                && row.subnet == subnet.id
                && row.marks.claim.as_deref() == Some(object.key.as_str())
        });
        let Some(row) = ours else { return Ok(GivenBack::AlreadyGone) };
        match self.api.change(Method::DELETE, &["addresses", &row.id], None).await {
            Ok(_) => Ok(GivenBack::Done),
            Err(ApiError::Refused { code: 404, .. }) => Ok(GivenBack::AlreadyGone),
            Err(error) => Err(error.of_backend()),
        }
    }

    async fn look_up(&self, pool: &str, key: &str) -> Result<Vec<BackendObject>, BackendError> {
        let subnet = self.subnet(pool).await?;
        let found = self.having(&subnet, key).await.map_err(|error| of_pool(error, pool))?;
        Ok(found.into_iter().map(object).collect())
    }

    /// phpIPAM has no pages: the first one has everything.
    async fn list(&self, pool: &str, prefix: &str, _after: Option<&str>) -> Result<ObjectPage, BackendError> {
        let subnet = self.subnet(pool).await?;
        let rows = self.api.addresses(&subnet.id, &[], &self.key_field).await;
        let rows = rows.map_err(|error| of_pool(error, pool))?;
        let mut objects: Vec<BackendObject> = rows.into_iter().map(object).collect();
        objects.retain(|object| object.key.starts_with(prefix));
        Ok(ObjectPage { objects, next: None })
    }

    async fn describe(&self, pool: &str) -> Result<BackendPoolInfo, BackendError> {
        let subnet = self.find(pool).await?;
        let usage = self.api.usage(&subnet.id).await.map_err(|error| of_pool(error, pool))?;
        let hosts = subnet.hosts();
        let size = usage.most.unwrap_or_else(|| hosts.len());
        let family = if subnet.cidr.kind() == AddressKind::V6 { Family::Ipv6 } else { Family::Ipv4 };
        Ok(BackendPoolInfo {
            family,
            network: Some(subnet.cidr),
            ranges: vec![hosts],
            exclude: Vec::new(),
            gateway: subnet.gateway,
            use_reserved: subnet.is_pool,
            length: None,
            size,
            free: usage.free.unwrap_or_else(|| size.saturating_sub(usage.used)),
            installations: Vec::new(),
        })
    }

    /// phpIPAM has no sign of change.
    async fn changed(&self, _pool: &str) -> Result<Option<String>, BackendError> {
        Ok(None)
    }
}

/// An address as the worker sees it. One that is not ours has a key that no claim has.
fn object(row: AddressRow) -> BackendObject {
    let others = || {
        let name = row.field("hostname").or_else(|| row.field("description")).unwrap_or_default();
        format!("id {} {name}", row.id).trim_end().to_owned()
    };
    let key = row.marks.claim.clone().unwrap_or_else(others);
    let holder = row.field("owner").map(ToOwned::to_owned);
    BackendObject { key, holder, address: row.address, length: None, since: None, reference: row.id }
}

fn no_such_pool(pool: &str) -> BackendError {
    BackendError::new(BackendErrorKind::NoSuchPool, format!("phpIPAM has no subnet `{pool}`"))
        .fact("pool", pool)
        .hint("name a subnet as `10.0.3.0/24`, or by its id; a folder is none")
}

/// An error of a call about a subnet that was there before.
fn of_pool(error: ApiError, pool: &str) -> BackendError {
    match error {
        ApiError::Refused { code: 400 | 404, ref message } if message.contains("ubnet") => no_such_pool(pool),
        error => error.of_backend(),
    }
}
