//! The tokens in memory, kept up to date by the store's watch.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use netstead_store::{Entry, Write};
use tracing::error;

use super::{Token, session_cache::SessionCache};

/// Where tokens are kept, and all that stands for one.
pub(super) const ACCESS: &[u8] = b"access/";
/// Where tokens are kept.
pub(super) const PREFIX: &[u8] = b"access/token/";

pub(super) fn key(id: &str) -> Vec<u8> {
    [PREFIX, id.as_bytes()].concat()
}

/// All tokens, fed by our own writes and by the store's watch.
///
/// The two may come in any order. An id is never given twice, so one that was revoked stays so, whatever an older
/// piece of news says.
#[derive(Debug, Default)]
pub(super) struct TokenCache {
    tokens: BTreeMap<String, Arc<Token>>,
    revoked: HashSet<String>,
    pub(super) sessions: SessionCache,
}

impl TokenCache {
    pub(super) fn get(&self, id: &str) -> Option<&Arc<Token>> {
        self.tokens.get(id)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Token>> {
        self.tokens.values()
    }

    pub(super) fn was_revoked(&self, id: &str) -> bool {
        self.revoked.contains(id)
    }

    pub(super) fn add(&mut self, token: Arc<Token>) {
        if !self.revoked.contains(&token.id) {
            self.tokens.insert(token.id.clone(), token);
        }
    }

    pub(super) fn revoke(&mut self, id: &str) {
        self.tokens.remove(id);
        self.revoked.insert(id.to_owned());
    }

    pub(super) fn apply(&mut self, writes: &[Write]) {
        for write in writes {
            let Some(id) = id_of(write.key()) else {
                self.sessions.apply(write);
                continue;
            };
            match write {
                Write::Put(_, value) => self.read(id, value),
                Write::Delete(_) => self.revoke(id),
            }
        }
    }

    /// Starts anew from everything that is stored. What was made since then comes with the watch.
    pub(super) fn replace(&mut self, entries: &[Entry]) {
        self.tokens.clear();
        self.sessions.clear();
        for entry in entries {
            match id_of(&entry.key) {
                Some(id) => self.read(id, &entry.value),
                None => self.sessions.read(&entry.key, &entry.value),
            }
        }
    }

    /// Adds what is stored and not known yet.
    pub(super) fn add_all(&mut self, entries: &[Entry]) {
        for entry in entries {
            match id_of(&entry.key) {
                Some(id) if self.tokens.contains_key(id) => {}
                Some(id) => self.read(id, &entry.value),
                None => self.sessions.read(&entry.key, &entry.value),
            }
        }
    }

    /// Takes back a token that was not made after all.
    pub(super) fn forget(&mut self, id: &str) {
        self.tokens.remove(id);
    }

    fn read(&mut self, id: &str, value: &[u8]) {
        match Token::decode(id, value) {
            Ok(token) => self.add(Arc::new(token)),
            Err(error) => {
                // Its holder is kept out; the others are not.
                self.tokens.remove(id);
                error!(token = id, %error, "A stored token cannot be read.");
            }
        }
    }
}

fn id_of(key: &[u8]) -> Option<&str> {
    std::str::from_utf8(key.strip_prefix(PREFIX)?).ok()
}

/// Whether a key of the store is that of a token.
pub fn is_token(key: &[u8]) -> bool {
    key.starts_with(PREFIX)
}

/// Whether a restore brings a key along: everything but the nodes, sessions, and tokens that are not the local admin's. Backups are
/// older than the last revocation.
pub fn survives_restore(key: &[u8], value: &[u8]) -> bool {
    // Who served the old store is not who serves the new one.
    if key.starts_with(b"cluster/") {
        return false;
    }
    match id_of(key) {
        Some(id) => Token::decode(id, value).is_ok_and(|token| token.local_admin),
        None => !key.starts_with(ACCESS),
    }
}
