//! [`Tokens`]: creates, verifies and revokes tokens.

mod login;

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use netstead_model::Clock;
use netstead_store::{
    Commit, Condition, Entry, MAX_WRITES, Snapshot, Store, StoreError, Watch, WatchItem, pause_for,
};
use tokio::sync::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{debug, info, warn};

use super::{
    AccessError, Denied, Grant, NewToken, Secret, Token,
    digest::Digest,
    token_cache::{self, TokenCache},
};

/// How long the store is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// All tokens of an installation. Clones share what they know.
///
/// Verifying asks memory only. What another process makes or revokes is seen through the store's watch.
#[derive(Debug, Clone)]
pub struct Tokens {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    known: Arc<RwLock<TokenCache>>,
    looking: Arc<Mutex<()>>,
    _follower: Arc<DropGuard>,
}

impl Tokens {
    pub async fn open(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Result<Self, AccessError> {
        let known = Arc::new(RwLock::new(TokenCache::default()));
        let loaded = tokio::time::timeout(PATIENCE, load(&*store, &known)).await;
        let watch = loaded.ok().and_then(Result::ok);
        if watch.is_none() {
            // Without the others' agreement this node's own copy has to do.
            let entries = all(&*store.own_snapshot().await?).await?;
            known.write().unwrap_or_else(PoisonError::into_inner).replace(&entries);
        }
        let stop = CancellationToken::new();
        tokio::spawn(follow(Arc::clone(&store), Arc::clone(&known), watch, stop.clone()));
        let looking = Arc::default();
        Ok(Self { store, clock, known, looking, _follower: Arc::new(stop.drop_guard()) })
    }

    /// Looks into the store for tokens whose news have not come yet. Those who ask at the same time share a look.
    pub(crate) async fn refresh(&self) {
        let looked = async {
            let _turn = self.looking.lock().await;
            let entries = stored(&*self.store).await?;
            self.write().add_all(&entries);
            Ok::<_, StoreError>(())
        };
        if !matches!(tokio::time::timeout(PATIENCE, looked).await, Ok(Ok(()))) {
            debug!("The store cannot be asked for new tokens.");
        }
    }

    /// Whether a token that is known here was revoked, or its session ended, as the store says now. Without an answer of the store it was not.
    pub(crate) async fn was_revoked_meanwhile(&self, grant: &Grant) -> bool {
        let key = token_cache::key(grant.id());
        let (asked, ended) = tokio::join!(
            tokio::time::timeout(PATIENCE, self.store.get(&key)),
            self.session_ended_meanwhile(grant)
        );
        let revoked = matches!(asked, Ok(Ok(None)));
        if revoked {
            self.write().revoke(grant.id());
        }
        revoked || ended
    }

    /// Makes a token. Its secret is in the answer and nowhere else.
    pub async fn create(&self, new: NewToken) -> Result<(Token, Secret), AccessError> {
        new.check()?;
        let secret = Secret::generate();
        let (id, hidden) = Secret::split(secret.expose()).unwrap_or_default();
        let created = self.clock.wall();
        let lifetime = new.lifetime.filter(|lifetime| !lifetime.is_zero()).map(Duration::from);
        let token = Token {
            id: id.to_owned(),
            subject: new.subject.into(),
            role: new.role,
            scopes: new.scopes,
            created,
            expires: lifetime.map(|lifetime| created.checked_add(lifetime).unwrap_or(jiff::Timestamp::MAX)),
            description: new.description,
            local_admin: new.local_admin,
            digest: Digest::of(hidden),
        };
        let commit = Commit::new()
            .when(Condition::Absent(token_cache::key(&token.id)))
            .put(token_cache::key(&token.id), token.encode()?);
        // Known before it is stored: no client has the secret yet, and a revocation that comes right after the commit
        // cannot be overtaken by us.
        self.write().add(Arc::new(token.clone()));
        if let Err(error) = self.store.commit(commit).await {
            self.write().forget(&token.id);
            return Err(error.into());
        }
        info!(token = token.id, subject = %token.subject, role = %token.role, "Token created.");
        Ok((token, secret))
    }

    /// Lets the holder of `presented` in, a token or a session, or says why not.
    pub fn verify(&self, presented: &str) -> Result<Grant, Denied> {
        if let Some(session) = self.verify_session(presented) {
            return session;
        }
        let (id, secret) = Secret::split(presented).ok_or(Denied::Malformed)?;
        let token = self.read().get(id).cloned();
        let stored = token.as_ref().map_or(Digest::NONE, |token| token.digest);
        match token {
            Some(token) if stored.matches(&Digest::of(secret)) => self.current(token),
            _ => Err(Denied::Unknown),
        }
    }

    /// Whether a grant given earlier still stands: for streams, which outlive the request that opened them.
    pub fn still_valid(&self, grant: &Grant) -> bool {
        let token = self.read().get(grant.id()).cloned();
        token.is_some_and(|token| self.current(token).is_ok()) && self.session_lives(grant)
    }

    /// All tokens, in order of id.
    pub fn list(&self) -> Vec<Arc<Token>> {
        self.read().all().cloned().collect()
    }

    /// Revokes a token; at once for this process, and for others when the news reaches them. Revoking it again is fine.
    pub async fn revoke(&self, id: &str) -> Result<(), AccessError> {
        if Secret::split(&format!("nst_{id}_x")).is_none()
            || self.store.get(&token_cache::key(id)).await?.is_none()
        {
            let known_before = self.read().was_revoked(id);
            return if known_before { Ok(()) } else { Err(AccessError::NoSuchToken { id: id.to_owned() }) };
        }
        self.store.commit(Commit::new().delete(token_cache::key(id))).await?;
        self.write().revoke(id);
        info!(token = id, "Token revoked.");
        Ok(())
    }

    /// Revokes tokens after a restore: all but the local admin need a new one. Returns how many were revoked.
    pub async fn revoke_all_but_local_admin(&self) -> Result<usize, AccessError> {
        let doomed = stored(&*self.store).await?;
        let doomed = doomed.iter().filter(|entry| !token_cache::survives_restore(&entry.key, &entry.value));
        let (tokens, sessions): (Vec<_>, Vec<_>) =
            doomed.partition(|entry| token_cache::is_token(&entry.key));
        for some in sessions.chunks(MAX_WRITES) {
            let commit = some.iter().fold(Commit::new(), |commit, entry| commit.delete(entry.key.clone()));
            self.store.commit(commit).await?;
        }
        let id = |entry: &&Entry| {
            Some(std::str::from_utf8(entry.key.strip_prefix(token_cache::PREFIX)?).ok()?.to_owned())
        };
        let doomed: Vec<String> = tokens.iter().filter_map(id).collect();
        for some in doomed.chunks(MAX_WRITES) {
            let commit = some.iter().fold(Commit::new(), |commit, id| commit.delete(token_cache::key(id)));
            self.store.commit(commit).await?;
            let mut known = self.write();
            for id in some {
                known.revoke(id);
            }
        }
        info!(revoked = doomed.len(), "All tokens but the local admin's are revoked.");
        Ok(doomed.len())
    }

    fn current(&self, token: Arc<Token>) -> Result<Grant, Denied> {
        match token.expires {
            Some(at) if at <= self.clock.wall() => Err(Denied::Expired { at }),
            _ => Ok(Grant::new(token)),
        }
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, TokenCache> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, TokenCache> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Learns everything that is stored, and how to hear of what changes from then on.
async fn load(store: &dyn Store, known: &RwLock<TokenCache>) -> Result<Watch, StoreError> {
    let watch = store.watch(token_cache::ACCESS).await?;
    let entries = stored(store).await?;
    known.write().unwrap_or_else(PoisonError::into_inner).replace(&entries);
    Ok(watch)
}

async fn stored(store: &dyn Store) -> Result<Vec<Entry>, StoreError> {
    all(&*store.snapshot().await?).await
}

async fn all(snapshot: &dyn Snapshot) -> Result<Vec<Entry>, StoreError> {
    let mut entries: Vec<Entry> = Vec::new();
    loop {
        let after = entries.last().map(|entry| entry.key.clone());
        let page = snapshot.range(token_cache::ACCESS, after.as_deref(), 1000).await?;
        if page.is_empty() {
            return Ok(entries);
        }
        entries.extend(page);
    }
}

async fn follow(
    store: Arc<dyn Store>,
    known: Arc<RwLock<TokenCache>>,
    mut watch: Option<Watch>,
    stop: CancellationToken,
) {
    let news = async {
        loop {
            let item = match &mut watch {
                Some(watch) => watch.next().await,
                None => None,
            };
            match item {
                Some(WatchItem::Changed { writes, .. }) => {
                    known.write().unwrap_or_else(PoisonError::into_inner).apply(&writes);
                }
                Some(WatchItem::Lost) | None => watch = Some(load_again(&*store, &known).await),
            }
        }
    };
    stop.run_until_cancelled(news).await;
}

/// Tries until it works: a store that failed is opened again by its owner.
async fn load_again(store: &dyn Store, known: &RwLock<TokenCache>) -> Watch {
    let mut pause = Duration::from_millis(200);
    loop {
        pause_for(store, pause).await;
        match load(store, known).await {
            Ok(watch) => return watch,
            Err(error) => warn!(%error, retry_in = ?pause, "Tokens cannot be read; those known stay valid."),
        }
        pause = (pause * 2).min(Duration::from_secs(30));
    }
}

#[cfg(test)]
mod tests;
