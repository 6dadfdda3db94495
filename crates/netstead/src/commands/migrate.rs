//! `netstead store migrate`

use std::{path::Path, time::Duration};

use netstead_ledger::migrate::{self, MigrateError};
use netstead_model::SystemClock;
use netstead_store::Store;
use tokio::time::timeout;

use super::say;
use crate::{
    cli::{Global, admin::Migrate},
    failure::Failure,
    settings::Settings,
    store_place::StorePlace,
};

/// A leader that ends gives its store away at once, one that died within the time of its lease.
const TURN: Duration = Duration::from_secs(10);

pub(crate) async fn migrate(global: &Global, args: &Migrate) -> anyhow::Result<()> {
    let old = Settings::read(global.config.as_deref())?.store(global);
    let new = place(&args.to)?;
    if old == new {
        return Err(Failure::new(format!("the store is {new} already")).hint("name another place").into());
    }
    if new == StorePlace::Memory {
        return Err(Failure::new("a store in memory keeps nothing").hint("name another place").into());
    }
    let from = old.open_existing().await?;
    let done = match new.open().await {
        Ok(to) => {
            let done = carry(&*from, &*to, &new.to_string()).await;
            to.close().await;
            done
        }
        Err(error) => Err(error),
    };
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
fn place(to: &Path) -> anyhow::Result<StorePlace> {
    if to.is_file() || to.extension().is_some_and(|extension| extension == "toml") {
        return Ok(Settings::read(Some(to))?.place());
    }
    Ok(StorePlace::Local(to.to_owned()))
}

async fn carry(from: &dyn Store, to: &dyn Store, name: &str) -> anyhow::Result<migrate::Migrated> {
    let Ok(led) = timeout(TURN, from.lead()).await else {
        let told = Failure::new("a Netstead is running on the old store");
        return Err(told.hint("stop every server that uses it, then move it").into());
    };
    led?;
    migrate::migrate(from, to, &SystemClock, name).await.map_err(|error| {
        let hint = match &error {
            MigrateError::NotEmpty => "name an empty directory, or another `prefix` of an etcd",
            MigrateError::MovedAlready(_) => "set `[store]` to the new one and start the server",
            MigrateError::Unsound { .. } => "look with `netstead store check --local`",
            _ => "type the same again: it goes on where it has to",
        };
        Failure::new(error.to_string()).hint(hint).into()
    })
}
