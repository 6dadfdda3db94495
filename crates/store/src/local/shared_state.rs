//! The state that the writer thread, the readers and the housekeeper share.

use std::{
    path::{Path, PathBuf},
    sync::{
        PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::sync::watch;

use super::{database_error::DatabaseError, engine::Engine, high_water_mark::HighWaterMark};
use crate::{Damage, DamageLog, Health, StoreError, watch::Watchers};

/// The owner of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DatabaseKind {
    /// A store of its own: a log makes it durable.
    Own,
    /// A node of a cluster: fjall's journal makes it durable.
    #[cfg_attr(not(feature = "raft"), allow(dead_code, reason = "there are no clusters without it"))]
    Node,
}

pub(super) struct LocalShared {
    path: PathBuf,
    kind: DatabaseKind,
    /// The open database, lent to readers for the length of one call. Only the writer thread puts one in or
    /// takes it out; what was read from another opening never mixes with this one.
    open: RwLock<Option<(Engine, Opening)>>,
    openings: AtomicU64,
    health: watch::Sender<Health>,
    pub(super) watchers: Watchers,
    /// The last revision that is on the disk for sure. Every commit acknowledged is at or below it.
    durable: AtomicU64,
    /// The last revision that is in the database, where it can be read. Never above `durable`.
    applied: watch::Sender<u64>,
    pub(super) progress: Progress,
    /// Damage that reads found, from this opening of the database or an earlier one.
    pub(super) damage: DamageLog,
}

/// Which opening of the database something belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Opening(u64);

impl LocalShared {
    pub(super) fn kind(&self) -> DatabaseKind {
        self.kind
    }

    /// Without a database yet; `durable` is the last commit it has.
    pub(super) fn closed(path: &Path, kind: DatabaseKind, durable: u64) -> Self {
        Self {
            path: path.to_path_buf(),
            kind,
            open: RwLock::new(None),
            openings: AtomicU64::new(0),
            health: watch::channel(Health::Ready).0,
            watchers: Watchers::default(),
            durable: AtomicU64::new(durable),
            applied: watch::channel(durable).0,
            progress: Progress::default(),
            damage: DamageLog::default(),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The high-water mark now.
    pub(super) fn high_water_mark(&self, closed: bool) -> HighWaterMark {
        HighWaterMark { revision: self.durable(), closed, log: self.kind == DatabaseKind::Own }
    }

    /// Lends `engine` to readers.
    pub(super) fn publish_engine(&self, engine: Engine) {
        let opening = Opening(self.openings.fetch_add(1, Ordering::Relaxed));
        *self.open.write().unwrap_or_else(PoisonError::into_inner) = Some((engine, opening));
    }

    /// Takes the database away from all readers and waits for those that read right now.
    pub(super) fn withdraw_engine(&self) -> Option<Engine> {
        self.open.write().unwrap_or_else(PoisonError::into_inner).take().map(|(engine, _)| engine)
    }

    /// Calls `work` with the database, if it is open.
    pub(super) fn with_engine<T>(&self, work: impl FnOnce(&Engine, Opening) -> T) -> Option<T> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.as_ref().map(|(engine, opening)| work(engine, *opening))
    }

    /// As [`LocalShared::with_engine`], with the errors that a caller outside gets.
    pub(super) fn read<T>(
        &self,
        work: impl FnOnce(&Engine, Opening) -> Result<T, DatabaseError>,
    ) -> Result<T, StoreError> {
        let outcome = self.with_engine(work).ok_or_else(|| self.unavailable())?;
        outcome.map_err(|trouble| {
            let place = trouble.place().to_vec();
            let error = trouble.into_read_error(&self.path);
            if let StoreError::Damaged { reason } = &error {
                // A read of everything from its end knows no place, and says nothing new where one is known.
                if !place.is_empty() || self.damage.all().is_empty() {
                    self.damage.note(Damage::new(&place, reason));
                }
            }
            error
        })
    }

    pub(super) fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    pub(super) fn set_durable(&self, revision: u64) {
        self.durable.store(revision, Ordering::Release);
    }

    pub(super) fn applied(&self) -> u64 {
        *self.applied.borrow()
    }

    pub(super) fn set_applied(&self, revision: u64) {
        self.applied.send_replace(revision);
    }

    /// Waits until everything that is durable now can be read.
    pub(super) async fn settled(&self) -> Result<(), StoreError> {
        let durable = self.durable();
        if self.applied() >= durable {
            return Ok(());
        }
        let mut applied = self.applied.subscribe();
        while *applied.borrow_and_update() < durable {
            self.ready()?;
            if applied.changed().await.is_err() {
                return Err(self.unavailable());
            }
        }
        Ok(())
    }

    pub(super) fn health(&self) -> &watch::Sender<Health> {
        &self.health
    }

    pub(super) fn fail(&self, reason: String) {
        self.set_health(Health::Failed { reason });
        self.applied.send_modify(|_| {}); // Whoever waits for it looks at the health now.
    }

    /// Changes what health says; receivers wake only if it is something new.
    pub(super) fn set_health(&self, new: Health) {
        self.health.send_if_modified(|health| {
            let changed = *health != new;
            *health = new;
            changed
        });
    }

    /// An error unless the store is healthy.
    pub(super) fn ready(&self) -> Result<(), StoreError> {
        match *self.health.borrow() {
            Health::Ready => Ok(()),
            Health::Failed { .. } => Err(self.unavailable()),
        }
    }

    pub(super) fn unavailable(&self) -> StoreError {
        let reason = match &*self.health.borrow() {
            Health::Ready => "the store is being opened again".into(),
            Health::Failed { reason } => reason.clone(),
        };
        StoreError::Unavailable { reason }
    }
}

/// Which group of commits is being written: odd while one is, and never the same number twice.
#[derive(Debug, Default)]
pub(super) struct Progress(AtomicU64);

impl Progress {
    pub(super) fn begin(&self) {
        self.0.fetch_or(1, Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        let now = self.0.load(Ordering::Relaxed);
        self.0.store((now | 1) + 1, Ordering::Relaxed);
    }

    pub(super) fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
