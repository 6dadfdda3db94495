//! Events as they happen, as server-sent events.

use std::{convert::Infallible, time::Duration};

use axum::{
    http::HeaderMap,
    response::sse::{Event as Message, KeepAlive, Sse},
};
use futures::{Stream, stream};
use netstead_client::types::{EngineEventOutput, EventOutput};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    event_feed::{EventFeed, FeedItem},
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

/// How long a stream waits for an engine that is starting.
const ENGINE_PATIENCE: Duration = Duration::from_secs(2);

/// The `data` of a message: an event of the ledger or of the engine.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it is written for the document")]
pub(crate) enum StreamedOutput {
    Ledger(EventOutput),
    Engine(EngineEventOutput),
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct StreamParams {
    /// Begin behind this cursor, `<ledger id>:<sequence number>`; without one, begin now.
    after: Option<String>,
    /// `true`: also send what the engine does and notices, as it happens. Such a message has no `id`, its `event` begins
    /// with `engine-`, and its `data` is an `EngineEventOutput`.
    #[param(value_type = Option<bool>)]
    engine: Option<String>,
}

/// Follows events: the ones after a cursor first, then those that happen. `Last-Event-ID` counts as `after`.
#[utoipa::path(get, path = "/events/stream", tag = "events", operation_id = "follow_events", params(StreamParams,
        ("Last-Event-ID" = Option<String>, Header, description = "The `id` of the last event that came")),
    responses((status = 200, description = "Each event with `id` (a cursor), `event` (its kind) and `data`",
        content_type = "text/event-stream", body = StreamedOutput), Following))]
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
    let engine = match params.engine.as_deref() {
        None | Some("false") => None,
        Some("true") => session.app.engine_slot.await_engine(ENGINE_PATIENCE).await,
        Some(_) => return Err(Failure::unreadable("engine", "use `true` or `false`")),
    };
    let feed = EventFeed::open(&session.app, session.grant.clone(), after, engine.as_ref()).await?;
    let start = Message::default().id(feed.cursor()).comment("from here on");
    let events = stream::unfold(feed, async |mut feed| {
        let message = match feed.next().await? {
            FeedItem::Ledger(event) => {
                let message = Message::default().id(feed.cursor()).event(event.what.as_str());
                let output = crate::convert::event::output(&event, feed.visible_pools().await.as_deref());
                message.json_data(output)
            }
            FeedItem::Engine(change) => {
                let message = Message::default().event(format!("engine-{}", change.what));
                message.json_data(crate::convert::history::live(&change))
            }
        };
        let message = message.unwrap_or_default();
        Some((Ok(message), feed))
    });
    let start = stream::once(async { Ok(start) });
    Ok(Sse::new(futures::StreamExt::chain(start, events)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}
