//! A daily backup beside a local store, against a wrong `rm` or a disk that fails.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use jiff::{Timestamp, civil::Date};
use netstead_api::DailyBackups;
use netstead_ledger::{
    backup::{self, BackupError},
    damage::advice,
};
use netstead_model::{Clock, SystemClock};
use netstead_store::Store;
use netstead_wire::files;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

/// A start is busy enough.
const FIRST: Duration = Duration::from_mins(1);
/// How often it is looked whether a new day has begun, or a backup that failed works now.
const LOOK: Duration = Duration::from_mins(15);

/// How a backup is called is its day, so that they sort by age.
const PREFIX: &str = "netstead-";
const SUFFIX: &str = ".backup";

pub(crate) struct DailyBackup<'a> {
    store: &'a dyn Store,
    dir: PathBuf,
    /// How many are kept.
    keep: usize,
    /// Where it is shown how they stand.
    state: DailyBackups,
}

impl<'a> DailyBackup<'a> {
    /// Backups of `store`, which lies in `data_dir`.
    pub(crate) fn new(store: &'a dyn Store, data_dir: &Path, keep: usize, state: &DailyBackups) -> Self {
        Self { store, dir: data_dir.join("backups"), keep, state: state.clone() }
    }

    pub(crate) async fn run(&self, stop: &CancellationToken) {
        // Those of an older version, or a directory that a person made.
        if let Err(error) = files::close_to_others(&self.dir) {
            warn!(dir = %self.dir.display(), %error, "Others may read the backups.");
        }
        let mut pause = FIRST;
        if let Some(written) = self.newest() {
            self.state.succeeded(written);
        }
        while stop.run_until_cancelled(sleep(pause)).await.is_some() {
            pause = LOOK;
            // An end in the middle leaves nothing behind but what the next day removes.
            let _ = stop.run_until_cancelled(self.attempt()).await;
        }
    }

    /// Writes the backup of the day unless it is there, and shows how that went.
    async fn attempt(&self) {
        let today = SystemClock.wall().to_zoned(jiff::tz::TimeZone::UTC).date();
        match self.back_up(today).await {
            Ok(Some(file)) => {
                self.state.succeeded(SystemClock.wall());
                info!(file = %file.display(), "The backup of the day is written.");
            }
            Ok(None) => {
                if let Some(written) = self.newest() {
                    self.state.succeeded(written);
                }
            }
            Err(error) => {
                let reason = format!("{error:#}");
                error!(error = reason, "The backup of the day could not be written.");
                self.state.failed(SystemClock.wall(), reason, self.hint(&error));
            }
        }
    }

    /// The advice for a backup that failed with `error`.
    fn hint(&self, error: &anyhow::Error) -> String {
        match error.downcast_ref() {
            Some(BackupError::Damaged { damage, .. }) => advice(self.store, damage).to_owned(),
            _ => format!("look at {} and its disk; it is tried again every 15 minutes", self.dir.display()),
        }
    }

    /// When the newest one was written.
    fn newest(&self) -> Option<Timestamp> {
        let entries = std::fs::read_dir(&self.dir).ok()?.filter_map(Result::ok);
        let ours =
            entries.filter(|entry| entry.file_name().to_str().is_some_and(|name| day_of(name).is_some()));
        let written = ours.filter_map(|entry| entry.metadata().ok()?.modified().ok());
        written.filter_map(|time| Timestamp::try_from(time).ok()).max()
    }

    /// Writes the backup of `today` unless it is there, and removes those that are too many.
    async fn back_up(&self, today: Date) -> anyhow::Result<Option<PathBuf>> {
        let file = self.dir.join(format!("{PREFIX}{today}{SUFFIX}"));
        if tokio::fs::try_exists(&file).await? {
            return Ok(None);
        }
        files::create_private_dir(&self.dir)?;
        let fresh = tempfile::Builder::new().prefix(".fresh").tempfile_in(&self.dir)?;
        let mut out = tokio::fs::File::from_std(fresh.reopen()?);
        backup::write(self.store, &SystemClock, &mut out).await?;
        out.sync_all().await?;
        backup::verify(fresh.path()).await.context("it is not sound")?;
        fresh.persist(&file)?;
        self.remove_old(today)?;
        Ok(Some(file))
    }

