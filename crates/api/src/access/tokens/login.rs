//! Logging in: sessions of browsers, and links that open one.
//!
//! A session is a credential that stands for a token: it can do what the token can, and ends with it, after 12 hours without
//! use, and after 7 days. The store has the SHA-256 of its secret only. Every node knows all sessions through the store's
//! watch, so each of them accepts any.

use std::sync::Arc;

use netstead_store::{Commit, Condition, StoreError};
use tracing::info;

use super::{PATIENCE, Tokens};
use crate::access::{
    AccessError, Denied, Grant, LINK_LIFE, LoginLink, LoginSession, NewToken, Role, Secret, Token,
    digest::Digest,
    secret::Kind,
    session_cache::{link_key, session_key},
};

/// Sessions of one token at one time; a new one ends the one that was not used for longest.
const MOST_SESSIONS: usize = 100;
/// Unused login links of one token at one time.
const MOST_LINKS: usize = 10;
/// Keys that one login tidies away beside its own, so that it stays one commit.
const MOST_TIDIED: usize = 50;
/// The subject of visitors without a login.
const ANONYMOUS: &str = "anonymous";
/// Characters of what a browser calls itself.
const MOST_OF_AGENT: usize = 200;

impl Tokens {
    /// Opens a session for the holder of `grant`. If the grant is that of a login link, the link ends with this.
    pub async fn open_session(
        &self,
        grant: &Grant,
        agent: Option<&str>,
    ) -> Result<(LoginSession, Arc<Token>, Secret), AccessError> {
        let token = Arc::clone(grant.token());
        let secret = Secret::generate_as(Kind::Session);
        let (id, hidden) = Secret::split_as(Kind::Session, secret.expose()).unwrap_or_default();
        let now = self.clock.wall();
        let plain = |text: &str| text.chars().filter(|c| !c.is_control()).take(MOST_OF_AGENT).collect();
        let session = LoginSession {
            id: id.to_owned(),
            token: token.id.clone(),
            created: now,
            seen: now,
            agent: agent.map(plain),
            digest: Digest::of(hidden),
        };
        let mut commit =
            Commit::new().when(Condition::Absent(session_key(id))).put(session_key(id), session.encode()?);
        if let Some(link) = grant.link() {
            // On condition that the link was not used before.
            let entry = self.store.get(&link_key(&link.id)).await?;
            let entry = entry.ok_or(AccessError::LinkUsed)?;
            commit = commit.when(Condition::Version(entry.key.clone(), entry.version)).delete(entry.key);
        }
        for key in self.outlived(&token.id) {
            if grant.link().is_none_or(|link| link_key(&link.id) != key) {
                commit = commit.delete(key);
            }
        }
        match self.store.commit(commit).await {
            Ok(_) => {}
            Err(StoreError::Refused { .. }) if grant.link().is_some() => return Err(AccessError::LinkUsed),
            Err(error) => return Err(error.into()),
        }
        let mut known = self.write();
        known.sessions.add_session(session.clone());
        if let Some(link) = grant.link() {
            known.sessions.end_link(&link.id);
        }
        drop(known);
        info!(session = session.id, subject = %token.subject, "Logged in.");
        Ok((session, token, secret))
    }

    /// Opens a session for a user that was verified elsewhere, with the rights of the newest token of that subject. The token
    /// that `run` makes for the local command line is not meant for users of that name.
    pub async fn open_session_of(&self, subject: &str, agent: Option<&str>) -> Result<Secret, AccessError> {
        let missing = || AccessError::NoSuchSubject { subject: subject.to_owned() };
        let fits = |token: &Token| !token.local_admin;
        let mut found = self.newest_of(subject, fits);
        if found.is_none() {
            // Another node may have made it a moment ago.
            self.refresh().await;
            found = self.newest_of(subject, fits);
        }
        let grant = self.current(found.ok_or_else(missing)?).map_err(|_| missing())?;
        Ok(self.open_session(&grant, agent).await?.2)
    }

