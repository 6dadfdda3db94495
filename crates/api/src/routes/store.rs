//! The store: backup and check.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use futures::StreamExt as _;
use netstead_ledger::{
    Ledger,
    backup::{self, BackupError, OnDamage},
    damage,
};
use netstead_model::Clock;
use netstead_store::{Damage, Snapshot};
use serde::{Deserialize, Serialize};
use tokio_util::io::ReaderStream;
use tracing::{error, info};
use utoipa::{IntoParams, ToSchema};

use crate::{
    http::{
        answer::Answer,
        body::Json,
        query::{NoParams, Query},
        session::{Admin, Session},
    },
    openapi::{Changing, Listing},
    problem::Failure,
};

/// Bytes of a backup that wait for their reader.
const BUFFER: usize = 256 << 10;
/// Bytes of a backup that are written before the answer begins: what goes wrong until then can be told in words.
const HELD_BACK: usize = 1 << 20;

/// A body that says nothing.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Empty {}

/// The result of a check of the store.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CheckOutput {
    problems: Vec<CheckProblem>,
    /// How many keys were looked at.
    keys: u64,
}

/// One thing in the store that should not be so.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CheckProblem {
    key: String,
    problem: String,
    /// `netstead store check --repair` can mend it.
    repairable: bool,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct BackupParams {
    /// Choice for keys that cannot be read: `fail` (default), or `leave-out`: damaged history is left out of the
    /// backup. Damage of anything else always fails.
    damaged: Option<String>,
}

impl BackupParams {
    fn on_damage(&self) -> Result<OnDamage, Failure> {
        match self.damaged.as_deref() {
            None | Some("fail") => Ok(OnDamage::Fail),
            Some("leave-out") => Ok(OnDamage::LeaveOutHistory),
            Some(_) => Err(Failure::unreadable("damaged", "use `fail` or `leave-out`")),
        }
    }
}

/// Writes a backup: everything as of one moment, in lines of JSON with a checksum at the end.
///
/// Damage that is known is an error before the first line; damage that is found later breaks the file off, and is
/// known to the next request.
#[utoipa::path(get, path = "/backup", tag = "server", operation_id = "backup", params(BackupParams),
    responses((status = 200, description = "The file", content_type = "application/jsonl", body = String), Listing))]
pub(crate) async fn backup(
    session: Session<Admin>,
    Query(params): Query<BackupParams>,
) -> Result<Response, Failure> {
    session.check_unscoped()?;
    let (app, on_damage) = (&session.app, params.on_damage()?);
    let begun = async {
        let snapshot = app.ledger.store().snapshot().await?;
        check_known_damage(&app.ledger, &*snapshot, on_damage).await?;
        file(snapshot, Arc::clone(&app.clock), app.ledger.clone(), on_damage).await
    };
    let body = tokio::time::timeout(session.time_left(), begun).await.map_err(|_| too_late())??;
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/jsonl"));
    let name = HeaderValue::from_static("attachment; filename=\"netstead-backup.jsonl\"");
    headers.insert(header::CONTENT_DISPOSITION, name);
    Ok(response)
}

fn too_late() -> Failure {
    let told = "the store did not answer in time: ask again, or give it more time";
    Failure::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", told).retry_after(Duration::from_secs(1))
}

/// Looks through everything first where damage is known: an error can be told only before the first line.
async fn check_known_damage(
    ledger: &Ledger,
    snapshot: &dyn Snapshot,
    on_damage: OnDamage,
) -> Result<(), Failure> {
    if ledger.health().damage.is_empty() {
        return Ok(());
    }
    let mut damage = damage::find(snapshot).await?;
    if damage.is_empty() {
        // It is no longer there, or can be read and not understood; then a backup has it as it is.
        ledger.check_store().await?;
        return Ok(());
    }
    note_damage(ledger, &damage);
    let left_out = on_damage == OnDamage::LeaveOutHistory;
    if left_out {
        damage.retain(|one| !damage::is_history(&one.key));
    }
    if damage.is_empty() { Ok(()) } else { Err(damaged(ledger, &BackupError::Damaged { damage, left_out })) }
}

fn note_damage(ledger: &Ledger, damage: &[Damage]) {
    for one in damage {
        ledger.damage().note(one.clone());
    }
}

/// Error that names the damage and the next step.
fn damaged(ledger: &Ledger, error: &BackupError) -> Failure {
    let found = if let BackupError::Damaged { damage, .. } = error { damage.as_slice() } else { &[] };
    let told = format!("{error}. To go on: {}", damage::advice(&**ledger.store(), found));
    Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "damaged", told)
}

