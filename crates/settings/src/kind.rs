//! A kind of DNS provider, source, IPAM provider or pool backend: everything there is to know of it before one is
//! configured.

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use netstead_model::{CallObserver, Clock, Ident, NoopObserver, Service, SystemClock};
use serde_json::{Map, Value as Json};
use sha2::{Digest as _, Sha256};

use crate::{identity::Identity, key::KeyInfo, problem::nearest, section::Section, table::Settings};

/// A sentence for the person who wrote the settings; it names the key and never a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct SettingsError {
    /// The key of the table, for example `url`.
    pub key: &'static str,
    pub problem: String,
    pub hint: Option<String>,
}

impl SettingsError {
    pub fn new(key: &'static str, problem: impl Into<String>) -> Self {
        Self { key, problem: problem.into(), hint: None }
    }

    /// Adds a hint: the text to write instead.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

/// One table that was read: it knows which server it means, and what it describes can be built.
pub trait Configured<B: ?Sized>: fmt::Debug + Send + Sync {
    fn identity(&self) -> Identity;

    /// The server for people: `http://ns1:8081`.
    fn server(&self) -> String;

    /// Refuses what does not fit together. Opens no file, no socket and no secret.
    fn check(&self) -> Result<(), SettingsError> {
        Ok(())
    }

    /// Sockets of this machine that it uses: a process that gives up root joins their groups first.
    fn local_sockets(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// The HTTPS record that a DNS server gets beside every address, by these settings.
    fn companion(&self) -> Option<Service> {
        None
    }

    /// Opens files and secrets, and makes the thing. Sockets are opened later, by using it.
    fn build(&self, context: &BuildContext) -> Result<Arc<B>, SettingsError>;
}

/// The settings of one kind: a struct made with [`crate::table!`] that can be built.
pub trait KindConfig<B: ?Sized>: Settings + Configured<B> + 'static {}

impl<B: ?Sized, T: Settings + Configured<B> + 'static> KindConfig<B> for T {}

/// One table that was read: ready to be built, and as it is shown.
pub struct ReadTable<B: ?Sized> {
    pub configured: Arc<dyn Configured<B>>,
    pub shown: Map<String, Json>,
}

impl<B: ?Sized> fmt::Debug for ReadTable<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.configured.fmt(f)
    }
}

/// One kind. `B` is what it builds, `C` what it says it can do.
pub struct Kind<B: ?Sized + 'static, C: 'static> {
    /// The word after `type =`.
    pub name: &'static str,
    /// One line: what it is.
    pub title: &'static str,
    /// Capabilities of the kind; a row of the capability table.
    pub capabilities: fn() -> C,
    keys: fn() -> Vec<KeyInfo>,
    read: fn(&mut Section<'_, '_>) -> Option<ReadTable<B>>,
}

impl<B: ?Sized + 'static, C: 'static> Kind<B, C> {
    pub const fn new<T: KindConfig<B>>(
        name: &'static str,
        title: &'static str,
        capabilities: fn() -> C,
    ) -> Self {
        Self { name, title, capabilities, keys: T::keys, read: read_table::<B, T> }
    }

    /// Its own keys, without those that all kinds of its section share.
    pub fn keys(&self) -> Vec<KeyInfo> {
        (self.keys)()
    }

    /// Reads its own keys and checks that they fit together.
    pub fn read(&self, section: &mut Section<'_, '_>) -> Option<ReadTable<B>> {
        (self.read)(section)
    }
}

impl<B: ?Sized, C> fmt::Debug for Kind<B, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kind({})", self.name)
    }
}

fn read_table<B: ?Sized, T: KindConfig<B>>(section: &mut Section<'_, '_>) -> Option<ReadTable<B>> {
    let config = T::read(section)?;
    if let Err(error) = config.check() {
        section.wrong(error.key, &error.problem, error.hint.as_deref());
    }
    let mut shown = Map::new();
    config.shown(&mut shown);
    Some(ReadTable { configured: Arc::new(config), shown })
}

/// All kinds of one section of the file.
pub struct Kinds<B: ?Sized + 'static, C: 'static> {
    /// `dns`, `source`.
    pub section: &'static str,
    pub kinds: Vec<&'static Kind<B, C>>,
    /// Kinds that this build leaves out.
    pub absent: &'static [&'static str],
}

