//! What the writer does when writing fails.
//!
//! fjall refuses every write after one that failed, until it is opened again. What is on the disk is unknown
//! until then, so nobody may read the old database either: it could deny a commit that is found later.

use std::{io, thread, time::Duration};

use tracing::{error, warn};

use super::{engine::Engine, journals, trouble::Trouble, writer::Writer};
use crate::Health;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How long those who ask in the meantime wait for their answer.
const SLICE: Duration = Duration::from_millis(50);

impl Writer {
    /// Takes the database away from everybody and says why. To be called before anyone is answered that its
    /// commit is unknown, because the next thing they do is read.
    pub(super) fn break_off(&mut self, trouble: &Trouble) -> String {
        let reason = self.cause(trouble);
        error!(reason, ?trouble, "The store failed and is opened again.");
        self.shared.fail(reason.clone());
        self.broken = self.shared.take_back();
        reason
    }

    /// Opens the database again, for as long as it takes. `false` when the store is to be closed instead.
    pub(super) fn heal(&mut self) -> bool {
        if let Some(engine) = self.broken.take() {
            engine.close();
        }
        let mut pause = FIRST_PAUSE;
        while self.rest(pause) {
            match self.reopen() {
                Ok(()) => {
                    warn!(dir = %self.dir.path().display(), "The store works again.");
                    self.shared.set_health(Health::Ready);
                    return true;
                }
                Err(trouble) => self.shared.fail(self.cause(&trouble)),
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        false
    }

    fn rest(&self, pause: Duration) -> bool {
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

    fn reopen(&mut self) -> Result<(), Trouble> {
        let database = self.dir.database();
        let needed = journals::size(&database)?;
        let copied = self.dir.probe().and_then(|()| journals::replace_by_copies(&database));
        copied.map_err(|error| match error.kind() {
            io::ErrorKind::StorageFull => Trouble::NoRoom { needed },
            _ => Trouble::Io(error),
        })?;
        let engine = Engine::open(&database)?;
        match self.accept(&engine) {
            Ok(()) => {
                self.shared.lend(engine);
                Ok(())
            }
            Err(trouble) => {
                engine.close();
                Err(trouble)
            }
        }
    }

    /// Takes `engine` for the continuation of the one that failed if it has every commit that was
    /// acknowledged, and if a durable write works.
    fn accept(&mut self, engine: &Engine) -> Result<(), Trouble> {
        let (found, durable) = (engine.revision()?, self.shared.durable());
        if found < durable {
            return Err(Trouble::Damaged(format!(
                "{} ends at commit {found}, and commit {durable} was acknowledged; restore a backup",
                self.dir.path().display()
            )));
        }
        self.numbered = self.numbered.max(found) + 1;
        engine.write(Vec::new(), self.numbered)?;
        if found > durable {
            self.shared.watchers.lose_all(); // Commits that were answered as unknown have landed after all.
        }
        self.shared.set_durable(self.numbered);
        Ok(())
    }

    /// Says why writing does not work. Where fjall does not tell, a write of our own may.
    fn cause(&self, trouble: &Trouble) -> String {
        let seen = if trouble.hides_its_cause() { self.dir.probe().err() } else { None };
        seen.map_or_else(
            || trouble.reason(self.dir.path()),
            |error| Trouble::Io(error).reason(self.dir.path()),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};

    use super::{
        super::{data_dir::DataDir, housekeeper::Housekeeper, shared::Shared},
        *,
    };
    use crate::WatchItem;

    /// A writer that knows `durable` to be on the disk and gave out numbers up to `numbered`, and a database
    /// in which `found` is the last commit.
    fn writer(dir: &std::path::Path, durable: u64, numbered: u64, found: u64) -> (Writer, Engine) {
        let dir = DataDir::take(dir).unwrap();
        Engine::create(&dir).unwrap();
        let engine = Engine::open(&dir.database()).unwrap();
        engine.write(Vec::new(), found).unwrap();
        let shared = Arc::new(Shared::closed(dir.path(), durable));
        let housekeeper = Housekeeper::start(Arc::clone(&shared), durable).unwrap();
        let (_, requests) = mpsc::channel();
        (Writer { shared, dir, requests, housekeeper, numbered, broken: None }, engine)
    }

    #[tokio::test]
    async fn a_commit_that_landed_after_all_is_told_to_watchers_as_lost() {
        let dir = tempfile::tempdir().unwrap();
        let (mut writer, engine) = writer(dir.path(), 5, 7, 6);
        let mut watch = writer.shared.watchers.add(b"");
        writer.accept(&engine).unwrap();
        assert_eq!(watch.next().await, Some(WatchItem::Lost));
        assert_eq!((writer.numbered, writer.shared.durable()), (8, 8), "no number is given twice");
        assert_eq!(engine.revision().unwrap(), 8, "a durable write worked");
    }

    #[tokio::test]
    async fn watchers_go_on_when_nothing_landed() {
        let dir = tempfile::tempdir().unwrap();
        let (mut writer, engine) = writer(dir.path(), 5, 7, 5);
        let mut watch = writer.shared.watchers.add(b"");
        writer.accept(&engine).unwrap();
        writer.shared.watchers.end_all();
        assert_eq!(watch.next().await, None);
        assert_eq!(writer.numbered, 8);
    }

    #[test]
    fn a_database_without_an_acknowledged_commit_is_not_accepted() {
        let dir = tempfile::tempdir().unwrap();
        let (mut writer, engine) = writer(dir.path(), 5, 7, 4);
        let trouble = writer.accept(&engine).unwrap_err();
        let reason = trouble.reason(dir.path());
        assert!(reason.contains("ends at commit 4, and commit 5 was acknowledged"), "{reason}");
    }
}
