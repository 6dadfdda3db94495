//! A fake webhook provider of external-dns that checks requests as strictly as the protocol allows, and holds what it is told.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};

use crate::fake_http::{FakeHttp, HttpRequest, HttpResponse};

const MEDIA_TYPE: &str = "application/external.dns.webhook+json;version=1";
/// `netstead:webhook-test` in base64.
const AUTHORIZATION: &str = "Basic bmV0c3RlYWQ6d2ViaG9vay10ZXN0";
const FIELDS: [&str; 7] =
    ["dnsName", "targets", "recordType", "setIdentifier", "recordTTL", "labels", "providerSpecific"];

/// Habits of providers.
#[derive(Debug, Clone)]
pub struct WebhookHabits {
    /// Types that it holds; others are a 500.
    pub types: Vec<&'static str>,
    /// A shorter time to live becomes this one, as `adjustendpoints` says.
    pub shortest_ttl: u64,
    /// Whether it holds times to live at all. If not, it says nothing of that in `adjustendpoints`.
    pub keeps_ttl: bool,
    /// Whether a TXT comes back without its quotes.
    pub strips_quotes: bool,
    /// Whether a refused call changes nothing.
    pub atomic: bool,
    pub filter: Value,
    pub media_type: &'static str,
}

impl Default for WebhookHabits {
    fn default() -> Self {
        Self {
            types: vec!["A", "AAAA", "CNAME", "TXT", "SRV", "MX", "NS", "PTR"],
            shortest_ttl: 0,
            keeps_ttl: true,
            strips_quotes: false,
            atomic: true,
            filter: json!({ "include": ["example.test"] }),
            media_type: MEDIA_TYPE,
        }
    }
}

/// A running fake.
#[derive(Debug)]
pub struct FakeWebhookProvider {
    http: FakeHttp,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    habits: WebhookHabits,
    revoked: bool,
    endpoints: Vec<Map<String, Value>>,
}

impl FakeWebhookProvider {
    pub fn start(habits: WebhookHabits) -> Self {
        let state = Arc::new(Mutex::new(State { habits, revoked: false, endpoints: Vec::new() }));
        let inside = Arc::clone(&state);
        let answer = move |request: &HttpRequest| {
            inside.lock().unwrap_or_else(PoisonError::into_inner).answer(request)
        };
        Self { http: FakeHttp::start(answer), state }
    }

    pub fn http(&self) -> &FakeHttp {
        &self.http
    }

    pub fn user(&self) -> &'static str {
        "netstead"
    }

    pub fn password(&self) -> &'static str {
        "webhook-test"
    }

    /// Refuses the password from now on, or takes it again.
    pub fn revoke(&self, revoked: bool) {
        self.state().revoked = revoked;
    }

    /// The endpoints as it lists them.
    pub fn endpoints(&self) -> Vec<Value> {
        self.state().endpoints.iter().cloned().map(Value::Object).collect()
    }

    /// Puts an endpoint there as another program does.
    pub fn add(&self, endpoint: &Value) {
        self.state().endpoints.extend(endpoint.as_object().cloned());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Endpoint = Map<String, Value>;

fn empty(status: u16) -> HttpResponse {
    HttpResponse::new(status, "")
}

fn failed(reason: &str) -> HttpResponse {
    HttpResponse { body: reason.to_owned(), ..empty(500) }
}

fn text<'a>(endpoint: &'a Endpoint, field: &str) -> &'a str {
    endpoint.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn same(one: &Endpoint, other: &Endpoint) -> bool {
    ["dnsName", "recordType", "setIdentifier"].iter().all(|field| text(one, field) == text(other, field))
}

/// The endpoints of a list in the body, each with known fields of the right types only.
fn list(value: &Value) -> Option<Vec<Endpoint>> {
    if value.is_null() {
        return Some(Vec::new());
    }
    value
        .as_array()?
        .iter()
        .map(|endpoint| {
            let endpoint = endpoint.as_object()?;
            let good = endpoint.iter().all(|(field, value)| {
                FIELDS.contains(&field.as_str())
                    && match field.as_str() {
                        "recordTTL" => value.is_i64(),
                        "targets" | "providerSpecific" => value.is_array(),
                        "labels" => value.is_object(),
                        _ => value.is_string(),
                    }
            });
            (good && !text(endpoint, "dnsName").ends_with('.')).then(|| endpoint.clone())
        })
        .collect()
}