    /// Opens a session for visitors without a login: of the newest token of the subject `anonymous` with the role `read`, which
    /// is made if there is none. Its scopes limit what they see.
    pub async fn open_anonymous_session(&self) -> Result<Secret, AccessError> {
        let reads = |token: &Token| token.role == Role::Read;
        if self.newest_of(ANONYMOUS, reads).is_none() {
            self.refresh().await;
        }
        let token = if let Some(token) = self.newest_of(ANONYMOUS, reads) {
            token
        } else {
            let description = Some("visitors of the web page without a login".to_owned());
            let new = NewToken { description, ..NewToken::new(ANONYMOUS, Role::Read) };
            Arc::new(self.create(new).await?.0)
        };
        let missing = |_| AccessError::NoSuchSubject { subject: ANONYMOUS.to_owned() };
        let grant = self.current(token).map_err(missing)?;
        Ok(self.open_session(&grant, None).await?.2)
    }

    /// The newest token of a subject that is valid now and fits.
    fn newest_of(&self, subject: &str, fits: impl Fn(&Token) -> bool) -> Option<Arc<Token>> {
        let (known, now) = (self.read(), self.clock.wall());
        let valid = known.all().filter(|token| {
            *token.subject == *subject && token.expires.is_none_or(|at| at > now) && fits(token)
        });
        valid.max_by_key(|token| (token.created, token.id.clone())).cloned()
    }

    /// Makes a link that opens one session for the holder of `grant`, within a minute.
    pub async fn create_login_link(&self, grant: &Grant) -> Result<(LoginLink, Secret), AccessError> {
        let secret = Secret::generate_as(Kind::Link);
        let (id, hidden) = Secret::split_as(Kind::Link, secret.expose()).unwrap_or_default();
        let now = self.clock.wall();
        let link = LoginLink {
            id: id.to_owned(),
            token: grant.id().to_owned(),
            until: now.checked_add(LINK_LIFE).unwrap_or(now),
            digest: Digest::of(hidden),
        };
        let mut commit =
            Commit::new().when(Condition::Absent(link_key(id))).put(link_key(id), link.encode()?);
        for key in self.outlived(grant.id()) {
            commit = commit.delete(key);
        }
        self.store.commit(commit).await?;
        self.write().sessions.add_link(link.clone());
        Ok((link, secret))
    }