impl<B: ?Sized, C> fmt::Debug for Kinds<B, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kinds({}: {:?})", self.section, self.kinds)
    }
}

impl<B: ?Sized + 'static, C: 'static> Kinds<B, C> {
    pub fn names(&self) -> Vec<&'static str> {
        self.kinds.iter().map(|kind| kind.name).collect()
    }

    pub fn find(&self, name: &str) -> Option<&'static Kind<B, C>> {
        self.kinds.iter().copied().find(|kind| kind.name == name)
    }

    /// The kind that `type` names; a table called like a kind needs no `type`. Reports what is wrong.
    pub fn of(&self, section: &mut Section<'_, '_>, name: &str) -> Option<&'static Kind<B, C>> {
        if section.origin_of("type").is_none() {
            if let Some(kind) = self.find(name) {
                return Some(kind);
            }
            let known: Vec<_> = self.names().iter().map(|kind| format!("`type = \"{kind}\"`")).collect();
            section.wrong_table("has no type", Some(&format!("write one of {}", known.join(", "))));
            return None;
        }
        let written = section.text("type")?.to_owned();
        if let Some(kind) = self.find(&written) {
            return Some(kind);
        }
        if self.absent.contains(&written.as_str()) {
            let hint = "use a build of Netstead that has it";
            section.wrong("type", &format!("`{written}` is not in this build"), Some(hint));
        } else {
            let hint = nearest(&written, &self.names());
            section.wrong("type", &format!("`{written}` is not known here"), Some(&hint));
        }
        None
    }

    /// Every kind that has `key`, for a hint about a key of another kind.
    pub fn having(&self, key: &str) -> Vec<&'static str> {
        let has = |kind: &&&Kind<B, C>| kind.keys().iter().any(|info| info.name == key);
        self.kinds.iter().filter(has).map(|kind| kind.name).collect()
    }
}

/// The variables of the environment.
pub type Variables = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Everything that building needs beside the table itself.
#[derive(Clone)]
pub struct BuildContext {
    /// The name of the table: `lan` of `[dns.lan]`.
    pub name: Ident,
    pub clock: Arc<dyn Clock>,
    pub calls: Arc<dyn CallObserver>,
    variables: Variables,
    parts: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    /// Over all secrets that were opened.
    revealed: Arc<Mutex<Sha256>>,
}

impl BuildContext {
    /// With this machine's clock and environment; calls are not counted.
    pub fn new(name: Ident) -> Self {
        Self {
            name,
            clock: SystemClock::shared(),
            calls: Arc::new(NoopObserver),
            variables: Arc::new(|name| std::env::var(name).ok()),
            parts: HashMap::new(),
            revealed: Arc::default(),
        }
    }

    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    #[must_use]
    pub fn with_calls(self, calls: Arc<dyn CallObserver>) -> Self {
        Self { calls, ..self }
    }

    #[must_use]
    pub fn with_variables(self, variables: Variables) -> Self {
        Self { variables, ..self }
    }

    /// Adds what only the process can give: its store, its addresses.
    #[must_use]
    pub fn with_part<T: Clone + Send + Sync + 'static>(mut self, part: T) -> Self {
        self.parts.insert(TypeId::of::<T>(), Arc::new(part));
        self
    }

    pub fn part<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        self.parts.get(&TypeId::of::<T>())?.downcast_ref::<T>().cloned()
    }

    pub(crate) fn note_secret(&self, value: &str) {
        let mut revealed = self.revealed.lock().unwrap_or_else(PoisonError::into_inner);
        revealed.update(value);
        revealed.update([0]);
    }

    /// A hash over all secrets that were opened while building: another one means another connection.
    pub fn revealed(&self) -> String {
        let hash = self.revealed.lock().unwrap_or_else(PoisonError::into_inner).clone().finalize();
        hash.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
    }

    pub fn variable(&self, name: &str) -> Option<String> {
        (self.variables)(name)
    }
}

impl fmt::Debug for BuildContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuildContext").field("name", &self.name).finish_non_exhaustive()
    }
}
