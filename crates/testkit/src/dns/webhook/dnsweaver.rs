//! [`DnsweaverReceiver`]: a receiver as people wrote them for dnsweaver.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::{WebhookFault, plan};
use crate::fake_http::{FakeHttp, HttpRequest, HttpResponse};

/// A running receiver, which deletes by host and type as old ones do.
pub struct DnsweaverReceiver {
    http: FakeHttp,
    state: Arc<State>,
}

struct State {
    /// The header and its value that a client must send.
    token: (&'static str, &'static str),
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    records: Vec<Value>,
    next: u64,
    locked: bool,
}

impl DnsweaverReceiver {
    /// Starts one that wants this header with this value.
    pub fn start(header: &'static str, token: &'static str) -> Self {
        let state = Arc::new(State { token: (header, token), held: Mutex::default() });
        let inside = Arc::clone(&state);
        Self { http: FakeHttp::start(move |request| inside.answer(request)), state }
    }

    pub fn http(&self) -> &FakeHttp {
        &self.http
    }

    pub fn url(&self) -> String {
        self.http.url()
    }

    /// Plans faults for the next changes.
    pub fn fail(&self, faults: &[WebhookFault]) {
        plan(&self.http, faults);
    }

    pub fn requests(&self) -> usize {
        self.http.count()
    }

    /// Refuses every client from now on, or trusts the secret again.
    pub fn lock(&self, locked: bool) {
        self.state.held().locked = locked;
    }

    pub fn stop(&self) {
        self.http.stop();
    }

    pub fn restart(&self) {
        self.http.restart();
    }

    /// Its records, as `/list` gives them.
    pub fn records(&self) -> Vec<Value> {
        self.state.held().records.clone()
    }

    /// Puts a record there, as another program would.
    pub fn put(&self, record: Value) {
        self.state.held().records.push(record);
    }
}

impl std::fmt::Debug for DnsweaverReceiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DnsweaverReceiver({})", self.url())
    }
}

fn complaint(status: u16, message: &str) -> HttpResponse {
    HttpResponse::value(status, &json!({ "error": "refused", "message": message, "code": "x" }))
}

impl State {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, request: &HttpRequest) -> HttpResponse {
        let mut held = self.held();
        if held.locked || request.header(self.token.0) != Some(self.token.1) {
            return complaint(401, "who are you?");
        }
        let change =
            |answer: fn(&mut Held, &Value) -> HttpResponse, held: &mut Held| match serde_json::from_slice(
                &request.body,
            ) {
                Ok(body) => answer(held, &body),
                Err(_) => complaint(400, "no JSON"),
            };
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/ping") => HttpResponse::new(200, ""),
            ("GET", "/list") => HttpResponse::value(200, &Value::Array(held.records.clone())),
            ("POST", "/create") => change(Held::create, &mut held),
            ("PUT", "/update") => change(Held::update, &mut held),
            ("DELETE", "/delete") => change(Held::delete, &mut held),
            _ => complaint(404, "no such path"),
        }
    }
}

fn same(a: &Value, b: &Value, keys: &[&str]) -> bool {
    keys.iter().all(|key| a.get(key) == b.get(key))
}

impl Held {
    fn create(&mut self, body: &Value) -> HttpResponse {
        let kind = body.get("type").and_then(Value::as_str).unwrap_or_default();
        if !["A", "AAAA", "CNAME", "SRV", "TXT"].contains(&kind) || !body["value"].is_string() {
            return complaint(400, "what is that?");
        }
        if (kind == "SRV") != body["srv"].is_object() {
            return complaint(400, "an SRV has its parameters, and nothing else has");
        }
        let mut at = self.records.iter().filter(|record| same(record, body, &["hostname"]));
        if at.any(|record| {
            (record["type"] == "CNAME") != (kind == "CNAME") || same(record, body, &["type", "value", "srv"])
        }) {
            return complaint(409, "something is there");
        }
        self.next += 1;
        let mut record = body.clone();
        if let Some(fields) = record.as_object_mut() {
            fields.insert("id".into(), json!(self.next.to_string()));
        }
        self.records.push(record);
        HttpResponse::value(201, &json!({ "id": self.next.to_string() }))
    }

    fn update(&mut self, body: &Value) -> HttpResponse {
        let found = self.records.iter_mut().find(|record| {
            same(record, body, &["hostname", "type"])
                && record.get("value") == body.get("old_value")
                && record.get("srv") == body.get("old_srv")
        });
        let Some(record) = found else { return complaint(404, "it is not there") };
        record["value"] = body["new_value"].clone();
        record["ttl"] = body["ttl"].clone();
        if body["srv"].is_object() {
            record["srv"] = body["srv"].clone();
        }
        HttpResponse::new(204, "")
    }

    fn delete(&mut self, body: &Value) -> HttpResponse {
        let before = self.records.len();
        self.records.retain(|record| !same(record, body, &["hostname", "type"]));
        if before == self.records.len() {
            complaint(404, "it is not there")
        } else {
            HttpResponse::new(204, "")
        }
    }
}
