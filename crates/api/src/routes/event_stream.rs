//! Events as they happen, as server-sent events.

use std::{convert::Infallible, time::Duration};

use axum::{
    http::HeaderMap,
    response::sse::{Event as Message, KeepAlive, Sse},
};
use futures::{Stream, stream};
use netstead_client::types::EventOutput;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::{
    event_feed::EventFeed,
    http::{
        cursor::EventCursor,
        query::Query,
        session::{Read, Session},
    },
    openapi::Following,
    problem::Failure,
};

/// How often a silent connection is shown to be alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct StreamParams {
    /// Begin behind this cursor, `<ledger id>:<sequence number>`; without one, begin now.
    after: Option<String>,
}

/// Follows events: the ones after a cursor first, then those that happen. `Last-Event-ID` counts as `after`.
#[utoipa::path(get, path = "/events/stream", tag = "events", operation_id = "follow_events", params(StreamParams,
        ("Last-Event-ID" = Option<String>, Header, description = "The `id` of the last event that came")),
    responses((status = 200, description = "Each event with `id` (a cursor), `event` (its kind) and `data`",
        content_type = "text/event-stream", body = EventOutput), Following))]
pub(crate) async fn follow(
    session: Session<Read>,
    Query(params): Query<StreamParams>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Message, Infallible>>>, Failure> {
    let ledger = &session.app.ledger;
    let last = headers
        .get("last-event-id")
        .map(|value| value.to_str().unwrap_or_default())
        .filter(|id| !id.is_empty());
    let cursor = match (last, params.after.as_deref()) {
        (Some(last), _) => Some(EventCursor::read("Last-Event-ID", last)?),
        (None, Some(after)) => Some(EventCursor::read("after", after)?),
        (None, None) => None,
    };
    let after = match cursor {
        Some(cursor) => Some(cursor.standing(ledger).await?),
        None => None,
    };
    let feed = EventFeed::open(&session.app, session.grant.clone(), after).await?;
    let start = Message::default().id(feed.cursor()).comment("from here on");
    let events = stream::unfold(feed, async |mut feed| {
        let event = feed.next().await?;
        let message = Message::default().id(feed.cursor()).event(event.what.as_str());
        let output = crate::convert::event::output(&event, feed.visible_pools().await.as_deref());
        let message = message.json_data(output).unwrap_or_default();
        Some((Ok(message), feed))
    });
    let start = stream::once(async { Ok(start) });
    Ok(Sse::new(futures::StreamExt::chain(start, events)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}
