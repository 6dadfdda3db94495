//! Docker's events: they wake the engine, and say which containers really ended.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::FutureExt as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use netstead_model::{Clock, Ident, Key};
use tokio::{sync::Notify, task::AbortHandle, time::sleep};

use super::{
    api::{Api, ApiError, EVENTS},
    types::Event,
};

const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Events of the last moments are asked for again: what ended while a connection was made is not missed.
const LOOK_BACK: i64 = 10;
/// Longest line of the stream.
const MOST_BYTES: usize = 1 << 20;
/// Ends that are kept until they are reported.
const MOST_ENDS: usize = 100_000;
/// Events that can change a name or an address. Health checks and `exec` cannot, and there are many.
const FILTERS: &str = r#"{"type":["container","network","service"],"event":["create","start","die","destroy","rename","connect","disconnect","update","remove"]}"#;

/// Follows the events of one host as long as it lives.
#[derive(Debug)]
pub(super) struct Watch {
    shared: Arc<EventState>,
    task: AbortHandle,
}

#[derive(Debug, Default)]
struct EventState {
    changed: Notify,
    /// The connection is doubtful.
    again: Notify,
    ended: Mutex<BTreeSet<Key>>,
}

impl Watch {
    pub(super) fn start(name: Ident, api: Arc<Api>, clock: Arc<dyn Clock>) -> Self {
        let shared = Arc::new(EventState::default());
        let task = tokio::spawn(follow(name, api, clock, Arc::clone(&shared))).abort_handle();
        Self { shared, task }
    }

    pub(super) async fn changed(&self) {
        self.shared.changed.notified().await;
    }

    /// Containers and services that ended since the last call.
    pub(super) fn take_ended(&self) -> BTreeSet<Key> {
        std::mem::take(&mut *self.shared.ended())
    }

    /// They could not be reported after all, and what failed may be the connection.
    pub(super) fn failed(&self, mut ended: BTreeSet<Key>) {
        self.shared.ended().append(&mut ended);
        self.shared.again.notify_one();
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl EventState {
    fn ended(&self) -> MutexGuard<'_, BTreeSet<Key>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle_event(&self, line: &[u8]) {
        let Ok(event) = serde_json::from_slice::<Event>(line) else { return };
        let mut ended = self.ended();
        if let Some(id) = end(&event)
            && ended.len() < MOST_ENDS
        {
            ended.insert(id);
        }
        drop(ended);
        self.changed.notify_one();
    }
}

/// The workload that this event ends. A container with another name is another workload.
fn end(event: &Event) -> Option<Key> {
    let attribute = |name: &str| event.actor.attributes.get(name);
    match (event.kind.as_str(), event.action.as_str()) {
        ("container", "destroy") => attribute("name")?.parse().ok(),
        ("container", "rename") => attribute("oldName")?.trim_start_matches('/').parse().ok(),
        ("service", "remove") => super::workloads::service_id(attribute("name")?),
        _ => None,
    }
}

async fn follow(name: Ident, api: Arc<Api>, clock: Arc<dyn Clock>, shared: Arc<EventState>) {
    let mut pause = FIRST_PAUSE;
    let mut refused = false;
    loop {
        let since = clock.wall().as_second() - LOOK_BACK;
        match api.events(&format!("?since={since}&filters={}", encoded(FILTERS))).await {
            Ok(response) => {
                pause = FIRST_PAUSE;
                tracing::debug!(source = %name, "Docker's events are followed.");
                // Whatever happened before is in a full list.
                shared.changed.notify_one();
                read(response.into_body(), &shared).await;
                tracing::debug!(source = %name, "Docker's events ended.");
                shared.changed.notify_one();
            }
            Err(error @ ApiError::Forbidden { .. }) if !refused => {
                refused = true;
                tracing::warn!(source = %name, call = EVENTS.path, %error, "Docker's events cannot be followed; changes are seen by the timer alone.");
            }
            Err(error) => tracing::debug!(source = %name, %error, "Docker's events cannot be followed yet."),
        }
        // A look that failed asks for another connection; while there is none that says nothing new.
        let _ = shared.again.notified().now_or_never();
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Reads lines until the stream ends, or is in doubt.
async fn read(mut body: Incoming, shared: &EventState) {
    let mut rest: Vec<u8> = Vec::new();
    loop {
        let frame = tokio::select! {
            frame = body.frame() => frame,
            () = shared.again.notified() => return,
        };
        let Some(Ok(frame)) = frame else { return };
        let Some(data) = frame.data_ref() else { continue };
        rest.extend_from_slice(data);
        while let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=at).collect();
            shared.handle_event(&line);
        }
        if rest.len() > MOST_BYTES {
            return;
        }
    }
}

/// For a query.
pub(super) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(line: &str) -> Vec<String> {
        let shared = EventState::default();
        shared.handle_event(line.as_bytes());
        shared.ended().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn only_what_is_removed_or_renamed_ended() {
        let container = |action: &str, more: &str| {
            format!(
                r#"{{"Type":"container","Action":"{action}","Actor":{{"ID":"x","Attributes":{{"name":"web"{more}}}}}}}"#
            )
        };
        assert_eq!(ends(&container("destroy", "")), ["web"]);
        assert_eq!(ends(&container("rename", r#","oldName":"/old""#)), ["old"]);
        assert!(ends(&container("die", "")).is_empty());
        assert!(ends(&container("stop", "")).is_empty());
        let service = r#"{"Type":"service","Action":"remove","Actor":{"Attributes":{"name":"web"}}}"#;
        assert_eq!(ends(service), ["service/web"]);
    }

    #[test]
    fn what_is_no_event_is_passed_over() {
        for line in ["", "null", "[]", "{", r#"{"Type":null,"Action":null,"Actor":null}"#] {
            assert!(ends(line).is_empty());
        }
    }
}
