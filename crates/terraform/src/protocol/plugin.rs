//! [`Plugin`]: the methods of the protocol, on top of the traits in `resource.rs`.

mod apply;
mod ephemeral;
mod plan;

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    diagnostic::Diagnostic,
    kind::Kind,
    messages::{
        CallAnswer, CallRequest, Capabilities, ConfigureRequest, DiagnosticsAnswer, DynamicValue, Function,
        FunctionError, FunctionsAnswer, Identity, IdentityAttribute, IdentitySchema, IdentitySchemasAnswer,
        ImportAnswer, ImportRequest, Imported, MetadataAnswer, MoveAnswer, MoveRequest, Parameter, RawState,
        ReadDataAnswer, ReadDataRequest, Return, SchemaAnswer, TypeName, UpgradeAnswer,
        UpgradeIdentityAnswer, UpgradeRequest, ValidateProviderAnswer, ValidateProviderRequest,
        ValidateRequest,
    },
    msgpack::{decode, encode},
    resource::{DataSource, Failed, Provider, Resource},
    schema::Schema,
    value::{Fields as _, Object, Value},
};

const CAPABILITIES: Capabilities =
    Capabilities { plan_destroy: false, get_provider_schema_optional: true, move_resource_state: true };

/// A provider with the session that its configuration leads to.
pub struct Plugin<S: Sync> {
    provider: Provider<S>,
    session: OnceLock<Arc<S>>,
    stopped: AtomicBool,
    /// Type and configuration of resources that this plan replaces. Each is planned once more, as a creation.
    replaced: Mutex<HashSet<(String, Vec<u8>)>>,
}

impl<S: Sync> std::fmt::Debug for Plugin<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plugin").finish_non_exhaustive()
    }
}

impl<S: Send + Sync> Plugin<S> {
    pub fn new(provider: Provider<S>) -> Self {
        Self {
            provider,
            session: OnceLock::new(),
            stopped: AtomicBool::new(false),
            replaced: Mutex::default(),
        }
    }

    pub(super) fn metadata(&self) -> MetadataAnswer {
        let named = |name: &str| TypeName { name: name.to_owned() };
        MetadataAnswer {
            capabilities: Some(CAPABILITIES),
            data_sources: self.provider.data_sources.iter().map(|one| named(one.name())).collect(),
            resources: self.provider.resources.iter().map(|one| named(one.name())).collect(),
            functions: self.provider.functions.iter().map(|one| named(one.name)).collect(),
            ephemerals: self.provider.ephemerals.iter().map(|one| named(one.name())).collect(),
        }
    }

    pub(super) fn schema(&self) -> SchemaAnswer {
        let resources = self.provider.resources.iter();
        let data_sources = self.provider.data_sources.iter();
        let ephemerals = self.provider.ephemerals.iter();
        SchemaAnswer {
            provider: Some((&self.provider.schema).into()),
            resources: resources.map(|one| (one.name().to_owned(), (&one.schema()).into())).collect(),
            data_sources: data_sources.map(|one| (one.name().to_owned(), (&one.schema()).into())).collect(),
            capabilities: Some(CAPABILITIES),
            functions: self.functions().functions,
            ephemerals: ephemerals.map(|one| (one.name().to_owned(), (&one.schema()).into())).collect(),
        }
    }

    pub(super) fn identity_schemas(&self) -> IdentitySchemasAnswer {
        let schema = |one: &dyn Resource<S>| {
            let schema = one.schema();
            let attributes = one.identity().iter().filter_map(|name| schema.attribute(name));
            let attributes = attributes.map(|attribute| IdentityAttribute {
                name: attribute.name.to_owned(),
                kind: type_bytes(&attribute.kind),
                required_for_import: true,
                description: attribute.description.to_owned(),
            });
            IdentitySchema { version: 0, attributes: attributes.collect() }
        };
        let resources = self.provider.resources.iter();
        let schemas = resources.map(|one| (one.name().to_owned(), schema(one.as_ref()))).collect();
        IdentitySchemasAnswer { schemas }
    }