impl State {
    fn answer(&mut self, request: &HttpRequest) -> HttpResponse {
        if self.revoked || request.header("authorization") != Some(AUTHORIZATION) {
            return empty(401);
        }
        let spoken = |name: &str| request.header(name) == Some(MEDIA_TYPE);
        let answer = |value: &Value| {
            let media = self.habits.media_type.to_owned();
            HttpResponse {
                reason: None,
                status: 200,
                headers: vec![("content-type".into(), media)],
                body: value.to_string(),
            }
        };
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/" | "/records") | ("POST", "/adjustendpoints") if !spoken("accept") => empty(406),
            ("POST", _) if !spoken("content-type") => empty(415),
            ("GET", "/") => answer(&self.habits.filter),
            ("GET", "/records") => answer(&self.endpoints.iter().cloned().map(Value::Object).collect()),
            ("POST", path @ ("/records" | "/adjustendpoints")) => {
                let Ok(body) = serde_json::from_slice::<Value>(&request.body) else { return empty(400) };
                if path == "/records" {
                    return self.change(&body);
                }
                match list(&body) {
                    None => empty(400),
                    Some(endpoints) => {
                        let made = endpoints.into_iter().filter_map(|endpoint| self.adjusted(endpoint));
                        answer(&made.map(Value::Object).collect())
                    }
                }
            }
            _ => empty(404),
        }
    }

    fn adjusted(&self, mut endpoint: Endpoint) -> Option<Endpoint> {
        let ttl = endpoint.get("recordTTL").and_then(Value::as_u64).unwrap_or_default();
        endpoint.insert("recordTTL".into(), json!(ttl.max(self.habits.shortest_ttl)));
        // As a provider with settings of its own adds them.
        endpoint.insert("providerSpecific".into(), json!([{ "name": "webhook/fake", "value": "yes" }]));
        (text(&endpoint, "recordType") != "NS" || self.habits.types.contains(&"NS")).then_some(endpoint)
    }

    fn change(&mut self, body: &Value) -> HttpResponse {
        let Some(fields) = body.as_object() else { return empty(400) };
        let known = ["create", "updateOld", "updateNew", "delete"];
        let part = |name: &str| fields.get(name).map_or(Some(Vec::new()), list);
        let parts = known.map(part);
        let [Some(create), Some(old), Some(new), Some(delete)] = parts else { return empty(400) };
        if old.len() != new.len() || fields.keys().any(|field| !known.contains(&field.as_str())) {
            return empty(400);
        }
        let before = self.endpoints.clone();
        let done = delete.iter().try_for_each(|old| self.remove(old)).and_then(|()| {
            old.iter().zip(&new).try_for_each(|(old, new)| {
                if !same(old, new) {
                    return Err("an update names two sets".to_owned());
                }
                self.remove(old)?;
                self.add(new)
            })?;
            create.iter().try_for_each(|new| self.add(new))
        });
        match done {
            Ok(()) => empty(204),
            Err(reason) => {
                if self.habits.atomic {
                    self.endpoints = before;
                }
                failed(&reason)
            }
        }
    }

    fn remove(&mut self, old: &Endpoint) -> Result<(), String> {
        let before = self.endpoints.len();
        self.endpoints.retain(|endpoint| !same(endpoint, old));
        let name = text(old, "dnsName");
        if self.endpoints.len() < before { Ok(()) } else { Err(format!("{name} is not there")) }
    }

    fn add(&mut self, new: &Endpoint) -> Result<(), String> {
        let (name, kind) = (text(new, "dnsName"), text(new, "recordType"));
        if !self.habits.types.contains(&kind) {
            return Err(format!("{kind} is not supported"));
        }
        if self.endpoints.iter().any(|endpoint| same(endpoint, new)) {
            return Err(format!("{name} is there already"));
        }
        let alias = |endpoint: &Endpoint| text(endpoint, "recordType") == "CNAME";
        let mut beside = self.endpoints.iter().filter(|endpoint| text(endpoint, "dnsName") == name);
        if beside.any(|endpoint| alias(endpoint) || alias(new)) {
            return Err(format!("{name} would have a CNAME beside other records"));
        }
        let targets = new.get("targets").and_then(Value::as_array).cloned().unwrap_or_default();
        if targets.is_empty() || (alias(new) && targets.len() > 1) {
            return Err(format!("{name} has {} targets", targets.len()));
        }
        if targets.iter().any(|target| *target == json!("198.51.100.66")) {
            return Err(format!("{name} has an address that is not allowed"));
        }
        let mut held = new.clone();
        if !self.habits.keeps_ttl {
            held.remove("recordTTL");
        }
        if self.habits.strips_quotes && kind == "TXT" {
            let bare = targets.iter().filter_map(Value::as_str).map(|target| target.trim_matches('"'));
            held.insert("targets".into(), bare.map(Value::from).collect());
        }
        self.endpoints.push(held);
        Ok(())
    }
}