    /// Removes those that are too many: first those of days to come, which a clock left that was ahead, then the oldest.
    /// That of `today`, which was just written, stays.
    fn remove_old(&self, today: Date) -> io::Result<()> {
        let mut days = Vec::new();
        for entry in std::fs::read_dir(&self.dir)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            // Our own files only: a person may keep other files here, as one that is wanted for longer.
            days.extend(day_of(name).map(|day| (day <= today, day, entry.path())));
        }
        days.sort();
        let old = days.len().saturating_sub(self.keep.max(1));
        days.iter().take(old).try_for_each(|(_, _, path)| std::fs::remove_file(path))
    }
}

/// The day of the backup that a file is, if it is one of ours.
fn day_of(name: &str) -> Option<Date> {
    name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::ToSpan as _;
    use netstead_ledger::{Caller, Command, Ledger, Options};
    use netstead_store::{FaultyStore, MemoryStore};

    use super::*;

    #[tokio::test]
    async fn the_last_seven_days_are_kept_and_nothing_of_others_goes() {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(MemoryStore::new());
        let daily = DailyBackup::new(&*store, dir.path(), 7, &DailyBackups::default());
        let first = jiff::civil::date(2026, 2, 25);
        assert!(daily.back_up(first).await.is_err(), "there is no ledger yet");
        let ledger = Ledger::open(store.clone(), SystemClock::shared(), Options::default()).await.unwrap();
        let backups = dir.path().join("backups");
        std::fs::write(backups.join("netstead-before-the-move.backup"), "mine").unwrap();
        for day in 0..10 {
            let today = first.checked_add(day.days()).unwrap();
            assert!(daily.back_up(today).await.unwrap().is_some());
            assert_eq!(daily.back_up(today).await.unwrap(), None, "one a day");
        }
        ledger.close().await;
        let mut names: Vec<_> = std::fs::read_dir(&backups)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names.len(), 8, "{names:?}");
        assert_eq!(names[0], "netstead-2026-02-28.backup");
        assert_eq!(names[6], "netstead-2026-03-06.backup");
        assert_eq!(names[7], "netstead-before-the-move.backup");
        let summary = backup::verify(&backups.join(&names[6])).await.unwrap();
        assert!(summary.entries > 0);
    }

    #[tokio::test]
    async fn what_was_just_written_stays_though_a_clock_was_ahead() {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(MemoryStore::new());
        let ledger = Ledger::open(store.clone(), SystemClock::shared(), Options::default()).await.unwrap();
        let daily = DailyBackup::new(&*store, dir.path(), 3, &DailyBackups::default());
        let names = || {
            let entries = std::fs::read_dir(dir.path().join("backups")).unwrap();
            let mut names: Vec<_> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        for day in 1..=3 {
            daily.back_up(jiff::civil::date(2031, 5, day)).await.unwrap();
        }
        for day in 7..=8 {
            assert!(daily.back_up(jiff::civil::date(2026, 3, day)).await.unwrap().unwrap().exists());
        }
        assert_eq!(
            names(),
            ["netstead-2026-03-07.backup", "netstead-2026-03-08.backup", "netstead-2031-05-03.backup"]
        );
        for day in 9..=10 {
            daily.back_up(jiff::civil::date(2026, 3, day)).await.unwrap();
        }
        assert_eq!(
            names(),
            ["netstead-2026-03-08.backup", "netstead-2026-03-09.backup", "netstead-2026-03-10.backup"]
        );
        ledger.close().await;
    }

    #[tokio::test]
    async fn one_that_fails_is_shown_until_one_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
        let ledger = Ledger::open(store.clone(), SystemClock::shared(), Options::default()).await.unwrap();
        ledger.submit(Caller::new("ann"), pool(), Duration::from_secs(5)).await.unwrap();
        store.damage_keys("ledger/event/"..="ledger/event/~");
        let state = DailyBackups::default();
        let daily = DailyBackup::new(&*store, dir.path(), 3, &state);
        daily.attempt().await;
        let failure = state.state().failure.expect("it should have failed");
        let expected = "the store is damaged: events cannot be read in full: the test damaged";
        assert!(failure.reason.starts_with(expected), "{}", failure.reason);
        assert!(failure.hint.contains("--leave-out-damaged"), "{}", failure.hint);
        assert_eq!(state.state().last, None);
        store.mend_keys();
        daily.attempt().await;
        let written = state.state();
        assert!(written.failure.is_none() && written.last.is_some(), "{written:?}");
        assert!(daily.newest().is_some(), "a restart knows of it");
        ledger.close().await;
    }

    fn pool() -> Command {
        let mut spec = netstead_model::PoolSpec::new("lan".parse().unwrap(), netstead_model::Family::Ipv4);
        spec.ranges = vec!["10.0.0.1-10.0.0.9".parse().unwrap()];
        Command::CreatePool(spec.into())
    }
}
