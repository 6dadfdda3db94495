//! One table of a section whose tables have kinds: `[dns.NAME]`, `[source.NAME]`.

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

use netstead_model::{Ident, Service};
use netstead_settings::{
    BuildContext, Configured, KeyInfo, Kind, Problem, Problems, ReadTable, Section, Table, ValueOrigin,
    written_form,
};
use serde_json::{Map, Value as Json};

/// The part of a table that belongs to its kind, read and ready to be built.
pub(crate) struct KindTable<B: ?Sized + 'static, C: 'static> {
    pub(crate) kind: &'static Kind<B, C>,
    configured: Arc<dyn Configured<B>>,
    shown: Map<String, Json>,
    /// The kind's own keys as they were written: tables with the same form mean the same thing.
    pub(crate) written: String,
    /// The place of each key, for problems that show when it is built.
    origins: BTreeMap<String, String>,
}

impl<B: ?Sized + 'static, C: 'static> KindTable<B, C> {
    /// Reads the keys of the kind. `shared` are those that all kinds of the section have.
    pub(super) fn read(
        kind: &'static Kind<B, C>,
        section: &mut Section<'_, '_>,
        table: &Table,
        shared: &[KeyInfo],
    ) -> Option<Self> {
        let ReadTable { configured, shown } = kind.read(section)?;
        let keys: Vec<_> = shared.iter().cloned().chain(kind.keys()).collect();
        // A table called like its kind needs no `type`; with and without it says the same. The keys that all kinds share
        // change nothing of what the kind does.
        let skipped: Vec<_> = shared.iter().map(|key| key.name).chain(["type"]).collect();
        let form = written_form(table, &keys, &skipped);
        let written = format!("type={}\n{form}", kind.name);
        Some(Self { kind, configured, shown, written, origins: section.origins() })
    }

    /// A table that says nothing but its kind.
    pub(super) fn empty(kind: &'static Kind<B, C>) -> Option<Self> {
        Self::of(kind, Vec::new())
    }

    /// A table that the program made.
    pub(super) fn of(
        kind: &'static Kind<B, C>,
        values: Vec<(&str, netstead_settings::Value)>,
    ) -> Option<Self> {
        let place = ValueOrigin::Nowhere;
        let entry = |value| netstead_settings::Entry {
            key: place.clone(),
            node: netstead_settings::Node { place: place.clone(), value },
        };
        let entries = values.into_iter().map(|(key, value)| (key.to_owned(), entry(value))).collect();
        let table = Table { place: place.clone(), entries };
        let mut problems = Problems::new(std::path::Path::new(""), "");
        let mut section = Section::open("", &table, &mut problems);
        Self::read(kind, &mut section, &table, &[])
    }

    /// `powerdns at http://ns1:8081`.
    pub(crate) fn describe(&self) -> String {
        format!("{} at {}", self.kind.name, self.configured.server())
    }

    /// Sockets of this machine that it uses.
    pub(crate) fn local_sockets(&self) -> Vec<PathBuf> {
        self.configured.local_sockets()
    }

    /// The HTTPS record that a DNS server gets beside every address.
    pub(crate) fn companion(&self) -> Option<Service> {
        self.configured.companion()
    }

    pub(crate) fn is_same_server(&self, other: &Self) -> bool {
        self.kind.name == other.kind.name && self.configured.identity().meets(&other.configured.identity())
    }

    /// A host that both name, though their kinds differ.
    pub(crate) fn common_host(&self, other: &Self) -> Option<String> {
        let (one, two) = (self.configured.identity(), other.configured.identity());
        (self.kind.name != other.kind.name).then(|| one.common_host(&two).map(str::to_owned)).flatten()
    }

    /// Opens files and secrets. A problem says where in the file its key is.
    pub(crate) fn build(&self, path: &str, context: &BuildContext) -> Result<Arc<B>, Problem> {
        self.configured.build(context).map_err(|error| {
            let at = self.origins.get(error.key).or_else(|| self.origins.values().next());
            let at = at.map_or_else(|| path.to_owned(), Clone::clone);
            let mut problem = Problem::new(at, format!("{path}.{}: {}", error.key, error.problem));
            problem.hint = error.hint;
            problem
        })
    }

    /// The whole table for people: its name, its kind, the keys that all kinds share, and its own.
    pub(super) fn shown_with(&self, name: &Ident, shared: &Map<String, Json>) -> Map<String, Json> {
        let mut all = Map::new();
        all.insert("name".into(), Json::from(name.as_str()));
        all.insert("type".into(), Json::from(self.kind.name));
        all.extend(shared.clone());
        all.extend(self.shown.clone());
        all
    }
}

impl<B: ?Sized, C> Clone for KindTable<B, C> {
    fn clone(&self) -> Self {
        Self {
            kind: self.kind,
            configured: Arc::clone(&self.configured),
            shown: self.shown.clone(),
            written: self.written.clone(),
            origins: self.origins.clone(),
        }
    }
}

/// Equal tables say the same, wherever they stand.
impl<B: ?Sized, C> PartialEq for KindTable<B, C> {
    fn eq(&self, other: &Self) -> bool {
        (self.kind.name, &self.written, &self.shown) == (other.kind.name, &other.written, &other.shown)
    }
}

impl<B: ?Sized, C> fmt::Debug for KindTable<B, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.name, Json::Object(self.shown.clone()))
    }
}
