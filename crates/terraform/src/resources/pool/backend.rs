//! A pool whose addresses come from another system: a backend of the server.

use std::time::Duration;

use netstead_client::Client;

use crate::protocol::{Diagnostic, Failed, Fields as _, Object, Value};

/// Attributes that the backend of a pool decides. A configuration that sets one of them too is refused.
const SAID_BY_BACKEND: [&str; 7] =
    ["family", "network", "ranges", "exclude", "gateway", "use_reserved", "order"];
/// How long a deletion waits until a backend has everything back.
const CLOSING: Duration = Duration::from_mins(5);

pub(super) fn validate(config: &Object) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (one, other) in [("backend", "backend_pool"), ("backend_pool", "backend")] {
        if config.value(one).is_null() {
            let detail = format!(
                "`{other}` needs `{one}` beside it: the backend, and the pool as the backend calls it."
            );
            found.push(Diagnostic::error(format!("`{one}` is missing"), detail).at(one));
        }
    }
    for name in SAID_BY_BACKEND.into_iter().filter(|name| !config.value(name).is_null()) {
        let detail = "The backend decides it. Remove it here; the attribute then has what the backend says.";
        found.push(
            Diagnostic::error(format!("`{name}` cannot be set in a pool with a backend"), detail).at(name),
        );
    }
    found
}

/// Plans what a backend says: as it is while the backend stays, else known after apply.
pub(super) fn plan(prior: Option<&Object>, config: &Object, planned: &mut Object) {
    if planned.value("backend").is_null() {
        return;
    }
    let stays = |prior: &&Object| {
        ["backend", "backend_pool"].iter().all(|name| prior.value(name) == planned.value(name))
    };
    let prior = prior.filter(stays).cloned();
    // A length that is not stated is the backend's too.
    for name in SAID_BY_BACKEND.into_iter().chain(["length"]).filter(|name| config.value(name).is_null()) {
        let value = prior.as_ref().map_or(Value::UNKNOWN, |prior| prior.value(name).clone());
        planned.insert(name.to_owned(), value);
    }
}

/// Waits until the backend of a pool that was deleted has everything back. The pool exists until then, so a new one of the same name
/// could not be made.
pub(super) async fn wait_until_closed(client: &Client, name: &str) -> Result<(), Failed> {
    let gone = async {
        loop {
            match client.pool(name).await {
                Err(error) if error.is("no-such-pool") => return,
                // A server that does not answer now may do so later.
                _ => tokio::time::sleep(Duration::from_secs(1)).await,
            }
        }
    };
    tokio::time::timeout(CLOSING, gone).await.map_err(|_| {
        let detail = format!(
            "Nothing is handed out any more, and the pool is removed when its backend has everything back. Apply again later, or forget \
             what the backend holds: `netstead pool delete {name} --abandon REASON`."
        );
        Diagnostic::error(format!("the pool `{name}` is still closing"), detail).into()
    })
}
