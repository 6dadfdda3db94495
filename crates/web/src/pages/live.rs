//! The stream of events, which the script follows to show what changed.

use axum::{
    http::{HeaderMap, header},
    response::Response,
};

use crate::{calls::Target, visit::Visit};

/// Passes the stream of the API on as it comes.
pub(crate) async fn follow(visit: Visit, headers: HeaderMap) -> Response {
    let target = Target::of(["events", "stream"]).with("engine", "true");
    match visit.calls.stream(&target, headers.get("last-event-id").cloned()).await {
        Ok(mut response) => {
            response.headers_mut().remove(header::CONTENT_LENGTH);
            response
        }
        Err(problem) => visit.trouble(&problem),
    }
}
