//! phpIPAM: addresses, over its REST API.
//!
//! It holds addresses alone, each in a subnet. Our key stands in the note of an address or in a custom field, beside what
//! people write there. One object is written per call, and phpIPAM has neither pages nor preconditions, so an object is read
//! right before it is changed. An address that a pool backend claimed has a key of its own: it is filled in, and never removed.

mod objects;
mod template;
mod write;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool},
};

use async_trait::async_trait;
use netstead_model::{
    Cidr, FieldValue, IpamCapabilities, IpamObject, IpamProvider, IpamSubject, ObjectDraft, ObjectKey,
    ObjectKind, ObjectRole, ObjectType, ObjectWrite, ProviderError, WriteReply,
};
use netstead_settings::{Configured, Identity, Kind, Number, table};

use self::{objects::Known, template::Template};
use super::IpamKind;
use crate::{
    BuildContext, Secret, SettingsError,
    phpipam::{Api, ApiError, Connection, KeyField},
};

pub const KIND: IpamKind = Kind::new::<Config>("phpipam", "phpIPAM: addresses, over its REST API", || {
    capabilities(&default_templates())
});

/// The fields that two addresses cannot share.
const UNIQUE: &[&str] = &["address", "subnet"];

table! {
    /// `[ipam.NAME]` with `type = "phpipam"`.
    pub struct Config {
        connection: Connection, all;
        /// the sections whose subnets are looked at, by name or id
        sections: Vec<String>, unset "all that the app shows";
        /// the networks whose addresses are written there; the others are left out
        networks: Vec<Cidr>, unset "all";
        /// the section in which a subnet is made for an address that none holds
        make_subnets: Option<String>, unset "no subnet is made";
        /// the length of such a subnet of IPv4
        subnet_length: Number<8, 31>, default 24;
        /// the length of such a subnet of IPv6
        subnet_length6: Number<16, 127>, default 64;
        /// the field of addresses that has our keys: `note`, or a custom field of the type `text`, as `custom_netstead`
        key_field: String, default "note";
        /// more fields, and other texts for the usual ones, with words such as `{name}`, `{node}` and `{cluster}`:
        /// `{ owner = "Team Blue", custom_node = "{node}" }`; an empty text leaves the field alone
        fields: BTreeMap<String, String>, unset "`hostname`, `description`, `mac` and `note`";
        /// the tag of addresses, by its id; 2 is Used
        tag: Number<1, 255>, default 2;
        /// the tag of addresses that are only claimed, by its id; 3 is Reserved
        reserved_tag: Number<1, 255>, default 3;
    }
}

impl Configured<dyn IpamProvider> for Config {
    fn identity(&self) -> Identity {
        self.connection.identity()
    }

    fn server(&self) -> String {
        self.connection.url.clone()
    }

    fn check(&self) -> Result<(), SettingsError> {
        self.connection.check()?;
        let key_field = KeyField::new(&self.key_field)?;
        self.templates(&key_field).map(drop)
    }

    fn build(&self, context: &BuildContext) -> Result<Arc<dyn IpamProvider>, SettingsError> {
        Ok(Arc::new(self.open(context)?))
    }
}

impl Config {
    /// An app of the security `none`.
    pub fn new(url: impl Into<String>, app: &str, user: &str, password: Secret) -> Self {
        Self::with(Connection::plain(url, app, user, password))
    }

    /// Everything but the connection at its default.
    pub fn with(connection: Connection) -> Self {
        Self {
            connection,
            sections: Vec::new(),
            networks: Vec::new(),
            make_subnets: None,
            subnet_length: Number::nearest(24),
            subnet_length6: Number::nearest(64),
            key_field: "note".to_owned(),
            fields: BTreeMap::new(),
            tag: Number::nearest(2),
            reserved_tag: Number::nearest(3),
        }
    }

    /// Opens files and secrets; the server itself is asked later.
    pub fn open(&self, context: &BuildContext) -> Result<PhpIpam, SettingsError> {
        self.check()?;
        let key_field = KeyField::new(&self.key_field)?;
        let templates = self.templates(&key_field)?;
        let api = self.connection.open(context)?;
        Ok(PhpIpam {
            api,
            config: self.clone(),
            key_field,
            templates,
            known: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
            proven: AtomicBool::new(false),
        })
    }

    /// The texts of the fields: the usual ones, and those of the file.
    fn templates(&self, key_field: &KeyField) -> Result<BTreeMap<String, Template>, SettingsError> {
        let mut templates = default_templates();
        for (field, text) in &self.fields {
            let usual = ["hostname", "description", "mac", "owner", "note", "port", "location"]
                .contains(&field.as_str());
            if !usual && field.strip_prefix("custom_").is_none_or(str::is_empty) {
                return Err(SettingsError::new("fields", format!("`{field}` is no field that is written"))
                    .hint("use hostname, description, mac, owner, note, port, location, and custom fields as `custom_NAME`"));
            }
            if field == key_field.name() && !key_field.is_note() {
                return Err(SettingsError::new("fields", format!("`{field}` has our keys"))
                    .hint("choose another field"));
            }
            let template = Template::parse(text).map_err(|problem| {
                SettingsError::new("fields", format!("`{field}`: {problem}")).hint(template::hint())
            })?;
            if template.is_empty() {
                templates.remove(field);
            } else {
                templates.insert(field.clone(), template);
            }
        }
        Ok(templates)
    }
}

