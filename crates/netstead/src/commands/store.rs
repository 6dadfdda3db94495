//! `netstead store backup|restore|migrate|check`

mod backup;

use std::{
    cell::Cell,
    io::{Read as _, Write as _},
    path::Path,
};

use anyhow::Context as _;
use netstead_api::access::{is_token, survives_restore};
use netstead_client::{CheckOutput, CheckProblem};
use netstead_ledger::{
    backup::{BackupError, SoundBackup},
    check,
};
use netstead_model::SystemClock;

use self::backup::{backup_local, backup_remote};
use super::{Context, many, say};
use crate::{
    cli::{
        Format, Global,
        admin::{Check, Restore, Store},
    },
    failure::{Exit, Failure},
    loaded_config::LoadedConfig,
    node,
    output::{self, plain},
    store_location::{StoreLocation, with_server_hint},
};

/// Runs a command without a server: everything with `--local`, and a restore always. `None` if a server is to do it.
pub(crate) async fn directly(global: &Global, command: &Store) -> Option<anyhow::Result<Exit>> {
    match command {
        Store::Restore(args) => Some(restore(global, args).await.map(|()| Exit::Fine)),
        Store::Migrate(args) => Some(super::migrate::migrate(global, args).await.map(|()| Exit::Fine)),
        Store::Backup(args) if global.local => Some(backup_local(global, args).await.map(|()| Exit::Fine)),
        Store::Check(args) if global.local => Some(check_local(global, args).await),
        Store::Check(Check { repair: true }) => {
            let hint = "stop the server, then `netstead store check --repair --local`";
            Some(Err(Failure::new("a running server cannot be repaired under its feet").hint(hint).into()))
        }
        Store::Backup(_) | Store::Check(_) => None,
    }
}

/// Runs a command by the server.
pub(crate) async fn store(context: &Context, command: &Store) -> anyhow::Result<Exit> {
    match command {
        Store::Backup(args) => backup_remote(context, args).await.map(|()| Exit::Fine),
        Store::Check(_) => checked(&context.client.check().await?, context.format),
        Store::Restore(_) | Store::Migrate(_) => Ok(Exit::Error),
    }
}

async fn restore(global: &Global, args: &Restore) -> anyhow::Result<()> {
    let (path, _spool) = readable(&args.file)?;
    let settings = LoadedConfig::read(global.config.as_deref())?;
    let place = settings.store(global);
    if place == StoreLocation::Memory {
        return Err(
            Failure::new("a store in memory keeps nothing: name a directory with `--data-dir`").into()
        );
    }
    let refused = |error: BackupError| not_restored(error, &place, &args.file);
    // Nothing is made before the file is known to be sound.
    let backup = SoundBackup::read(&path, node::format()).await.map_err(refused)?;
    let (store, mark) = place.open_to_fill().await?;
    // Backups are older than the last revocation: those tokens must not come back.
    let (tokens, others) = (Cell::new(0_usize), Cell::new(0_usize));
    let keep = |key: &[u8], value: &[u8]| {
        let kept = survives_restore(key, value);
        let count = if is_token(key) { &tokens } else { &others };
        count.set(count.get() + usize::from(!kept));
        kept
    };
    let restored = backup.restore(&*store, &SystemClock, keep).await;
    store.close().await;
    if let Some(mark) = mark {
        match &restored {
            Ok(_) | Err(BackupError::Unsound { .. }) => mark.clear(),
            Err(BackupError::NotEmpty | BackupError::HalfMoved) => mark.undo(),
            // It begins anew with the same command.
            Err(_) => {}
        }
    }
    let summary = restored.map_err(refused)?;
    let into = match &place {
        StoreLocation::Local(dir) => dir.display().to_string(),
        place => place.to_string(),
    };
    let left_out = (tokens.get() + others.get()) as u64;
    let kept = summary.entries.saturating_sub(left_out);
    say!("{kept} keys as of {:.0} are restored into {into}", summary.created);
    match tokens.get() {
        0 => {}
        1 => say!("1 token is left out, which is not the local admin's: make a new one"),
        n => say!("{n} tokens are left out, which are not the local admin's: make new ones"),
    }
    match others.get() {
        0 => {}
        n => say!("{} left out too, of the nodes that served the old store", are(n, "key")),
    }
    for left_out in &summary.left_out {
        say!("left out when the backup was made: {left_out}");
    }
    say!("it hands out nothing by itself until you have looked at it and typed: netstead resume");
    Ok(())
}