    /// Notes that a session is in use, so that it does not end as idle.
    pub async fn keep_session(&self, grant: &Grant) -> Result<LoginSession, AccessError> {
        let session = grant.session().ok_or_else(|| no_session("-"))?;
        let entry =
            self.store.get(&session_key(&session.id)).await?.ok_or_else(|| no_session(&session.id))?;
        let mut kept = LoginSession::decode(&session.id, &entry.value)?;
        kept.seen = self.clock.wall().max(kept.seen);
        // Not if it ended meanwhile: what ended does not come back.
        let condition = Condition::Version(entry.key.clone(), entry.version);
        let commit = Commit::new().when(condition).put(entry.key, kept.encode()?);
        match self.store.commit(commit).await {
            Ok(_) => self.write().sessions.add_session(kept.clone()),
            // Another request noted the same.
            Err(StoreError::Refused { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(kept)
    }

    /// Ends a session, at once for this process. Ending it again is fine.
    pub async fn end_session(&self, id: &str) -> Result<(), AccessError> {
        if Secret::split_as(Kind::Session, &format!("{}{id}_x", Kind::Session.prefix())).is_none() {
            return Err(no_session(id));
        }
        let known = self.read().sessions.has_ended(id);
        if self.store.get(&session_key(id)).await?.is_none() {
            return if known { Ok(()) } else { Err(no_session(id)) };
        }
        self.store.commit(Commit::new().delete(session_key(id))).await?;
        self.write().sessions.end_session(id);
        info!(session = id, "Logged out.");
        Ok(())
    }

    /// All sessions that still live, with their tokens, in order of id.
    pub fn sessions(&self) -> Vec<(Arc<LoginSession>, Arc<Token>)> {
        let (known, now) = (self.read(), self.clock.wall());
        let live = known.sessions.sessions().filter(|session| session.until() > now);
        live.filter_map(|session| Some((Arc::clone(session), Arc::clone(known.get(&session.token)?))))
            .collect()
    }

    /// Lets the holder of a login link in, to open a session and for nothing else.
    pub(crate) fn verify_link(&self, presented: &str) -> Option<Result<Grant, Denied>> {
        let (id, secret) = Secret::split_as(Kind::Link, presented)?;
        let known = self.read();
        let link = known.sessions.link(id).cloned();
        let token = link.as_ref().and_then(|link| known.get(&link.token).cloned());
        drop(known);
        let digest = link.as_ref().map_or(Digest::NONE, |link| link.digest);
        let matches = digest.matches(&Digest::of(secret));
        Some(match (link, token) {
            (Some(link), Some(token)) if matches && link.until > self.clock.wall() => {
                self.current(token).map(|grant| grant.of_link(link))
            }
            _ => Err(Denied::LinkEnded),
        })
    }

    /// Lets the holder of a session in.
    pub(super) fn verify_session(&self, presented: &str) -> Option<Result<Grant, Denied>> {
        let (id, secret) = Secret::split_as(Kind::Session, presented)?;
        let known = self.read();
        let session = known.sessions.session(id).cloned();
        let token = session.as_ref().and_then(|session| known.get(&session.token).cloned());
        drop(known);
        let digest = session.as_ref().map_or(Digest::NONE, |session| session.digest);
        let matches = digest.matches(&Digest::of(secret));
        Some(match (session, token) {
            (Some(session), Some(token)) if matches && session.until() > self.clock.wall() => {
                self.current(token).map(|grant| grant.of_session(session))
            }
            _ => Err(Denied::SessionEnded),
        })
    }

    /// Whether the session of a grant still lives; a grant without one has nothing to lose.
    pub(super) fn session_lives(&self, grant: &Grant) -> bool {
        let Some(session) = grant.session() else { return true };
        let known = self.read();
        known.sessions.session(&session.id).is_some_and(|session| session.until() > self.clock.wall())
    }

    /// Whether the session of a grant ended, as the store says now. Without an answer of the store it did not.
    pub(super) async fn session_ended_meanwhile(&self, grant: &Grant) -> bool {
        let Some(session) = grant.session() else { return false };
        let asked = tokio::time::timeout(PATIENCE, self.store.get(&session_key(&session.id))).await;
        let ended = matches!(asked, Ok(Ok(None)));
        if ended {
            self.write().sessions.end_session(&session.id);
        }
        ended
    }

    /// Stored keys that can go: what ended by itself, what has no token any more, and what one token has too many of.
    fn outlived(&self, token: &str) -> Vec<Vec<u8>> {
        let (known, now) = (self.read(), self.clock.wall());
        let gone = |token: &str| known.get(token).is_none();
        let mut keys = Vec::new();
        let (mut own, mut links) = (Vec::new(), Vec::new());
        for session in known.sessions.sessions() {
            if session.until() <= now || gone(&session.token) {
                keys.push(session_key(&session.id));
            } else if session.token == token {
                own.push((session.seen, &session.id));
            }
        }
        for link in known.sessions.links() {
            if link.until <= now || gone(&link.token) {
                keys.push(link_key(&link.id));
            } else if link.token == token {
                links.push((link.until, &link.id));
            }
        }
        own.sort_unstable();
        links.sort_unstable();
        let surplus = (own.len() + 1).saturating_sub(MOST_SESSIONS);
        keys.extend(own.iter().take(surplus).map(|(_, id)| session_key(id)));
        let surplus = (links.len() + 1).saturating_sub(MOST_LINKS);
        keys.extend(links.iter().take(surplus).map(|(_, id)| link_key(id)));
        keys.truncate(MOST_TIDIED);
        keys
    }
}

fn no_session(id: &str) -> AccessError {
    AccessError::NoSuchSession { id: id.to_owned() }
}