    pub(super) fn upgrade_identity(&self, asked: &UpgradeRequest) -> UpgradeIdentityAnswer {
        let read = || {
            let resource = self.resource(&asked.type_name)?;
            stored(&identity_kind(resource), asked.raw.as_ref())
        };
        match read() {
            Ok(value) => UpgradeIdentityAnswer {
                identity: Some(Identity { data: Some(encode(&value)) }),
                diagnostics: Vec::new(),
            },
            Err(wrong) => UpgradeIdentityAnswer { identity: None, diagnostics: vec![wrong.into()] },
        }
    }

    pub(super) fn validate_provider(&self, asked: &ValidateProviderRequest) -> ValidateProviderAnswer {
        let found = match object(&self.provider.schema, asked.config.as_ref()) {
            Ok(config) => {
                let config = config.unwrap_or_default();
                let mut found = self.provider.schema.problems(&config);
                found.extend((self.provider.validate)(&config));
                found
            }
            Err(wrong) => vec![wrong],
        };
        ValidateProviderAnswer { diagnostics: messages(found) }
    }

    pub(super) fn validate_resource(&self, asked: &ValidateRequest) -> DiagnosticsAnswer {
        let check = || {
            let resource = self.resource(&asked.type_name)?;
            let schema = resource.schema();
            let config = object(&schema, asked.config.as_ref())?.unwrap_or_default();
            let mut found = schema.problems(&config);
            found.extend(resource.validate(&config));
            Ok(found)
        };
        DiagnosticsAnswer { diagnostics: messages(check().unwrap_or_else(|wrong: Diagnostic| vec![wrong])) }
    }

    pub(super) fn validate_data_source(&self, asked: &ValidateRequest) -> DiagnosticsAnswer {
        let check = || {
            let source = self.data_source(&asked.type_name)?;
            let schema = source.schema();
            let config = object(&schema, asked.config.as_ref())?.unwrap_or_default();
            let mut found = schema.problems(&config);
            found.extend(source.validate(&config));
            Ok(found)
        };
        DiagnosticsAnswer { diagnostics: messages(check().unwrap_or_else(|wrong: Diagnostic| vec![wrong])) }
    }

    pub(super) fn configure(&self, asked: &ConfigureRequest) -> DiagnosticsAnswer {
        let config = match object(&self.provider.schema, asked.config.as_ref()) {
            Ok(config) => config.unwrap_or_default(),
            Err(wrong) => return DiagnosticsAnswer { diagnostics: vec![wrong.into()] },
        };
        // A plan may come before the provider's configuration is known. Then no server is asked.
        if !config.values().all(Value::is_known) {
            return DiagnosticsAnswer::default();
        }
        match (self.provider.configure)(&config) {
            Ok(session) => {
                let _ = self.session.set(Arc::new(session));
                DiagnosticsAnswer::default()
            }
            Err(found) => DiagnosticsAnswer { diagnostics: messages(found) },
        }
    }

    pub(super) fn upgrade(&self, asked: &UpgradeRequest) -> UpgradeAnswer {
        let read = || {
            let resource = self.resource(&asked.type_name)?;
            let json = json(asked.raw.as_ref())?;
            let json = resource.upgrade(asked.version, json);
            let kind = resource.schema().kind();
            kind.from_json(&json).map_err(|reason| {
                Diagnostic::error(format!("the stored state of a {} cannot be read", asked.type_name), reason)
            })
        };
        match read() {
            Ok(value) => UpgradeAnswer { state: Some(encode(&value)), diagnostics: Vec::new() },
            Err(wrong) => UpgradeAnswer { state: None, diagnostics: vec![wrong.into()] },
        }
    }

    pub(super) fn import(&self, asked: &ImportRequest) -> ImportAnswer {
        match self.imported(asked) {
            Ok(imported) => ImportAnswer { imported: vec![imported], diagnostics: Vec::new() },
            Err(wrong) => ImportAnswer { imported: Vec::new(), diagnostics: vec![wrong.into()] },
        }
    }

