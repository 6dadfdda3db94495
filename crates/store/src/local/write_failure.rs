//! Recovers from a write that failed: the writer takes the database away from readers and opens it again.
//!
//! After a failed flush it is unknown what is on the disk, and fjall refuses every further write. Readers must not use the old
//! database meanwhile: it could lack a commit that is found later.
//!
//! 1. A flush fails. The database is withdrawn; health says why (`break_off`).
//! 2. The commits of the group are answered `Unknown`. Their callers read next, and must not see the old database.
//! 3. The log and the tables are read again, with growing pauses, until that works (`reopen_with_retries`).
//! 4. The database is accepted if it has every acknowledged commit and a durable write works (`accept`). Then it is published.

use std::{io, mem, thread, time::Duration};

use tracing::{error, warn};

use super::{database_error::DatabaseError, engine::Engine, journals, log::Log, recovery, writer::Writer};
use crate::{Damage, Health, StoreError};

/// Bytes of the test write that finds out what is wrong with the disk.
const PROBE: u64 = 64 << 10;

/// Room the database takes besides what the log holds, to be opened and to write down how far it is.
const ROOM: u64 = 1 << 20;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How long callers wait for an answer in the meantime.
const SLICE: Duration = Duration::from_millis(50);

impl Writer {
    /// Withdraws the database and returns the reason. Call it before callers are answered that their commit is unknown: the
    /// next thing they do is read.
    pub(super) fn break_off(&mut self, trouble: &DatabaseError) -> String {
        let reason = self.cause(trouble);
        error!(reason, ?trouble, "The store failed and is opened again.");
        self.shared.fail(reason.clone());
        self.applier.abandon();
        self.broken = self.shared.withdraw_engine();
        self.unexplained = trouble.hides_its_cause();
        reason
    }

    /// Looks for damage where fjall failed in its background and keeps the cause to itself: merging reads tables that
    /// no other reader may have read for long.
    fn explain(&mut self) {
        if !mem::take(&mut self.unexplained) || self.damaged.is_some() {
            return;
        }
        let found = Engine::find_damage(&self.dir.database()).filter(DatabaseError::is_damage);
        let Some(trouble) = found else { return };
        let place = trouble.place().to_vec();
        let StoreError::Damaged { reason } = trouble.into_read_error(self.dir.path()) else { return };
        self.shared.damage.note(Damage::new(&place, &reason));
        self.damaged = Some(format!("it is damaged, so that its files cannot be merged any more: {reason}"));
    }

