//! [`IpamReceiver`]: a receiver of the IPAM webhook that keeps all of its rules.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Map, Value, json};

use crate::{
    dns::{WebhookFault, webhook_faults, webhook_signature_problem},
    fake_http::{FakeHttp, HttpRequest, HttpResponse},
};

/// The path that the receiver lies below.
const BASE: &str = "/ipam";
/// Objects of one page.
const PAGE: usize = 100;

/// A running receiver with some objects.
pub struct IpamReceiver {
    http: FakeHttp,
    state: Arc<State>,
}

struct State {
    secret: String,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// By id.
    objects: BTreeMap<u64, Value>,
    next: u64,
    /// Answers by idempotency key, with the body they are for.
    answered: BTreeMap<String, (Vec<u8>, HttpResponse)>,
    /// Kinds and keys whose changes are rejected.
    rejected: Vec<String>,
    carried_out: usize,
    repeated: usize,
    locked: bool,
}

impl IpamReceiver {
    /// Starts one that trusts `secret` and holds nothing.
    pub fn start(secret: &str) -> Self {
        let state = Arc::new(State { secret: secret.into(), held: Mutex::default() });
        let inside = Arc::clone(&state);
        Self { http: FakeHttp::start(move |request| inside.answer(request)), state }
    }

    pub fn url(&self) -> String {
        format!("{}{BASE}", self.http.url())
    }

    /// Plans faults for the next changes.
    pub fn fail(&self, faults: &[WebhookFault]) {
        webhook_faults(&self.http, faults);
    }

    pub fn requests(&self) -> usize {
        self.http.count()
    }

    /// Requests with changes: carried out, and recognised as repetitions.
    pub fn changes(&self) -> (usize, usize) {
        let held = self.state.held();
        (held.carried_out, held.repeated)
    }

    /// Refuses every client from now on, or trusts the secret again.
    pub fn lock(&self, locked: bool) {
        self.state.held().locked = locked;
    }

    /// Rejects changes of objects of these kinds, or with these keys, from now on.
    pub fn reject(&self, which: &[&str]) {
        self.state.held().rejected = which.iter().map(|one| (*one).to_owned()).collect();
    }

    /// All objects, as the listing gives them, in the order of creation.
    pub fn objects(&self) -> Vec<Value> {
        self.state.held().objects.values().cloned().collect()
    }

    /// Each object in one line: kind, fields, and the key of its mark.
    pub fn lines(&self) -> Vec<String> {
        let line = |object: &Value| {
            let fields = object["fields"].as_object().cloned().unwrap_or_default();
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name}={}", plain(value))).collect();
            let mark = object.pointer("/mark/key").and_then(Value::as_str).unwrap_or("not marked");
            format!("{} {} ({mark})", plain(&object["kind"]), fields.join(" "))
        };
        self.objects().iter().map(line).collect()
    }

    /// Puts an object there, as another program would, and gives its id.
    pub fn put(&self, kind: &str, fields: &Value) -> String {
        self.state.held().add(kind, &Value::Null, fields)
    }

    /// Changes a field of an object, as another program would; `null` empties it.
    pub fn set(&self, id: &str, field: &str, value: &Value) {
        let mut held = self.state.held();
        if let Some(fields) = held.fields(id) {
            if value.is_null() {
                fields.remove(field);
            } else {
                fields.insert(field.to_owned(), value.clone());
            }
        }
    }

    /// Removes an object, as another program would.
    pub fn remove(&self, id: &str) {
        let id = id.parse().unwrap_or_default();
        self.state.held().objects.remove(&id);
    }

    pub fn stop(&self) {
        self.http.stop();
    }

    pub fn restart(&self) {
        self.http.restart();
    }
}

impl std::fmt::Debug for IpamReceiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "IpamReceiver({})", self.url())
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(map) if map.contains_key("ref") => map.get("ref").map(plain).unwrap_or_default(),
        other => other.to_string(),
    }
}

fn error(status: u16, word: &str) -> HttpResponse {
    HttpResponse::value(status, &json!({ "error": word }))
}

/// Whether the object carries this mark.
fn is_marked(object: &Value, owner: &str, key: &str) -> bool {
    object["mark"] == json!({ "owner": owner, "key": key })
}

fn outcome(word: &str) -> Value {
    json!({ "outcome": word })
}

fn rejected(reason: &str) -> Value {
    json!({ "outcome": "rejected", "reason": reason })
}

impl State {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, request: &HttpRequest) -> HttpResponse {
        #[expect(clippy::disallowed_methods, reason = "a receiver has a clock of its own")]
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        if let Some(problem) = webhook_signature_problem(&self.secret, request, BASE, now) {
            return error(401, problem);
        }
        let mut held = self.held();
        if held.locked {
            return error(403, "the secret was revoked");
        }
        let path = request.path.strip_prefix(BASE).unwrap_or_default();
        match (request.method.as_str(), path) {
            ("GET", "/v1/objects") => held.list(0),
            ("GET", page) => match page.strip_prefix("/v1/objects/after/").and_then(|id| id.parse().ok()) {
                Some(after) => held.list(after),
                None => error(404, "no such page"),
            },
            ("POST", "/v1/changes") => held.changes(request),
            _ => error(404, "no such path"),
        }
    }
}

impl Held {
    fn list(&self, after: u64) -> HttpResponse {
        let mut rest = self.objects.range(after + 1..);
        let page: Vec<(&u64, &Value)> = rest.by_ref().take(PAGE).collect();
        let last = page.last().map(|(id, _)| id.to_string()).filter(|_| rest.next().is_some());
        let objects: Vec<&Value> = page.into_iter().map(|(_, object)| object).collect();
        HttpResponse::value(200, &json!({ "objects": objects, "next": last }))
    }