/// Why nothing was restored, and what to do about it.
fn not_restored(error: BackupError, place: &StoreLocation, file: &Path) -> anyhow::Error {
    match error {
        BackupError::NotEmpty => {
            let (message, hint) = match place {
                StoreLocation::Etcd(_) => {
                    (format!("{place} there is a store already"), "name another `prefix` in `[store]`")
                }
                StoreLocation::Local(dir) => (
                    format!("{} holds a store already", dir.display()),
                    "name an empty directory with `--data-dir`",
                ),
                StoreLocation::Raft(_) => (
                    format!("the cluster of {place} holds a store already"),
                    "restore into a cluster whose nodes all have new directories",
                ),
                StoreLocation::Memory => ("the store is not empty".to_owned(), "name another"),
            };
            Failure::new(message).hint(hint).into()
        }
        BackupError::HalfMoved => Failure::new(error.to_string())
            .hint("end it with the same `netstead store migrate`, or restore into another place")
            .into(),
        BackupError::NewerStore { .. } => Failure::new(error.to_string())
            .hint("upgrade Netstead to the version that made the backup, or a later one, and restore with that")
            .into(),
        BackupError::Unsound { .. } => Failure::new(error.to_string())
            .hint("`netstead store check --repair --local` mends what it can; nothing is handed out before `netstead resume`")
            .into(),
        error => anyhow::Error::from(error).context(format!("{} cannot be restored", file.display())),
    }
}

/// `1 key is`, `2 keys are`
fn are(count: usize, what: &str) -> String {
    format!("{} {}", many(count, what), if count == 1 { "is" } else { "are" })
}

/// The file itself, or a copy of stdin that ends with the returned guard.
fn readable(file: &Path) -> anyhow::Result<(std::path::PathBuf, Option<tempfile::NamedTempFile>)> {
    if file != Path::new("-") {
        return Ok((file.to_owned(), None));
    }
    let mut spool = tempfile::NamedTempFile::new().context("cannot keep what comes from stdin")?;
    let mut chunk = vec![0; 1 << 16];
    loop {
        let length = std::io::stdin().read(&mut chunk).context("cannot read stdin")?;
        let Some(part) = chunk.get(..length).filter(|part| !part.is_empty()) else { break };
        spool.write_all(part).context("cannot keep what comes from stdin")?;
    }
    spool.flush()?;
    Ok((spool.path().to_owned(), Some(spool)))
}

async fn check_local(global: &Global, args: &Check) -> anyhow::Result<Exit> {
    let place = LoadedConfig::read(global.config.as_deref())?.store(global);
    // To be looked at it need not be fit to be served; what cannot be read so says why when it is opened.
    let reader = match &place {
        StoreLocation::Local(dir) if !args.repair => StoreLocation::read_local(dir).await.ok(),
        _ => None,
    };
    let report = if let Some(reader) = reader {
        node::check_format(reader.snapshot()).await?;
        check::check_snapshot(reader.snapshot()).await?
    } else {
        let store = place.open_existing().await.map_err(with_server_hint)?;
        let report = check_and_repair(&*store, args.repair).await;
        store.close().await;
        report?
    };
    let problem = |problem: check::Problem| CheckProblem {
        repairable: problem.repair.is_some(),
        key: problem.key,
        problem: problem.problem,
    };
    let output =
        CheckOutput { keys: report.keys, problems: report.problems.into_iter().map(problem).collect() };
    checked(&output, global.output)
}

/// Checks a store, after the repair if that is wanted.
async fn check_and_repair(
    store: &dyn netstead_store::Store,
    repair: bool,
) -> anyhow::Result<check::CheckReport> {
    // To an older program whatever a newer one wrote would look wrong.
    node::check_format(&*store.snapshot().await?).await?;
    let report = check::check(store).await?;
    if !repair || report.problems.is_empty() {
        return Ok(report);
    }
    let repaired = check::repair(store, &report).await.map_err(|error| match error {
        check::RepairError::Changed { .. } => {
            Failure::new(error.to_string()).hint("stop the servers and run it again").into()
        }
        error => anyhow::Error::from(error),
    })?;
    say!("{} repaired", are(repaired, "problem"));
    Ok(check::check(store).await?)
}

fn checked(report: &CheckOutput, format: Option<Format>) -> anyhow::Result<Exit> {
    if let Some(format @ (Format::Json | Format::Yaml)) = format {
        output::document(report, format)?;
    } else {
        for CheckProblem { key, problem, repairable } in &report.problems {
            let end = if *repairable { " (repairable)" } else { "" };
            output::emit(&format!("{}: {}{end}\n", plain(key), plain(problem)))?;
        }
    }
    if report.problems.is_empty() {
        say!("{} keys, all well", report.keys);
        return Ok(Exit::Fine);
    }
    let mut failure =
        Failure::new(format!("{} in {} keys", many(report.problems.len(), "problem"), report.keys));
    if report.problems.iter().any(|problem| problem.repairable) {
        failure = failure.hint("stop the server, then `netstead store check --repair --local`");
    }
    Err(failure.into())
}
