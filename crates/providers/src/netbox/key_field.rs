//! [`KeyField`]: the custom field that has our keys.

use std::{
    fmt,
    sync::atomic::{AtomicBool, Ordering},
};

use netstead_model::{ProviderError, WriteGuard};
use netstead_wire::http::Method;
use serde_json::{Value, json};

use super::{Api, ApiError, Row, Version, choice, id_of, rows::text_of};

const PATH: &str = "/api/extras/custom-fields/";

/// The types of objects that have our keys.
const TYPES: &[&str] = &[
    "virtualization.virtualmachine",
    "virtualization.vminterface",
    "dcim.macaddress",
    "ipam.ipaddress",
    "ipam.prefix",
];

/// The custom field that has our keys.
#[derive(Debug)]
pub(crate) struct KeyField {
    name: String,
    /// It was seen to be there.
    ready: AtomicBool,
}

/// The field as NetBox has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyFieldState {
    Ready,
    /// It can be made, or be given to more types of objects.
    Incomplete {
        id: Option<u64>,
        types: Vec<String>,
    },
}

impl KeyField {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ready: AtomicBool::new(false) }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl Api {
    /// Looks whether objects have the field for our keys. An error if they have not and this token cannot change that.
    pub(crate) async fn look_at_key_field(&self) -> Result<KeyFieldState, ApiError> {
        let state = self.key_field_state().await?;
        self.key_field().ready.store(state == KeyFieldState::Ready, Ordering::Relaxed);
        if state != KeyFieldState::Ready && !self.may_add(PATH).await? {
            return Err(self.key_field_command(&state).into());
        }
        Ok(state)
    }

    async fn key_field_state(&self) -> Result<KeyFieldState, ApiError> {
        let name = self.key_field().name.as_str();
        let found = self.list(PATH, &[("name", name)]).await?;
        let version = self.version().await?;
        let wanted = TYPES.iter().filter(|one| **one != "dcim.macaddress" || version >= Version::MAC_OBJECTS);
        let wanted: Vec<String> = wanted.map(|one| (*one).to_owned()).collect();
        let Some(field) = found.iter().find(|field| text_of(field, "name") == name) else {
            return Ok(KeyFieldState::Incomplete { id: None, types: wanted });
        };
        if !matches!(choice(field, "type").as_str(), "text" | "longtext") {
            let reason =
                format!("its custom field `{name}` is of the type {}, not `text`", choice(field, "type"));
            return Err(self.malformed(&reason).into());
        }
        let types = field.get(types_key(version)).and_then(Value::as_array);
        let mut types: Vec<String> =
            types.into_iter().flatten().filter_map(|one| Some(one.as_str()?.to_owned())).collect();
        let missing: Vec<String> = wanted.into_iter().filter(|one| !types.contains(one)).collect();
        if missing.is_empty() {
            return Ok(KeyFieldState::Ready);
        }
        types.extend(missing);
        Ok(KeyFieldState::Incomplete { id: id_of(field, "id"), types })
    }

    /// Sees that objects have the field before one is written, and makes it if need be.
    pub(crate) async fn ensure_key_field(&self, guard: Option<&WriteGuard>) -> Result<(), ApiError> {
        if self.key_field().ready.load(Ordering::Relaxed) {
            return Ok(());
        }
        let state = self.look_at_key_field().await?;
        let KeyFieldState::Incomplete { id, types } = &state else { return Ok(()) };
        if let Some(guard) = guard {
            guard.permit().await?;
        }
        let body = self.key_field_body(*id, types).await?;
        let made = match id {
            Some(id) => self.change_one(Method::PATCH, &format!("{PATH}{id}/"), Some(&body), None).await,
            None => self.create_one(PATH, &body).await.map(drop),
        };
        match made {
            Err(ApiError::Server(ProviderError::Denied { .. })) => Err(self.key_field_command(&state).into()),
            Err(error) => Err(error),
            Ok(()) => {
                self.key_field().ready.store(true, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    async fn key_field_body(&self, id: Option<u64>, types: &[String]) -> Result<Row, ApiError> {
        let types_key = types_key(self.version().await?);
        let mut body = Row::from_iter([(types_key.to_owned(), json!(types))]);
        if id.is_none() {
            let more = [
                ("name", self.key_field().name.as_str()),
                ("label", "Netstead"),
                ("description", "The object that Netstead keeps here. Leave it alone."),
                ("type", "text"),
                ("filter_logic", "exact"),
                ("ui_visible", "if-set"),
                ("ui_editable", "no"),
            ];
            body.extend(more.map(|(name, value)| (name.to_owned(), json!(value))));
        }
        Ok(body)
    }

    /// The error that names the command by which a person makes the field.
    fn key_field_command(&self, state: &KeyFieldState) -> ProviderError {
        let KeyFieldState::Incomplete { id, types } = state else {
            return self.malformed("its custom field is there");
        };
        let name = &self.key_field().name;
        let key = types_key(self.version_said());
        let (what, method, at, body) = if let Some(id) = id {
            let body = json!({ key: types });
            (
                format!("the custom field `{name}` is not for all types of objects"),
                "PATCH",
                format!("{PATH}{id}/"),
                body,
            )
        } else {
            let body = json!({ "name": name, "type": "text", key: types });
            (format!("there is no custom field `{name}`"), "POST", PATH.to_owned(), body)
        };
        let reason = format!(
            "{what}, and this token may not change that. Once, with a token that may: curl -X {method} {}{at} -H \
             \"Authorization: Token $TOKEN\" -H \"Content-Type: application/json\" -d '{body}'",
            self.server().trim_end_matches('/')
        );
        ProviderError::Malformed { server: self.server().to_owned(), reason }
    }
}

/// Custom fields and tags are for these types of objects.
pub(crate) fn types_key(version: Version) -> &'static str {
    if version >= Version::OBJECT_TYPES { "object_types" } else { "content_types" }
}

impl fmt::Display for KeyField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
