//! A daily backup beside a local store, against a wrong `rm` or a disk that fails.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use jiff::civil::Date;
use netstead_ledger::backup;
use netstead_model::{Clock, SystemClock};
use netstead_store::Store;
use netstead_wire::files;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

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
}

impl<'a> DailyBackup<'a> {
    /// Backups of `store`, which lies in `data_dir`.
    pub(crate) fn new(store: &'a dyn Store, data_dir: &Path, keep: usize) -> Self {
        Self { store, dir: data_dir.join("backups"), keep }
    }

    pub(crate) async fn run(&self, stop: &CancellationToken) {
        // Those of an older version, or a directory that a person made.
        if let Err(error) = files::close_to_others(&self.dir) {
            warn!(dir = %self.dir.display(), %error, "Others may read the backups.");
        }
        let mut pause = FIRST;
        while stop.run_until_cancelled(sleep(pause)).await.is_some() {
            pause = LOOK;
            let today = SystemClock.wall().to_zoned(jiff::tz::TimeZone::UTC).date();
            // An end in the middle leaves nothing behind but what the next day removes.
            match stop.run_until_cancelled(self.back_up(today)).await {
                Some(Ok(Some(file))) => info!(file = %file.display(), "The backup of the day is written."),
                Some(Ok(None)) | None => {}
                Some(Err(error)) => {
                    warn!(error = format!("{error:#}"), "The backup of the day could not be written.");
                }
            }
        }
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
            // Nothing but our own: somebody may keep other files here, as one they want to have for longer.
            let day = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX));
            let day = day.and_then(|day| day.parse::<Date>().ok());
            days.extend(day.map(|day| (day <= today, day, entry.path())));
        }
        days.sort();
        let old = days.len().saturating_sub(self.keep.max(1));
        days.iter().take(old).try_for_each(|(_, _, path)| std::fs::remove_file(path))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::ToSpan as _;
    use netstead_ledger::{Ledger, Options};
    use netstead_store::MemoryStore;

    use super::*;

    #[tokio::test]
    async fn the_last_seven_days_are_kept_and_nothing_of_others_goes() {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(MemoryStore::new());
        let daily = DailyBackup::new(&*store, dir.path(), 7);
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
        let daily = DailyBackup::new(&*store, dir.path(), 3);
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
}