    fn imported(&self, asked: &ImportRequest) -> Result<Imported, Diagnostic> {
        let resource = self.resource(&asked.type_name)?;
        let unreadable = || {
            let form = resource.import_form();
            Diagnostic::error(
                format!("`{}` is no id of a {}", asked.id, resource.name()),
                format!("The id of an import has the form `{form}`."),
            )
        };
        let named = asked.identity.as_ref().and_then(|identity| identity.data.as_ref());
        let known = match named {
            Some(data) => match decode(&identity_kind(resource), Some(data)) {
                Ok(Value::Map(named)) => named,
                Ok(_) => return Err(unreadable()),
                Err(error) => {
                    return Err(Diagnostic::error("the identity cannot be read", error.to_string()));
                }
            },
            None => resource.import(&asked.id).ok_or_else(unreadable)?,
        };
        let schema = resource.schema();
        let state: Object = schema
            .attributes
            .iter()
            .map(|one| (one.name.to_owned(), known.value(one.name).clone()))
            .collect();
        let identity = identity_of(resource, &state);
        let state = Some(encode(&Value::Map(state)));
        Ok(Imported { type_name: asked.type_name.clone(), state, private: Vec::new(), identity })
    }

    pub(super) fn move_state(&self, asked: &MoveRequest) -> MoveAnswer {
        let moved = || {
            let resource = self.resource(&asked.target_type)?;
            let state = json(asked.source_state.as_ref())?;
            let moved = resource.move_from(&asked.source_type, &state).ok_or_else(|| {
                Diagnostic::error(
                    format!("a {} cannot become a {}", asked.source_type, asked.target_type),
                    "Remove the `moved` block, and import the resource instead.",
                )
            })?;
            // The next read completes the attributes that only the server knows.
            let attributes = resource.schema().attributes;
            let whole = attributes.iter().map(|one| (one.name.to_owned(), moved.value(one.name).clone()));
            Ok::<Object, Diagnostic>(whole.collect())
        };
        match moved() {
            Ok(state) => MoveAnswer { state: Some(encode(&Value::Map(state))), diagnostics: Vec::new() },
            Err(wrong) => MoveAnswer { state: None, diagnostics: vec![wrong.into()] },
        }
    }

    pub(super) async fn read_data(&self, asked: ReadDataRequest) -> ReadDataAnswer {
        match self.data(&asked).await {
            Ok(state) => ReadDataAnswer { state: Some(encode(&Value::Map(state))), diagnostics: Vec::new() },
            Err(failed) => ReadDataAnswer { state: None, diagnostics: messages(failed.diagnostics) },
        }
    }

    async fn data(&self, asked: &ReadDataRequest) -> Result<Object, Failed> {
        let source = self.data_source(&asked.type_name)?;
        let schema = source.schema();
        let config = object(&schema, asked.config.as_ref())?.unwrap_or_default();
        let found = source.read(self.session()?, &config).await?;
        Ok(schema
            .attributes
            .iter()
            .map(|one| {
                let given = config.value(one.name);
                let value = if given.is_null() { found.value(one.name) } else { given };
                (one.name.to_owned(), value.clone())
            })
            .collect())
    }

    pub(super) fn functions(&self) -> FunctionsAnswer {
        let function = |one: &super::resource::Function| {
            let parameters = one.parameters.iter().map(|(name, kind, description)| Parameter {
                name: (*name).to_owned(),
                kind: type_bytes(kind),
                description: (*description).to_owned(),
            });
            let definition = Function {
                parameters: parameters.collect(),
                returns: Some(Return { kind: type_bytes(&one.returns) }),
                summary: one.summary.to_owned(),
                description: one.description.to_owned(),
                description_kind: 1,
            };
            (one.name.to_owned(), definition)
        };
        FunctionsAnswer { functions: self.provider.functions.iter().map(function).collect() }
    }

