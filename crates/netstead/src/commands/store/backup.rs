//! `netstead store backup`

use std::{
    io::{Seek as _, Write as _},
    path::Path,
};

use anyhow::Context as _;
use futures::StreamExt as _;
use netstead_client::ClientError;
use netstead_ledger::{
    backup::{self, BackupError, OnDamage},
    damage::advice,
};
use netstead_model::SystemClock;
use netstead_store::StoreError;

use crate::{
    cli::{Global, admin::Backup},
    commands::{Context, say},
    failure::Failure,
    loaded_config::LoadedConfig,
    node,
    progress::Progress,
    store_location::{StoreLocation, with_server_hint},
};

/// Hint for a store in which more than history is damaged.
const RESTORE: &str = "restore the newest whole backup into an empty directory with `netstead store restore`; `backups` in \
                       the data directory has one of each day";

pub(super) async fn backup_remote(context: &Context, args: &Backup) -> anyhow::Result<()> {
    let mut target = BackupFile::create(&args.file)?;
    let mut chunks = Box::pin(context.client.backup(args.leave_out_damaged).await.map_err(unread)?);
    let progress = Progress::bytes("backed up");
    let mut bytes = 0;
    while let Some(chunk) = chunks.next().await {
        let chunk = match chunk {
            Ok(chunk) => chunk,
            Err(error) => {
                progress.clear();
                // By now the server knows what is wrong, and can say it before it begins.
                return Err(match context.client.backup(args.leave_out_damaged).await {
                    Err(known) => unread(known),
                    Ok(_) => error.into(),
                });
            }
        };
        target.fresh.write_all(&chunk).context("cannot write the backup")?;
        bytes += chunk.len();
        progress.at(bytes);
    }
    progress.clear();
    target.finish().await
}

/// A server whose store cannot be read has nothing to send; what its machine has can still be had.
fn unread(error: ClientError) -> anyhow::Error {
    let ClientError::Unavailable { .. } = &error else { return error.into() };
    let hint = "if the other nodes are lost for good, stop this server; `netstead store backup --local --stale` on its \
                machine takes its own copy";
    Failure::new(error.to_string()).hint(hint).into()
}

pub(super) async fn backup_local(global: &Global, args: &Backup) -> anyhow::Result<()> {
    let place = LoadedConfig::read(global.config.as_deref())?.store(global);
    if let (StoreLocation::Local(dir), true) = (&place, args.leave_out_damaged) {
        return salvage(dir, args).await;
    }
    let store = place.open_existing().await.map_err(with_server_hint)?;
    let target = BackupFile::create(&args.file)?;
    let mut file = tokio::fs::File::from_std(target.fresh.reopen().context("cannot write the backup")?);
    let on_damage = if args.leave_out_damaged { OnDamage::LeaveOutHistory } else { OnDamage::Fail };
    let written = write_backup(&*store, global.stale, on_damage, &mut file).await;
    let written = written.map_err(|error| with_damage_hint(error, &*store));
    store.close().await;
    written?;
    target.finish().await
}

/// Backs up what can be read of a local store, which need not be fit to be served.
async fn salvage(dir: &Path, args: &Backup) -> anyhow::Result<()> {
    let reader = StoreLocation::read_local(dir).await.map_err(with_server_hint)?;
    node::check_format(reader.snapshot()).await?;
    let target = BackupFile::create(&args.file)?;
    let mut file = tokio::fs::File::from_std(target.fresh.reopen().context("cannot write the backup")?);
    let written =
        backup::write_snapshot(reader.snapshot(), &SystemClock, &mut file, OnDamage::LeaveOutHistory).await;
    drop(reader);
    written.map_err(|error| match &error {
        BackupError::Damaged { .. } => Failure::new(error.to_string()).hint(RESTORE).into(),
        _ => anyhow::Error::from(error),
    })?;
    target.finish().await
}

/// A backup that met damage says how to go on.
fn with_damage_hint(error: anyhow::Error, store: &dyn netstead_store::Store) -> anyhow::Error {
    match error.downcast_ref() {
        Some(BackupError::Damaged { damage, .. }) => {
            Failure::new(error.to_string()).hint(advice(store, damage)).into()
        }
        _ => error,
    }
}

async fn write_backup(
    store: &dyn netstead_store::Store,
    stale: bool,
    on_damage: OnDamage,
    out: &mut tokio::fs::File,
) -> anyhow::Result<()> {
    // All that is left may be this one copy.
    let snapshot = match if stale { store.own_snapshot().await } else { store.snapshot().await } {
        Err(error @ StoreError::Unavailable { .. }) if store.membership().is_some() => {
            let hint = "if the other nodes are lost for good, `--stale` takes this node's own copy";
            return Err(Failure::new(error.to_string()).hint(hint).into());
        }
        snapshot => snapshot?,
    };
    node::check_format(&*snapshot).await?;
    backup::write_snapshot(&*snapshot, &SystemClock, out, on_damage).await?;
    Ok(())
}

/// A backup while it is written: under another name until it is whole and found sound.
struct BackupFile<'a> {
    /// Where it goes in the end; stdout if nowhere.
    file: Option<&'a Path>,
    fresh: tempfile::NamedTempFile,
}

impl<'a> BackupFile<'a> {
    fn create(file: &'a Path) -> anyhow::Result<Self> {
        if file == Path::new("-") {
            let fresh = tempfile::NamedTempFile::new().context("cannot keep the backup for stdout")?;
            return Ok(Self { file: None, fresh });
        }
        if file.exists() {
            let message = format!("{} exists already", file.display());
            return Err(Failure::new(message).hint("a backup never replaces a file: name a new one").into());
        }
        let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let fresh = tempfile::NamedTempFile::new_in(dir)
            .with_context(|| format!("cannot write to {}", dir.display()))?;
        Ok(Self { file: Some(file), fresh })
    }

    async fn finish(mut self) -> anyhow::Result<()> {
        self.fresh.as_file().sync_all().context("cannot write the backup")?;
        let summary = backup::verify(self.fresh.path()).await.context("the backup is not sound")?;
        let Some(file) = self.file else {
            self.fresh.rewind().context("cannot read the backup")?;
            std::io::copy(&mut self.fresh, &mut std::io::stdout().lock())
                .context("cannot write to stdout")?;
            return Ok(());
        };
        self.fresh.persist_noclobber(file).with_context(|| format!("cannot write {}", file.display()))?;
        say!("{} keys of ledger {:08x} are in {}", summary.entries, summary.ledger, file.display());
        for left_out in &summary.left_out {
            say!("left out: {left_out}");
        }
        Ok(())
    }
}
