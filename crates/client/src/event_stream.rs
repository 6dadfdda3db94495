//! Events as they happen, across broken connections.

use std::{collections::VecDeque, time::Duration};

use reqwest::{Method, Response, header::HeaderName};
use serde::Serialize;

use crate::{
    ClientError,
    sse::{Message, Parser},
    transport::{Repeat, Transport},
    types::{EngineEventOutput, EventOutput},
};

/// The server sends a comment at least every 15 s; a connection that is silent for this long is dead.
const SILENCE: Duration = Duration::from_mins(1);

/// Prefix of the names of messages that are events of the engine.
const ENGINE: &str = "engine-";

/// An event and the cursor from which to go on after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Streamed {
    /// None after an event of the engine: it is sent once, and the stream goes on after the last event of the ledger.
    pub cursor: Option<String>,
    pub event: StreamedEvent,
}

/// An event of a stream. As JSON it has `of`, which is `ledger` or `engine`, beside its own fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "of", rename_all = "lowercase")]
pub enum StreamedEvent {
    Ledger(Box<EventOutput>),
    Engine(Box<EngineEventOutput>),
}

/// Reads events one by one. A broken connection is taken up again after the last event that came, so none is
/// lost and none comes twice; only when the server stays away, or no longer has what came after that event
/// (`gone`), is that an error.
#[derive(Debug)]
pub struct EventStream {
    transport: Transport,
    after: Option<String>,
    /// Whether events of the engine are asked for.
    engine: bool,
    connection: Option<Connection>,
    ready: VecDeque<Streamed>,
    failures: u32,
}

#[derive(Debug)]
struct Connection {
    response: Response,
    parser: Parser,
}

impl EventStream {
    pub(crate) fn new(transport: Transport, after: Option<String>) -> Self {
        Self { transport, after, engine: false, connection: None, ready: VecDeque::new(), failures: 0 }
    }

    /// Also sends events of the engine as they happen. One that happens while there is no connection is lost.
    #[must_use]
    pub fn with_engine(mut self) -> Self {
        self.engine = true;
        self
    }

    /// The cursor after the last event that was handed out.
    pub fn cursor(&self) -> Option<&str> {
        self.after.as_deref()
    }

    /// The next event, however long it takes to happen.
    pub async fn next(&mut self) -> Result<Streamed, ClientError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                if let Some(cursor) = &event.cursor {
                    self.after = Some(cursor.clone());
                }
                return Ok(event);
            }
            match self.read().await {
                Ok(()) => self.failures = 0,
                Err(error) => self.pause_after(error).await?,
            }
        }
    }

    /// Connects if need be, then takes what the connection has to give.
    async fn read(&mut self) -> Result<(), ClientError> {
        if self.connection.is_none() {
            self.connection = Some(self.connect().await?);
        }
        let Some(connection) = &mut self.connection else { return Ok(()) };
        let url = self.transport.base().clone();
        let chunk = match tokio::time::timeout(SILENCE, connection.response.chunk()).await {
            Ok(Ok(Some(chunk))) => chunk,
            Ok(Ok(None)) => {
                // The server ended it, as it does when it stops.
                self.connection = None;
                return Err(ClientError::Slow { url });
            }
            Ok(Err(source)) => return Err(ClientError::Unreachable { url, source: source.without_url() }),
            Err(_) => return Err(ClientError::Slow { url }),
        };
        let foreign = |reason: String| ClientError::Foreign { url: url.clone(), reason };
        let messages =
            connection.parser.feed(&chunk).map_err(|_| foreign("an event of it never ends".into()))?;
        for message in messages {
            self.ready.extend(event(message).map_err(&foreign)?);
        }
        Ok(())
    }

    async fn connect(&self) -> Result<Connection, ClientError> {
        let mut call = self.transport.call(Method::GET, &["events", "stream"], Repeat::Read)?;
        if self.engine {
            call = call.query(&serde_json::json!({"engine": true}))?;
        }
        if let Some(after) = &self.after {
            call = call.header(HeaderName::from_static("last-event-id"), after)?;
        }
        let response = self.transport.stream(call).await?;
        Ok(Connection { response, parser: Parser::default() })
    }

    /// Waits a little before the next try, or gives up.
    async fn pause_after(&mut self, error: ClientError) -> Result<(), ClientError> {
        self.connection = None;
        let passing = matches!(
            error,
            ClientError::Unreachable { .. } | ClientError::Unavailable { .. } | ClientError::Slow { .. }
        );
        let options = &self.transport.options;
        if !passing || self.failures >= options.retries.saturating_mul(2) {
            return Err(error);
        }
        let pause = options.backoff.saturating_mul(2_u32.saturating_pow(self.failures));
        self.failures += 1;
        tracing::debug!(%error, retry_in = ?pause, "Event stream broke.");
        tokio::time::sleep(pause).await;
        Ok(())
    }
}

fn event(message: Message) -> Result<Option<Streamed>, String> {
    let unreadable = |error: serde_json::Error| format!("an event cannot be read ({error})");
    let event = match (&message.id, &message.event) {
        (None, Some(event)) if event.starts_with(ENGINE) => {
            StreamedEvent::Engine(serde_json::from_str(&message.data).map_err(unreadable)?)
        }
        (None, _) => return Ok(None),
        (Some(_), _) => StreamedEvent::Ledger(serde_json::from_str(&message.data).map_err(unreadable)?),
    };
    Ok(Some(Streamed { cursor: message.id, event }))
}
