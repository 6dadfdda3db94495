//! [`DnsProvider`]: a DNS server as the engine sees it.

mod budget;
mod capabilities;
mod change_sign;
mod error;
mod write;

use std::collections::BTreeSet;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

pub use self::{
    budget::RequestBudget,
    capabilities::{Capabilities, Marks, TtlSupport, WriteOrder, ZoneSource},
    change_sign::ChangeSign,
    error::ProviderError,
    write::{Fence, UnitOutcome, WriteGuard, WriteReply, WriteRequest},
};
use crate::{Name, RecordData, RecordSet};

/// A zone the server holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    pub name: Name,
    /// Nothing changed while this is unchanged, as far as the server knows.
    pub sign: Option<ChangeSign>,
}

/// Everything in a zone, at one sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZoneContent {
    pub sign: Option<ChangeSign>,
    pub sets: Vec<RecordSet>,
}

/// A change of one record set: what is expected to be there, and what shall be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetChange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<RecordSet>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<RecordSet>,
}

/// All changes of one name, and of the mark that says the name is ours: a server takes them together, and bisection
/// never splits them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    pub name: Name,
    pub changes: Vec<SetChange>,
}

impl SetChange {
    /// The name whose set it changes.
    pub fn name(&self) -> Option<&Name> {
        self.after.as_ref().or(self.before.as_ref()).map(|set| &set.name)
    }
}

impl Unit {
    /// Every name it touches: its own, and that of its mark.
    pub fn names(&self) -> BTreeSet<&Name> {
        self.changes.iter().filter_map(SetChange::name).chain([&self.name]).collect()
    }

    /// The changes at its own name.
    pub fn own_changes(&self) -> impl Iterator<Item = &SetChange> {
        self.changes.iter().filter(|change| change.name() == Some(&self.name))
    }
}

/// One configured DNS server.
#[async_trait]
pub trait DnsProvider: Send + Sync + std::fmt::Debug {
    /// `powerdns`, `rfc2136`, …
    fn kind(&self) -> &'static str;

    /// The server, for people and for finding two providers that mean the same one.
    fn server(&self) -> String;

    fn capabilities(&self) -> Capabilities;

    /// Makes ready what must be there before the first read. Called once by a node that leads; repeating it changes nothing.
    async fn prepare(&self) -> Result<(), ProviderError> {
        Ok(())
    }

    /// The zone it would make for a name that lies in none it holds. `None` on a server that makes no zones with their first
    /// record.
    fn zone_of(&self, name: &Name) -> Option<Name> {
        let _ = name;
        None
    }

    /// Whether every name has a zone, because zones come into being with their first record.
    fn makes_zones(&self) -> bool {
        false
    }

    /// The zones it holds that lie at, above or below `domains`, with their serials.
    async fn zones(&self, domains: &[Name]) -> Result<Vec<Zone>, ProviderError>;

    /// Everything in `zone`. What is not complete is an error, never a shorter list.
    async fn read(&self, zone: &Name) -> Result<ZoneContent, ProviderError>;

    /// Whether the server hands out no whole zones: then every read names what it is about.
    fn reads_by_name(&self) -> bool {
        false
    }

    /// Whether [`DnsProvider::read_names`] asks for no more than these names.
    fn can_read_names(&self) -> bool {
        self.reads_by_name()
    }

    /// Reads the sets at `names` in `zone`, all at one sign. Where whole zones can be read, that is what happens.
    async fn read_names(&self, zone: &Name, names: &BTreeSet<Name>) -> Result<ZoneContent, ProviderError> {
        let _ = names;
        self.read(zone).await
    }

    /// Whether changes of `zone` would be taken, asked without changing anything. A server that has no way to ask says
    /// yes.
    async fn may_write(&self, zone: &Name) -> Result<(), ProviderError> {
        let _ = zone;
        Ok(())
    }

    /// Returns the set as the server would hold it: its own normalisation, so that it never shows as drift. One that overrides this
    /// also takes care of the time to live. `can` is what [`DnsProvider::capabilities`] says, asked once for all sets of a pass.
    fn adjust(&self, mut set: RecordSet, can: &Capabilities) -> RecordSet {
        set.ttl = can.ttl.adjust(set.ttl);
        set
    }

    /// Why the server can never hold this value, as far as that is known without asking it. The plan then refuses the value. Types
    /// that are not in the capabilities are refused anyway.
    fn cannot_hold(&self, name: &Name, data: &RecordData) -> Option<String> {
        let _ = data;
        (name.is_wildcard() && !self.capabilities().wildcards).then(|| "it knows no wildcards".to_owned())
    }

    /// Epoch and generation of the newest write with this `owner` that the server knows of in `zone`. None where it keeps
    /// no fence, or has none yet. A store that was restored learns from it where to go on.
    async fn fence(&self, _zone: &Name, _owner: &str) -> Result<Option<(u64, u64)>, ProviderError> {
        Ok(None)
    }

    /// Applies units and says what became of each, in order. One bad unit does not stop the others. Repeating a write
    /// changes nothing. Before every request that changes something it asks the request's [`WriteGuard`], unless the server
    /// keeps a fence.
    ///
    /// An error means that nothing of the request was done, or, if [`ProviderError::may_have_acted`], that it is unknown.
    /// One that is met half way is [`WriteReply::stopped`].
    async fn write(&self, zone: &Name, request: &WriteRequest) -> Result<WriteReply, ProviderError>;

    /// The values that another tool keeps in a place of its own on this server, a file for example, which says whose they are
    /// without marks.
    async fn left_by(&self, tool: &str) -> Result<Vec<(Name, RecordData)>, ProviderError> {
        let _ = tool;
        Ok(Vec::new())
    }

    /// Moves values that were adopted from the place of another tool to ours, and removes what is empty then. Repeating it
    /// changes nothing.
    async fn move_from(
        &self,
        tool: &str,
        values: &[(Name, RecordData)],
        guard: &WriteGuard,
    ) -> Result<(), ProviderError> {
        let _ = (tool, values, guard);
        Ok(())
    }

    /// The requests that may still be made, on a server that limits them.
    fn budget(&self) -> Option<RequestBudget> {
        None
    }

    /// Gives back what the server keeps for us, such as a session. Called when the loop of the provider ends. A later call is
    /// no error: it opens what it needs again.
    async fn close(&self) {}

    /// Whether writes through this provider since the zone was read, and nothing else, moved its sign from `before` to
    /// `after`: then what the zone holds is known and need not be read. One that cannot tell says no. The next call is about
    /// what follows `after` if the answer is yes.
    fn moved_alone(&self, zone: &Name, before: &ChangeSign, after: &ChangeSign) -> bool {
        let _ = (zone, before, after);
        false
    }
}