/// The file as it is written. What goes wrong in its beginning is an error and no file.
async fn file(
    snapshot: Arc<dyn Snapshot>,
    clock: Arc<dyn Clock>,
    ledger: Ledger,
    on_damage: OnDamage,
) -> Result<Body, Failure> {
    let (reader, mut writer) = tokio::io::duplex(BUFFER);
    let noting = ledger.clone();
    let writing = tokio::spawn(async move {
        let written = backup::write_snapshot(&*snapshot, &*clock, &mut writer, on_damage).await;
        if let Err(BackupError::Damaged { damage, .. }) = &written {
            note_damage(&noting, damage);
        }
        // Only a file that was written to its end is told to be at its end.
        drop(writer);
        written
    });
    let mut lines = ReaderStream::new(reader);
    let (mut begin, mut bytes, mut ended) = (Vec::new(), 0, false);
    while bytes < HELD_BACK && !ended {
        match lines.next().await {
            Some(chunk) => {
                bytes += chunk.as_ref().map_or(0, tokio_util::bytes::Bytes::len);
                begin.push(chunk);
            }
            None => ended = true,
        }
    }
    let begin = futures::stream::iter(begin);
    if ended {
        return match writing.await {
            Ok(Ok(summary)) => {
                written(&summary);
                Ok(Body::from_stream(begin))
            }
            Ok(Err(BackupError::Store(error))) => Err(error.into()),
            Ok(Err(error @ BackupError::Damaged { .. })) => Err(damaged(&ledger, &error)),
            Ok(Err(error)) => Err(Failure::internal(error)),
            Err(error) => Err(Failure::internal(error)),
        };
    }
    let end = futures::stream::once(async move {
        match writing.await {
            Ok(Ok(summary)) => {
                written(&summary);
                None
            }
            Ok(Err(error)) => Some(broken(&error)),
            Err(error) => Some(broken(&error)),
        }
    });
    Ok(Body::from_stream(begin.chain(lines).chain(end.filter_map(async |broken| broken.map(Err)))))
}

fn written(summary: &backup::Summary) {
    info!(entries = summary.entries, seq = summary.seq, "Backup written.");
}

/// Breaks the connection off, so that no client takes half a file for a whole.
fn broken(error: &dyn std::error::Error) -> std::io::Error {
    error!(%error, "A backup broke off.");
    std::io::Error::other("the backup broke off")
}

/// Checks the store: every key against what may be stored.
#[utoipa::path(post, path = "/check", tag = "server", operation_id = "check_store", request_body = Empty,
    responses((status = 200, description = "What is not as it should be", body = CheckOutput), Changing))]
pub(crate) async fn check(
    session: Session<Admin>,
    Query(NoParams {}): Query<NoParams>,
    Json(Empty {}): Json<Empty>,
) -> Result<Answer<CheckOutput>, Failure> {
    session.check_unscoped()?;
    let report = session.app.ledger.check_store().await?;
    let problems = report.problems.into_iter().map(|found| CheckProblem {
        key: found.key,
        problem: found.problem,
        repairable: found.repair.is_some(),
    });
    Ok(Answer::ok(CheckOutput { problems: problems.collect(), keys: report.keys }))
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use netstead_ledger::Options;
    use netstead_model::SystemClock;
    use netstead_store::{Entry, MemoryStore, Store as _, StoreError};

    use super::*;

    /// A store that goes away after so many entries of 64 KiB were read.
    #[derive(Debug)]
    struct Leaving(Arc<dyn Snapshot>, usize);

    #[async_trait]
    impl Snapshot for Leaving {
        async fn get(&self, key: &[u8]) -> Result<Option<Entry>, StoreError> {
            self.0.get(key).await
        }

        async fn range(&self, _: &[u8], after: Option<&[u8]>, _: usize) -> Result<Vec<Entry>, StoreError> {
            if after.is_some() || self.1 == 0 {
                return Err(StoreError::Unavailable { reason: "it went away".into() });
            }
            let entry = |number| Entry {
                key: format!("k/{number:04}").into_bytes(),
                value: vec![b'v'; 64 << 10],
                version: netstead_store::Version(1),
            };
            Ok((0..self.1).map(entry).collect())
        }

        async fn range_back(&self, _: &[u8], _: Option<&[u8]>, _: usize) -> Result<Vec<Entry>, StoreError> {
            Ok(Vec::new())
        }
    }

    #[tokio::test]
    async fn a_backup_that_fails_half_way_breaks_off() {
        let store = Arc::new(MemoryStore::new());
        let ledger = Ledger::open(store.clone(), SystemClock::shared(), Options::default()).await.unwrap();
        let snapshot = store.snapshot().await.unwrap();
        let begun = async |entries| {
            let leaving = Arc::new(Leaving(Arc::clone(&snapshot), entries));
            file(leaving, SystemClock::shared(), ledger.clone(), OnDamage::Fail).await
        };
        let failure = begun(0).await.err().unwrap();
        let told = failure.problem(None).detail;
        assert!(told.contains("it went away"), "at the beginning it is said: {told}");
        let read = axum::body::to_bytes(begun(64).await.unwrap(), 16 << 20).await;
        assert!(read.is_err(), "half a file must not look whole");
        ledger.close().await;
    }
}
