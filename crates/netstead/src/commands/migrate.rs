//! `netstead store migrate`

use std::{path::Path, time::Duration};

use netstead_ledger::migrate::{self, MigrateError};
use netstead_model::SystemClock;
use netstead_store::{Health, Store};
use tokio::time::timeout;

use super::say;
use crate::{
    cli::{Global, admin::Migrate},
    failure::Failure,
    loaded_config::LoadedConfig,
    node,
    store_location::StoreLocation,
};

/// A leader that ends gives its store away at once, one that died within the time of its lease.
const TURN: Duration = Duration::from_secs(10);

pub(crate) async fn migrate(global: &Global, args: &Migrate) -> anyhow::Result<()> {
    let old = LoadedConfig::read(global.config.as_deref())?.store(global);
    let new = destination(&args.to)?;
    if old == new {
        return Err(Failure::new(format!("the store is {new} already")).hint("name another place").into());
    }
    if new == StoreLocation::Memory {
        return Err(Failure::new("a store in memory keeps nothing").hint("name another place").into());
    }
    if new.is_within(&old) {
        let message = format!("{new} is a part of {old}, which would take it for its own");
        return Err(Failure::new(message).hint("name a `prefix` beside the old one").into());
    }
    let from = old.open_existing().await?;
    let done = migrate_store(&*from, &new).await;
    from.close().await;
    let moved = done?;
    say!(
        "{} keys are moved from {old} to {new}; both hold the same (sha256 {})",
        moved.entries,
        moved.sha256
    );
    say!("the old store is sealed: start the server with the new one");
    Ok(())
}

/// A configuration file says by its `[store]`; anything else is a directory for files on this machine.
fn destination(to: &Path) -> anyhow::Result<StoreLocation> {
    if to.is_file() || to.extension().is_some_and(|extension| extension == "toml") {
        return Ok(LoadedConfig::read(Some(to))?.configured_store());
    }
    Ok(StoreLocation::Local(to.to_owned()))
}

async fn migrate_store(from: &dyn Store, new: &StoreLocation) -> anyhow::Result<migrate::Migrated> {
    // Nothing is made of the new one before the old one can be moved.
    acquire_lead(from).await?;
    let (to, mark) = new.open_to_fill().await?;
    let done = migrate::migrate(from, &*to, &SystemClock, &new.to_string()).await;
    to.close().await;
    if let Some(mark) = mark {
        match &done {
            Ok(_) => mark.clear(),
            // Nothing was written.
            Err(
                MigrateError::NothingThere
                | MigrateError::NotEmpty
                | MigrateError::MovedAlready(_)
                | MigrateError::Unsound { .. },
            ) => mark.undo(),
            Err(_) => {}
        }
    }
    done.map_err(|error| not_moved(&error))
}

/// Takes the lead of the old store, so that no other process changes it any more.
async fn acquire_lead(from: &dyn Store) -> anyhow::Result<()> {
    let Ok(led) = timeout(TURN, from.lead()).await else { return Err(not_led(from).into()) };
    led?;
    // Not before: a leader may raise the format.
    node::check_format(&*from.snapshot().await?).await
}

/// Why it was not this process' turn to lead.
fn not_led(from: &dyn Store) -> Failure {
    match from.health() {
        Health::Ready => Failure::new("a Netstead is running on the old store")
            .hint("stop every server that uses it, then move it"),
        Health::Failed { reason } if from.membership().is_some() => {
            Failure::new(format!("the old store: {reason}")).hint(
                "start the other nodes, and remove all but one with `netstead cluster remove`; if they are lost for \
                 good, `netstead store backup --local --stale` takes this node's own copy",
            )
        }
        Health::Failed { reason } => Failure::new(format!("the old store: {reason}")),
    }
}

/// Why nothing was moved, and what to do about it.
fn not_moved(error: &MigrateError) -> anyhow::Error {
    let hint = match error {
        MigrateError::NotEmpty => "name an empty directory, or another `prefix` of an etcd",
        MigrateError::MovedAlready(_) => "set `[store]` to the new one and start the server",
        MigrateError::Unsound { .. } => "look with `netstead store check --local`",
        _ => "type the same again: it continues where it has to",
    };
    Failure::new(error.to_string()).hint(hint).into()
}