    /// Opens the database again, for as long as it takes. `false` when the store is to be closed instead.
    pub(super) fn reopen_with_retries(&mut self) -> bool {
        if let Some(engine) = self.broken.take() {
            engine.close();
        }
        self.explain();
        if let Some(reason) = &self.damaged {
            self.shared.fail(reason.clone());
        }
        let mut pause = if self.damaged.is_some() { LONGEST_PAUSE } else { FIRST_PAUSE };
        while self.pause_before_retry(pause) {
            match self.reopen() {
                Ok(()) => {
                    warn!(dir = %self.dir.path().display(), "The store works again.");
                    self.shared.set_health(Health::Ready);
                    return true;
                }
                Err(trouble) => {
                    let reason = match &self.damaged {
                        Some(reason) if trouble.hides_its_cause() => reason.clone(),
                        _ => self.cause(&trouble),
                    };
                    self.shared.fail(reason);
                }
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        false
    }

    fn pause_before_retry(&self, pause: Duration) -> bool {
        let mut rested = Duration::ZERO;
        while rested < pause {
            if !self.turn_away() {
                return false;
            }
            thread::sleep(SLICE);
            rested += SLICE;
        }
        true
    }

    fn reopen(&mut self) -> Result<(), DatabaseError> {
        let engine = if self.log.is_some() { self.reopen_with_log() } else { self.reopen_with_journals() }?;
        self.shared.publish_engine(engine);
        Ok(())
    }

    fn reopen_with_log(&mut self) -> Result<Engine, DatabaseError> {
        let contents = Log::read(self.dir.path())?;
        let Some(contents) = contents else {
            return Err(DatabaseError::Damaged(format!("{} is empty", Log::path(self.dir.path()).display())));
        };
        // What the log holds is written to tables, by way of a journal.
        let needed = 2 * contents.bytes() + ROOM;
        self.dir.probe(needed).map_err(|error| no_room(error, needed))?;
        let engine = recovery::replay(&self.dir, &contents, self.shared.durable())?;
        let former = contents.former();
        self.accept(engine, |writer, engine, found| {
            let mut log = Log::begin(writer.dir.path(), found, former)?;
            log.prepare(&[]);
            log.commit(writer.numbered, found)?;
            engine.apply(&[], writer.numbered)?;
            writer.log = Some(log);
            writer.applier.resume(found);
            Ok(())
        })
    }

    fn reopen_with_journals(&mut self) -> Result<Engine, DatabaseError> {
        let database = self.dir.database();
        let needed = journals::size(&database)?;
        let copied = self.dir.probe(PROBE).and_then(|()| journals::replace_by_copies(&database));
        copied.map_err(|error| no_room(error, needed))?;
        let engine = Engine::open_with_journals(&database)?;
        self.accept(engine, |writer, engine, _| engine.write(&[], writer.numbered))
    }

    /// Takes `engine` for the continuation of the one that failed if it has every commit that was acknowledged, and if
    /// `write`, something durable with the next number, works.
    fn accept(
        &mut self,
        engine: Engine,
        write: impl FnOnce(&mut Self, &Engine, u64) -> Result<(), DatabaseError>,
    ) -> Result<Engine, DatabaseError> {
        let durable = self.shared.durable();
        let accepted = engine.revision().and_then(|found| {
            if found < durable {
                return Err(DatabaseError::CutShort { found, known: durable });
            }
            self.numbered = self.numbered.max(found) + 1;
            write(self, &engine, found)?;
            Ok(found)
        });
        match accepted {
            Ok(found) => {
                if found > durable {
                    self.shared.watchers.lose_all(); // Commits that were answered as unknown have landed after all.
                }
                self.shared.set_durable(self.numbered);
                self.shared.set_applied(self.numbered);
                Ok(engine)
            }
            Err(trouble) => {
                engine.close();
                Err(trouble)
            }
        }
    }

    /// Says why writing does not work. Where fjall does not tell, a write of our own may.
    fn cause(&self, trouble: &DatabaseError) -> String {
        let seen = if trouble.hides_its_cause() { self.dir.probe(PROBE).err() } else { None };
        seen.map_or_else(
            || trouble.advised(self.dir.path(), self.shared.kind()),
            |error| DatabaseError::Io(error).reason(self.dir.path()),
        )
    }
}

fn no_room(error: io::Error, needed: u64) -> DatabaseError {
    match error.kind() {
        io::ErrorKind::StorageFull => DatabaseError::NoRoom { needed },
        _ => DatabaseError::Io(error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};

    use super::{
        super::{
            applier::Applier,
            data_dir::DataDir,
            housekeeper::Housekeeper,
            recovery::Opened,
            shared_state::{DatabaseKind, LocalShared},
        },
        *,
    };
    use crate::WatchItem;

    /// A writer that knows `durable` to be on the disk and gave out numbers up to `numbered`, and a log or a journal in which
    /// `found` is the last commit.
    fn writer(dir: &std::path::Path, kind: DatabaseKind, durable: u64, numbered: u64, found: u64) -> Writer {
        let dir = DataDir::acquire(dir).unwrap();
        let Opened { engine, mut log, .. } = recovery::open(&dir, kind).unwrap();
        match &mut log {
            Some(log) => {
                log.prepare(&[(b"dk".to_vec(), Some(b"12345678value".to_vec()))]);
                log.commit(found, 0).unwrap();
            }
            None => engine.write(&[], found).unwrap(),
        }
        engine.close();
        let shared = Arc::new(LocalShared::closed(dir.path(), kind, durable));
        let housekeeper = Housekeeper::start(Arc::clone(&shared), durable).unwrap();
        let applier = Applier::start(Arc::clone(&shared), 0).unwrap();
        let (_, requests) = mpsc::channel();
        Writer {
            shared,
            dir,
            requests,
            housekeeper,
            applier,
            log,
            numbered,
            busy: false,
            unseen: 0,
            broken: None,
            damaged: None,
            unexplained: false,
        }
    }

    fn revision(writer: &Writer) -> u64 {
        writer.shared.with_engine(|engine, _| engine.revision()).unwrap().unwrap()
    }

    const KINDS: [DatabaseKind; 2] = [DatabaseKind::Own, DatabaseKind::Node];

    #[tokio::test]
    async fn a_commit_that_landed_after_all_is_told_to_watchers_as_lost() {
        for kind in KINDS {
            let dir = tempfile::tempdir().unwrap();
            let mut writer = writer(dir.path(), kind, 5, 7, 6);
            let mut watch = writer.shared.watchers.add(b"");
            writer.reopen().unwrap();
            assert_eq!(watch.next().await, Some(WatchItem::Lost));
            assert_eq!((writer.numbered, writer.shared.durable()), (8, 8), "no number is given twice");
            assert_eq!(revision(&writer), 8, "a durable write worked");
            let contents =
                Log::read(dir.path()).unwrap().map(|contents| (contents.checkpoint, contents.last));
            assert_eq!(contents, (kind == DatabaseKind::Own).then_some((6, 8)));
        }
    }

    #[tokio::test]
    async fn watchers_go_on_when_nothing_landed() {
        for kind in KINDS {
            let dir = tempfile::tempdir().unwrap();
            let mut writer = writer(dir.path(), kind, 5, 7, 5);
            let mut watch = writer.shared.watchers.add(b"");
            writer.reopen().unwrap();
            writer.shared.watchers.end_all();
            assert_eq!(watch.next().await, None);
            assert_eq!(writer.numbered, 8);
        }
    }

    #[test]
    fn a_store_without_an_acknowledged_commit_is_not_accepted() {
        for kind in KINDS {
            let dir = tempfile::tempdir().unwrap();
            let mut writer = writer(dir.path(), kind, 5, 7, 4);
            let trouble = writer.reopen().unwrap_err();
            let reason = trouble.reason(dir.path());
            assert!(reason.contains("ends at commit 4, and commit 5 was"), "{reason}");
        }
    }
}
