//! The store: backup and check.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use futures::StreamExt as _;
use netstead_ledger::{
    backup::{self, BackupError},
    check,
};
use netstead_model::Clock;
use netstead_store::Snapshot;
use serde::{Deserialize, Serialize};
use tokio_util::io::ReaderStream;
use tracing::{error, info};
use utoipa::ToSchema;

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

/// A body that says nothing.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Empty {}

/// What a check of the store found.
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

/// Writes a backup: everything as of one moment, in lines of JSON with a checksum at the end.
#[utoipa::path(get, path = "/backup", tag = "server", operation_id = "backup",
    responses((status = 200, description = "The file", content_type = "application/jsonl", body = String), Listing))]
pub(crate) async fn backup(
    session: Session<Admin>,
    Query(NoParams {}): Query<NoParams>,
) -> Result<Response, Failure> {
    session.check_unscoped()?;
    let app = &session.app;
    let begun = async {
        let snapshot = app.ledger.store().snapshot().await?;
        file(snapshot, Arc::clone(&app.clock)).await
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

/// The file as it is written. What goes wrong before its first line is an error and no file.
async fn file(snapshot: Arc<dyn Snapshot>, clock: Arc<dyn Clock>) -> Result<Body, Failure> {
    let (reader, mut writer) = tokio::io::duplex(BUFFER);
    let writing = tokio::spawn(async move {
        let written = backup::write_snapshot(&*snapshot, &*clock, &mut writer).await;
        // Only a file that was written to its end is told to be at its end.
        drop(writer);
        written
    });
    let mut lines = ReaderStream::new(reader);
    let Some(first) = lines.next().await else {
        return Err(match writing.await {
            Ok(Err(BackupError::Store(error))) => error.into(),
            Ok(Err(error)) => Failure::internal(error),
            Ok(Ok(_)) => Failure::internal("a backup without a line"),
            Err(error) => Failure::internal(error),
        });
    };
    let lines = futures::stream::once(async { first }).chain(lines);
    let end = futures::stream::once(async move {
        match writing.await {
            Ok(Ok(summary)) => {
                info!(entries = summary.entries, seq = summary.seq, "Backup written.");
                None
            }
            Ok(Err(error)) => Some(broken(&error)),
            Err(error) => Some(broken(&error)),
        }
    });
    Ok(Body::from_stream(lines.chain(end.filter_map(async |broken| broken.map(Err)))))
}

/// Breaks the connection off, so that nobody takes half a file for a whole.
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
    let report = check::check(&**session.app.ledger.store()).await?;
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
    use netstead_ledger::{Ledger, Options};
    use netstead_model::SystemClock;
    use netstead_store::{Entry, MemoryStore, Store as _, StoreError};

    use super::*;

    /// A store that goes away while it is read.
    #[derive(Debug)]
    struct Leaving(Arc<dyn Snapshot>);

    #[async_trait]
    impl Snapshot for Leaving {
        async fn get(&self, key: &[u8]) -> Result<Option<Entry>, StoreError> {
            self.0.get(key).await
        }

        async fn range(&self, _: &[u8], _: Option<&[u8]>, _: usize) -> Result<Vec<Entry>, StoreError> {
            Err(StoreError::Unavailable { reason: "it went away".into() })
        }

        async fn range_back(&self, _: &[u8], _: Option<&[u8]>, _: usize) -> Result<Vec<Entry>, StoreError> {
            Ok(Vec::new())
        }
    }

    #[tokio::test]
    async fn a_backup_that_fails_half_way_breaks_off() {
        let store = Arc::new(MemoryStore::new());
        let ledger = Ledger::open(store.clone(), SystemClock::shared(), Options::default()).await.unwrap();
        let leaving = Arc::new(Leaving(store.snapshot().await.unwrap()));
        let body = file(leaving, SystemClock::shared()).await.unwrap();
        let read = axum::body::to_bytes(body, 1 << 20).await;
        assert!(read.is_err(), "half a file must not look whole");
        ledger.close().await;
    }
}