fn default_templates() -> BTreeMap<String, Template> {
    let usual = [
        ("hostname", "{dns_name}"),
        ("description", "{kind} {name}"),
        ("mac", "{mac}"),
        ("note", "{comments}"),
    ];
    let parsed = |(field, text): (&str, &str)| Some((field.to_owned(), Template::parse(text).ok()?));
    usual.into_iter().filter_map(parsed).collect()
}

fn capabilities(templates: &BTreeMap<String, Template>) -> IpamCapabilities {
    let mut kind =
        ObjectType::new(ObjectKind::ADDRESS, ObjectRole::Address, UNIQUE, &["address", "subnet", "tag"]);
    kind.fields.extend(templates.keys().map(|field| field.clone().into()));
    IpamCapabilities { kinds: vec![kind], most_units: None }
}

/// One phpIPAM.
#[derive(Debug)]
pub struct PhpIpam {
    api: Api,
    config: Config,
    key_field: KeyField,
    templates: BTreeMap<String, Template>,
    /// As the last read found it.
    known: Mutex<Arc<Known>>,
    writing: tokio::sync::Mutex<()>,
    /// An object was seen to have the key that it was made with.
    proven: AtomicBool,
}

impl PhpIpam {
    fn known(&self) -> MutexGuard<'_, Arc<Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The subnets of the sections that count.
    async fn read_subnets(&self) -> Result<Known, ApiError> {
        let all = self.api.sections().await?;
        if all.is_empty() {
            let reason = "it shows no section; may the app and its user read one?";
            return Err(self.api.malformed(reason).into());
        }
        let chosen = |(id, name): &&(String, String)| {
            self.config.sections.is_empty()
                || self.config.sections.iter().any(|wanted| wanted == id || wanted == name)
        };
        for wanted in &self.config.sections {
            if !all.iter().any(|(id, name)| wanted == id || wanted == name) {
                let names: Vec<&str> = all.iter().map(|(_, name)| name.as_str()).collect();
                let reason = format!("it shows no section `{wanted}` among {}", names.join(", "));
                return Err(self.api.malformed(&reason).into());
            }
        }
        let mut subnets = Vec::new();
        for (id, _) in all.iter().filter(chosen) {
            subnets.extend(self.api.subnets(id).await?);
        }
        let meets = |cidr: Cidr| {
            let near = |wanted: &Cidr| wanted.contains_cidr(cidr) || cidr.contains_cidr(*wanted);
            self.config.networks.is_empty() || self.config.networks.iter().any(near)
        };
        subnets.retain(|subnet| meets(subnet.cidr));
        Ok(Known::new(subnets, all))
    }
}

#[async_trait]
impl IpamProvider for PhpIpam {
    fn kind(&self) -> &'static str {
        KIND.name
    }

    fn server(&self) -> String {
        self.api.server().to_owned()
    }

    fn capabilities(&self) -> IpamCapabilities {
        capabilities(&self.templates)
    }

    async fn read(&self) -> Result<Vec<IpamObject>, ProviderError> {
        let failed = |error: ApiError| error.unexpected(self.api.server());
        let mut known = self.read_subnets().await.map_err(failed)?;
        let rows = self.api.addresses_of_all(&known.subnets, &self.key_field).await.map_err(failed)?;
        if !rows.is_empty() && rows.iter().all(|row| !row.has_key_field) {
            return Err(self.api.malformed(&self.key_field.missing()));
        }
        let mut objects = Vec::with_capacity(rows.len());
        for row in rows {
            let Some(label) = known.label(&row.subnet) else { continue };
            if let Some(mark) = &row.marks.object {
                known.placed.insert(mark.key.clone(), label.clone());
            } else if row.marks.claim.is_some() {
                // Ours by a pool backend: it is filled in once something has the address.
                continue;
            }
            let mark = row.marks.object.clone();
            let fields = self.fields_of(&row, label);
            objects.push(IpamObject { kind: ObjectKind::ADDRESS, id: row.id, mark, fields });
        }
        *self.known() = Arc::new(known);
        Ok(objects)
    }

    fn objects(&self, subject: &IpamSubject) -> Vec<ObjectDraft> {
        self.drafts(subject)
    }

    async fn write(&self, request: &ObjectWrite) -> Result<WriteReply, ProviderError> {
        self.write_all(request).await
    }
}

fn text(value: impl Into<String>) -> FieldValue {
    FieldValue::Text(value.into())
}

/// The address that an object stands for.
fn address_of(key: &ObjectKey) -> Option<netstead_model::Address> {
    key.part.parse().ok()
}