    fn changes(&mut self, request: &HttpRequest) -> HttpResponse {
        let key = request.header("idempotency-key").unwrap_or_default().to_owned();
        if key.is_empty() {
            return error(400, "there is no idempotency key");
        }
        if let Some((body, answer)) = self.answered.get(&key) {
            self.repeated += 1;
            return if *body == request.body { answer.clone() } else { error(422, "the key is used") };
        }
        let answer = self.carry_out(&request.body);
        self.answered.insert(key, (request.body.clone(), answer.clone()));
        answer
    }

    fn carry_out(&mut self, body: &[u8]) -> HttpResponse {
        let Ok(body) = serde_json::from_slice::<Value>(body) else { return error(400, "no JSON") };
        let (Some(owner), Some(units)) =
            (body.get("owner").and_then(Value::as_str), body.get("units").and_then(Value::as_array))
        else {
            return error(400, "a field is missing");
        };
        self.carried_out += 1;
        let outcomes: Vec<Value> = units.iter().map(|unit| self.apply(owner, unit)).collect();
        HttpResponse::value(200, &json!({ "outcomes": outcomes }))
    }

    fn add(&mut self, kind: &str, mark: &Value, fields: &Value) -> String {
        self.next += 1;
        let id = self.next.to_string();
        let object = json!({ "kind": kind, "id": id, "mark": mark, "fields": fields });
        self.objects.insert(self.next, object);
        id
    }

    fn fields(&mut self, id: &str) -> Option<&mut Map<String, Value>> {
        let id = id.parse().ok()?;
        self.objects.get_mut(&id)?.get_mut("fields")?.as_object_mut()
    }

    fn marked(&self, owner: &str, key: &str) -> Option<&Value> {
        self.objects.values().find(|object| is_marked(object, owner, key))
    }

    /// Applies a unit wholly or not at all.
    fn apply(&mut self, owner: &str, unit: &Value) -> Value {
        let text = |name: &str| unit.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (action, kind, key, id) = (text("action"), text("kind"), text("key"), text("id"));
        let fields = |name: &str| unit.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
        let (before, after) = (fields("before"), fields("after"));
        if self.rejected.contains(&kind) || self.rejected.contains(&key) {
            return rejected(&format!("no {kind} today"));
        }
        let lost = after.values().filter_map(|value| value.get("ref")).filter_map(Value::as_str);
        if let Some(lost) = lost.into_iter().find(|target| self.marked(owner, target).is_none()) {
            return rejected(&format!("there is no {lost}"));
        }
        match action.as_str() {
            "create" => self.create(owner, &kind, &key, after),
            "update" => self.update(owner, &key, &id, unit["adopt"] == true, &before, &after),
            "delete" => self.delete(owner, &key, &id),
            _ => rejected("what is that?"),
        }
    }

    fn create(&mut self, owner: &str, kind: &str, key: &str, after: Map<String, Value>) -> Value {
        if let Some(there) = self.marked(owner, key) {
            let same = there["fields"].as_object() == Some(&after);
            return outcome(if same { "applied" } else { "changed" });
        }
        let address = |fields: &Value| {
            fields["address"].as_str().and_then(|text| text.split('/').next()).map(str::to_owned)
        };
        let after = Value::Object(after);
        let own = address(&after);
        if kind == "address" && self.objects.values().any(|other| address(&other["fields"]) == own) {
            return rejected("the address is there already");
        }
        self.add(kind, &json!({ "owner": owner, "key": key }), &after);
        outcome("applied")
    }

    fn update(
        &mut self,
        owner: &str,
        key: &str,
        id: &str,
        adopt: bool,
        before: &Map<String, Value>,
        after: &Map<String, Value>,
    ) -> Value {
        let Some(number) = id.parse().ok().filter(|id| self.objects.contains_key(id)) else {
            return outcome("changed");
        };
        let Some(object) = self.objects.get_mut(&number) else { return outcome("changed") };
        let adopted = adopt && object["mark"].is_null();
        if !adopted && !is_marked(object, owner, key) {
            return outcome("changed");
        }
        let names = || before.keys().chain(after.keys());
        let there = |name: &String| object["fields"].get(name);
        let done = names().all(|name| there(name) == after.get(name));
        if !done && !names().all(|name| there(name) == before.get(name)) {
            return outcome("changed");
        }
        object["mark"] = json!({ "owner": owner, "key": key });
        if let Some(fields) = object["fields"].as_object_mut() {
            fields.retain(|name, _| !before.contains_key(name));
            fields.extend(after.clone());
        }
        outcome("applied")
    }

    fn delete(&mut self, owner: &str, key: &str, id: &str) -> Value {
        let Some(number) = id.parse::<u64>().ok().filter(|id| self.objects.contains_key(id)) else {
            return outcome("applied");
        };
        let Some(object) = self.objects.get(&number) else { return outcome("applied") };
        if !is_marked(object, owner, key) {
            return outcome("changed");
        }
        let refers = |other: &&Value| {
            let fields = other["fields"].as_object().into_iter().flat_map(Map::iter);
            let mut held = fields.filter(|(name, _)| !name.starts_with("primary_"));
            held.any(|(_, value)| value.get("ref").and_then(Value::as_str) == Some(key))
        };
        if self.objects.values().any(|other| refers(&other)) {
            return rejected("something still hangs on it");
        }
        self.objects.remove(&number);
        for other in self.objects.values_mut() {
            if let Some(fields) = other["fields"].as_object_mut() {
                fields.retain(|_, value| value.get("ref").and_then(Value::as_str) != Some(key));
            }
        }
        outcome("applied")
    }
}
