//! Sessions and login links in memory, kept up to date with the tokens.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use netstead_store::Write;
use tracing::error;

use super::{AccessError, LoginLink, LoginSession};

/// Where sessions are kept.
const SESSIONS: &str = "access/session/";
/// Where login links are kept.
const LINKS: &str = "access/link/";

pub(super) fn session_key(id: &str) -> Vec<u8> {
    [SESSIONS, id].concat().into_bytes()
}

pub(super) fn link_key(id: &str) -> Vec<u8> {
    [LINKS, id].concat().into_bytes()
}

/// One kind of credential, by id. An id that ended stays ended, whatever older news say.
#[derive(Debug)]
struct ById<T> {
    live: BTreeMap<String, Arc<T>>,
    ended: HashSet<String>,
}

impl<T> Default for ById<T> {
    fn default() -> Self {
        Self { live: BTreeMap::new(), ended: HashSet::new() }
    }
}

impl<T> ById<T> {
    fn add(&mut self, id: &str, item: T) {
        if !self.ended.contains(id) {
            self.live.insert(id.to_owned(), Arc::new(item));
        }
    }

    fn end(&mut self, id: &str) {
        self.live.remove(id);
        self.ended.insert(id.to_owned());
    }

    fn read(&mut self, id: &str, read: Result<T, AccessError>) {
        match read {
            Ok(item) => self.add(id, item),
            Err(error) => {
                self.live.remove(id);
                error!(id, %error, "A stored session cannot be read.");
            }
        }
    }
}

/// All sessions and login links.
#[derive(Debug, Default)]
pub(super) struct SessionCache {
    sessions: ById<LoginSession>,
    links: ById<LoginLink>,
}

impl SessionCache {
    pub(super) fn session(&self, id: &str) -> Option<&Arc<LoginSession>> {
        self.sessions.live.get(id)
    }

    pub(super) fn sessions(&self) -> impl Iterator<Item = &Arc<LoginSession>> {
        self.sessions.live.values()
    }

    pub(super) fn link(&self, id: &str) -> Option<&Arc<LoginLink>> {
        self.links.live.get(id)
    }

    pub(super) fn links(&self) -> impl Iterator<Item = &Arc<LoginLink>> {
        self.links.live.values()
    }

    pub(super) fn add_session(&mut self, session: LoginSession) {
        let id = session.id.clone();
        self.sessions.add(&id, session);
    }

    pub(super) fn add_link(&mut self, link: LoginLink) {
        let id = link.id.clone();
        self.links.add(&id, link);
    }

    /// Whether a session ended, as far as is known here.
    pub(super) fn has_ended(&self, id: &str) -> bool {
        self.sessions.ended.contains(id)
    }

    pub(super) fn end_session(&mut self, id: &str) {
        self.sessions.end(id);
    }

    pub(super) fn end_link(&mut self, id: &str) {
        self.links.end(id);
    }

    /// Forgets everything that lives, to be read anew.
    pub(super) fn clear(&mut self) {
        self.sessions.live.clear();
        self.links.live.clear();
    }

    pub(super) fn apply(&mut self, write: &Write) {
        match write {
            Write::Put(key, value) => self.read(key, value),
            Write::Delete(key) => {
                if let Some(id) = id_below(SESSIONS, key) {
                    self.end_session(id);
                } else if let Some(id) = id_below(LINKS, key) {
                    self.end_link(id);
                }
            }
        }
    }

    /// Takes a stored value, if it is one of these.
    pub(super) fn read(&mut self, key: &[u8], value: &[u8]) {
        if let Some(id) = id_below(SESSIONS, key) {
            self.sessions.read(id, LoginSession::decode(id, value));
        } else if let Some(id) = id_below(LINKS, key) {
            self.links.read(id, LoginLink::decode(id, value));
        }
    }
}

fn id_below<'k>(prefix: &str, key: &'k [u8]) -> Option<&'k str> {
    std::str::from_utf8(key.strip_prefix(prefix.as_bytes())?).ok()
}
