//! [`IpamProvider`]: an IPAM system as the engine sees it.
//!
//! An IPAM system holds *objects*: a machine, its interfaces, its addresses. Each provider names its own kinds and their
//! fields ([`IpamCapabilities`]) and says which objects stand for a workload ([`IpamProvider::objects`]), so that one diff
//! serves systems that hold many kinds and systems that hold addresses alone. An object of ours carries a *mark* with the
//! [`ObjectKey`] it was made for; a name is a field like any other.

mod kind;
mod object;
mod subject;
mod write;

use async_trait::async_trait;

pub use self::{
    kind::{ObjectKind, ObjectRole, ObjectType},
    object::{FieldValue, Fields, IpamObject, ObjectDraft, ObjectKey, ObjectMark},
    subject::{IpamAddress, IpamInterface, IpamSubject, standard_kinds, standard_objects},
    write::{ObjectChange, ObjectUnit, ObjectWrite},
};
use crate::{Diagnosis, ProviderError, WriteReply};

/// Abilities of an IPAM system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IpamCapabilities {
    /// Kinds that it holds, in the order of creation: an object refers to objects of earlier kinds when it is made. A field
    /// that refers to a later kind is filled once that object exists.
    pub kinds: Vec<ObjectType>,
    /// Units that it takes in one call; none if there is no limit.
    pub most_units: Option<std::num::NonZeroUsize>,
}

impl IpamCapabilities {
    /// The kind of objects with this role; the first, if there are several.
    pub fn kind_of(&self, role: ObjectRole) -> Option<&ObjectType> {
        self.kinds.iter().find(|one| one.role == role)
    }
}

/// One configured IPAM system.
#[async_trait]
pub trait IpamProvider: Send + Sync + std::fmt::Debug {
    /// `netbox`, `phpipam`, `webhook`, …
    fn kind(&self) -> &'static str;

    /// The server, for people and for finding two providers that mean the same one.
    fn server(&self) -> String;

    fn capabilities(&self) -> IpamCapabilities;

    /// All objects of the kinds it holds, with their marks. An incomplete list is an error, never a shorter list.
    async fn read(&self) -> Result<Vec<IpamObject>, ProviderError>;

    /// The objects that stand for a workload or a claim, with values as the server would hold them, so that its own
    /// normalisation never shows as drift. It is asked after [`read`](Self::read) and opens no connection. The same subject
    /// always gets the same keys.
    fn objects(&self, subject: &IpamSubject) -> Vec<ObjectDraft> {
        standard_objects(subject)
    }

    /// Applies units that do not need each other, and says what became of each, in order. One bad unit does not stop the
    /// others. Before every request that changes something it asks the request's guard.
    ///
    /// An error means that nothing of the request was done, or, if [`ProviderError::may_have_acted`], that it is unknown.
    async fn write(&self, request: &ObjectWrite) -> Result<WriteReply, ProviderError>;

    /// Checks for `netstead doctor` that go beyond reading. It is asked after a read that worked, and changes nothing.
    async fn diagnose(&self) -> Vec<Diagnosis> {
        Vec::new()
    }

    /// Gives back what the server keeps for us, such as a session.
    async fn close(&self) {}
}