    pub(super) fn call(&self, asked: &CallRequest) -> CallAnswer {
        let failed = |text: String, argument: Option<usize>| CallAnswer {
            result: None,
            error: Some(FunctionError {
                text,
                argument: argument.and_then(|place| i64::try_from(place).ok()),
            }),
        };
        let Some(function) = self.provider.functions.iter().find(|one| one.name == asked.name) else {
            return failed(format!("this provider has no function `{}`", asked.name), None);
        };
        let kinds = function.parameters.iter().map(|(_, kind, _)| kind);
        let arguments = kinds.zip(&asked.arguments).map(|(kind, value)| decode(kind, Some(value)));
        match arguments.collect::<Result<Vec<_>, _>>() {
            Ok(arguments) if arguments.len() == function.parameters.len() => {
                match (function.call)(&arguments) {
                    Ok(value) => CallAnswer { result: Some(encode(&value)), error: None },
                    Err((place, text)) => failed(text, Some(place)),
                }
            }
            Ok(_) => failed("an argument is missing".into(), None),
            Err(error) => failed(error.to_string(), None),
        }
    }

    /// Terraform has what it wanted.
    pub(super) async fn close(&self) {
        if let Some(session) = self.session.get() {
            (self.provider.close)(session).await;
        }
    }

    /// Ctrl-C: what runs is finished, and nothing new is begun.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    fn resource(&self, name: &str) -> Result<&dyn Resource<S>, Diagnostic> {
        let found = self.provider.resources.iter().find(|one| one.name() == name);
        found.map(AsRef::as_ref).ok_or_else(|| unknown_type(name))
    }

    fn data_source(&self, name: &str) -> Result<&dyn DataSource<S>, Diagnostic> {
        let found = self.provider.data_sources.iter().find(|one| one.name() == name);
        found.map(AsRef::as_ref).ok_or_else(|| unknown_type(name))
    }

    fn session(&self) -> Result<&S, Diagnostic> {
        self.session.get().map(AsRef::as_ref).ok_or_else(|| {
            Diagnostic::error(
                "the provider is not configured yet",
                "Its configuration depends on values that are known only after another apply: apply those first, \
                 with `-target`.",
            )
        })
    }
}

fn unknown_type(name: &str) -> Diagnostic {
    Diagnostic::error(
        format!("this version of the provider has no `{name}`"),
        "Use a version of the provider that has it.",
    )
}

fn type_bytes(kind: &Kind) -> Vec<u8> {
    kind.json().to_string().into_bytes()
}

fn messages(found: Vec<Diagnostic>) -> Vec<super::messages::Diagnostic> {
    found.into_iter().map(Into::into).collect()
}

/// `None` if it is null.
fn object(schema: &Schema, value: Option<&DynamicValue>) -> Result<Option<Object>, Diagnostic> {
    match decode(&schema.kind(), value) {
        Ok(Value::Map(object)) => Ok(Some(object)),
        Ok(_) => Ok(None),
        Err(error) => Err(Diagnostic::error(
            error.to_string(),
            "Terraform and the provider disagree about the schema: run `terraform init -upgrade`.",
        )),
    }
}

fn json(raw: Option<&RawState>) -> Result<serde_json::Value, Diagnostic> {
    let bytes = raw.map(|raw| raw.json.as_slice()).unwrap_or_default();
    serde_json::from_slice(bytes).map_err(|error| {
        Diagnostic::error("the stored state cannot be read", format!("It is no JSON: {error}."))
    })
}

fn stored(kind: &Kind, raw: Option<&RawState>) -> Result<Value, Diagnostic> {
    let json = json(raw)?;
    kind.from_json(&json).map_err(|reason| Diagnostic::error("the stored identity cannot be read", reason))
}

fn identity_kind<S: Sync>(resource: &dyn Resource<S>) -> Kind {
    let schema = resource.schema();
    let attributes = resource.identity().iter().filter_map(|name| schema.attribute(name));
    Kind::Object(attributes.map(|one| (one.name, one.kind.clone())).collect())
}

/// `None` while a part of it is not known.
fn identity_of<S: Sync>(resource: &dyn Resource<S>, state: &Object) -> Option<Identity> {
    let named = resource.identity().iter().map(|name| ((*name).to_owned(), state.value(name).clone()));
    let identity: Object = named.collect();
    let complete = identity.values().all(|value| value.is_known() && !value.is_null());
    complete.then(|| Identity { data: Some(encode(&Value::Map(identity))) })
}
