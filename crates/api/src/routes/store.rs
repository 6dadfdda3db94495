//! The store behind it all: backup and check.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{HeaderValue, header},
    response::{IntoResponse as _, Response},
};
use futures::StreamExt as _;
use netstead_ledger::{backup, check};
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
    let (reader, mut writer) = tokio::io::duplex(BUFFER);
    let app = Arc::clone(&session.app);
    let writing = tokio::spawn(async move {
        let written = backup::write(&**app.ledger.store(), &*app.clock, &mut writer).await;
        // Only a file that was written to its end is told to be at its end.
        drop(writer);
        written
    });
    let lines = ReaderStream::new(reader);
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
    let body = lines.chain(end.filter_map(async |broken| broken.map(Err)));
    let mut response = Body::from_stream(body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/jsonl"));
    let name = HeaderValue::from_static("attachment; filename=\"netstead-backup.jsonl\"");
    headers.insert(header::CONTENT_DISPOSITION, name);
    Ok(response)
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
