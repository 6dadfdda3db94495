//! The traits behind which resources, data sources and functions stand.

use std::{future::Future, pin::Pin};

use async_trait::async_trait;

use super::{
    diagnostic::Diagnostic,
    ephemeral::Ephemeral,
    kind::Kind,
    schema::Schema,
    value::{Object, Value},
};

/// The end of a session.
pub type Closing<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A provider: its own configuration, and everything it serves. `S` is what the configuration leads to.
pub struct Provider<S: Sync> {
    pub schema: Schema,
    /// Checks the configuration without connecting.
    pub validate: fn(&Object) -> Vec<Diagnostic>,
    /// Connects to nothing yet: a plan starts this process several times.
    pub configure: fn(&Object) -> Result<S, Vec<Diagnostic>>,
    /// Called when Terraform needs nothing more. A process that is killed never calls it.
    pub close: fn(&S) -> Closing<'_>,
    pub resources: Vec<Box<dyn Resource<S>>>,
    pub data_sources: Vec<Box<dyn DataSource<S>>>,
    pub ephemerals: Vec<Box<dyn Ephemeral<S>>>,
    pub functions: Vec<Function>,
}

impl<S: Sync> std::fmt::Debug for Provider<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Provider").finish_non_exhaustive()
    }
}

/// A change that is planned: what is there, what is asked for, and what will be there.
#[derive(Debug)]
pub struct Change<'a> {
    /// `None` for a creation.
    pub prior: Option<&'a Object>,
    pub config: &'a Object,
    pub planned: &'a mut Object,
}

/// Why a change did not happen, or only in part.
#[derive(Debug)]
pub struct Failed {
    pub diagnostics: Vec<Diagnostic>,
    /// The state after a change that was made in part.
    pub state: Option<Object>,
}

impl From<Diagnostic> for Failed {
    fn from(diagnostic: Diagnostic) -> Self {
        Self { diagnostics: vec![diagnostic], state: None }
    }
}

#[async_trait]
pub trait Resource<S: Sync>: Send + Sync {
    /// The type as users write it: `netstead_pool`.
    fn name(&self) -> &'static str;
    fn schema(&self) -> Schema;
    /// The attributes that together name one resource.
    fn identity(&self) -> &'static [&'static str];
    /// The form of the id of an import: `POOL/KEY`.
    fn import_form(&self) -> &'static str;
    /// The attributes in the id of an import.
    fn import(&self, id: &str) -> Option<Object>;
    /// An example of its use, for the documents.
    fn example(&self) -> &'static str;

    /// Finds attributes that do not fit together. Values may be unknown.
    fn validate(&self, _config: &Object) -> Vec<Diagnostic> {
        Vec::new()
    }

    /// Whether a change of this attribute needs a new resource. Asked for those that the schema marks.
    async fn replaces(
        &self,
        _session: Option<&S>,
        _attribute: &str,
        _prior: &Object,
        _planned: &Object,
    ) -> bool {
        true
    }

    /// Completes a plan. Without a session the provider's configuration is not known yet.
    async fn plan(&self, _session: Option<&S>, _change: Change<'_>) -> Vec<Diagnostic> {
        Vec::new()
    }

    async fn create(&self, session: &S, planned: &Object, config: &Object) -> Result<Object, Failed>;

    /// `None` if it is gone.
    async fn read(&self, session: &S, state: &Object) -> Result<Option<Object>, Failed>;

    async fn update(
        &self,
        session: &S,
        prior: &Object,
        planned: &Object,
        config: &Object,
    ) -> Result<Object, Failed>;

    /// One that is gone already is fine.
    async fn delete(&self, session: &S, state: &Object) -> Result<(), Failed>;

    /// State of an earlier version of the schema, as JSON, in the form of this one.
    fn upgrade(&self, _version: i64, state: serde_json::Value) -> serde_json::Value {
        state
    }

    /// State of another type that a `moved` block names.
    fn move_from(&self, _source_type: &str, _state: &serde_json::Value) -> Option<Object> {
        None
    }
}

#[async_trait]
pub trait DataSource<S: Sync>: Send + Sync {
    fn name(&self) -> &'static str;
    fn schema(&self) -> Schema;
    fn example(&self) -> &'static str;

    fn validate(&self, _config: &Object) -> Vec<Diagnostic> {
        Vec::new()
    }

    async fn read(&self, session: &S, config: &Object) -> Result<Object, Failed>;
}

/// Answers a call. An error has the place of the argument it is about.
pub type Call = fn(&[Value]) -> Result<Value, (usize, String)>;

/// A function that needs no configuration.
#[derive(Debug, Clone)]
pub struct Function {
    pub name: &'static str,
    pub summary: &'static str,
    pub description: &'static str,
    pub parameters: Vec<(&'static str, Kind, &'static str)>,
    pub returns: Kind,
    /// The error names the argument it is about.
    pub call: Call,
    pub example: &'static str,
}
