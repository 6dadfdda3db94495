//! [`WebhookReceiver`]: a receiver of Netstead's own protocol that keeps all of its rules.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

use super::{WebhookFault, plan, signature};
use crate::fake_http::{FakeHttp, HttpRequest, HttpResponse};

/// The path that the receiver lies below.
const BASE: &str = "/hook";

/// A record set: its time to live and values.
type Set = (u64, BTreeSet<String>);

/// A running receiver with some zones.
pub struct WebhookReceiver {
    http: FakeHttp,
    state: Arc<State>,
}

struct State {
    secret: String,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    zones: BTreeMap<String, Zone>,
    /// Answers by idempotency key, with the body they are for.
    answered: BTreeMap<String, (Vec<u8>, HttpResponse)>,
    fences: BTreeMap<(String, String), (u64, u64)>,
    /// Requests with changes that were carried out.
    carried_out: usize,
    /// Requests with changes that were recognised as repetitions.
    repeated: usize,
    locked: bool,
}

#[derive(Debug, Default, Clone)]
struct Zone {
    serial: u64,
    read_only: bool,
    sets: BTreeMap<(String, String), Set>,
}

impl WebhookReceiver {
    /// Starts one that trusts `secret` and holds these zones.
    pub fn start(secret: &str, zones: &[&str]) -> Self {
        let held = Held {
            zones: zones.iter().map(|zone| ((*zone).to_owned(), Zone::default())).collect(),
            ..Held::default()
        };
        let state = Arc::new(State { secret: secret.into(), held: Mutex::new(held) });
        let inside = Arc::clone(&state);
        Self { http: FakeHttp::start(move |request| inside.answer(request)), state }
    }

    pub fn http(&self) -> &FakeHttp {
        &self.http
    }

    pub fn url(&self) -> String {
        format!("{}{BASE}", self.http.url())
    }

    /// Plans faults for the next changes.
    pub fn fail(&self, faults: &[WebhookFault]) {
        plan(&self.http, faults);
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

    pub fn make_read_only(&self, zone: &str) {
        if let Some(zone) = self.state.held().zones.get_mut(zone) {
            zone.read_only = true;
        }
    }

    /// Puts a set there, as another program would.
    pub fn put(&self, zone: &str, name: &str, kind: &str, values: &[&str]) {
        if let Some(zone) = self.state.held().zones.get_mut(zone) {
            let values = values.iter().map(|value| (*value).to_owned()).collect();
            zone.sets.insert((name.into(), kind.into()), (300, values));
            zone.serial += 1;
        }
    }

    pub fn stop(&self) {
        self.http.stop();
    }

    pub fn restart(&self) {
        self.http.restart();
    }
}

impl std::fmt::Debug for WebhookReceiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WebhookReceiver({})", self.url())
    }
}

fn error(status: u16, word: &str) -> HttpResponse {
    HttpResponse::value(status, &json!({ "error": word }))
}

impl State {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, request: &HttpRequest) -> HttpResponse {
        let locked = self.held().locked;
        #[expect(clippy::disallowed_methods, reason = "a receiver has a clock of its own")]
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        if let Some(problem) = signature::problem(&self.secret, request, BASE, now) {
            return error(401, problem);
        }
        if locked {
            return error(403, "the secret was revoked");
        }
        let path = request.path.strip_prefix(BASE).unwrap_or_default().to_owned();
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        match (request.method.as_str(), parts.as_slice()) {
            ("GET", ["v1", "zones"]) => self.zones(),
            ("GET", ["v1", "zones", zone]) => self.zone(zone),
            ("POST", ["v1", "zones", zone, "changes"]) => self.held().changes(zone, request),
            _ => error(404, "no such path"),
        }
    }

    fn zones(&self) -> HttpResponse {
        let held = self.held();
        let zones = held.zones.iter().map(|(name, zone)| {
            json!({ "name": name, "sign": zone.serial.to_string(), "writable": !zone.read_only })
        });
        HttpResponse::value(200, &json!({ "zones": zones.collect::<Vec<Value>>() }))
    }

    fn zone(&self, name: &str) -> HttpResponse {
        let held = self.held();
        let Some(zone) = held.zones.get(name) else { return error(404, "no such zone") };
        let sets = zone.sets.iter().map(|((name, kind), (ttl, values))| {
            json!({ "name": name, "type": kind, "ttl": ttl, "values": values })
        });
        let sets: Vec<Value> = sets.collect();
        HttpResponse::value(200, &json!({ "name": name, "sign": zone.serial.to_string(), "sets": sets }))
    }
}

impl Held {
    fn changes(&mut self, name: &str, request: &HttpRequest) -> HttpResponse {
        let key = request.header("idempotency-key").unwrap_or_default().to_owned();
        if key.is_empty() {
            return error(400, "there is no idempotency key");
        }
        if let Some((body, answer)) = self.answered.get(&key) {
            self.repeated += 1;
            return if *body == request.body { answer.clone() } else { error(422, "the key is used") };
        }
        let answer = self.carry_out(name, &request.body);
        self.answered.insert(key, (request.body.clone(), answer.clone()));
        answer
    }

    fn carry_out(&mut self, name: &str, body: &[u8]) -> HttpResponse {
        let Ok(body) = serde_json::from_slice::<Value>(body) else { return error(400, "no JSON") };
        let Some(zone) = self.zones.get_mut(name) else { return error(404, "no such zone") };
        let (Some(owner), Some(epoch), Some(generation), Some(units)) = (
            body.get("owner").and_then(Value::as_str),
            body.get("epoch").and_then(Value::as_u64),
            body.get("generation").and_then(Value::as_u64),
            body.get("units").and_then(Value::as_array),
        ) else {
            return error(400, "a field is missing");
        };
        let fence = self.fences.entry((name.to_owned(), owner.to_owned())).or_default();
        // One write may come in several requests with the same fence.
        if (epoch, generation) < *fence {
            return error(409, "late");
        }
        *fence = (epoch, generation);
        self.carried_out += 1;
        let outcomes: Vec<Value> = units.iter().map(|unit| zone.apply(name, unit)).collect();
        HttpResponse::value(200, &json!({ "outcomes": outcomes }))
    }
}

/// A set in JSON; none for `null`.
fn set_of(value: &Value) -> Option<Set> {
    let values = value.get("values")?.as_array()?.iter();
    Some((value.get("ttl")?.as_u64()?, values.filter_map(Value::as_str).map(str::to_owned).collect()))
}

fn rejected(reason: &str) -> Value {
    json!({ "outcome": "rejected", "reason": reason })
}

impl Zone {
    /// Applies a unit wholly or not at all.
    fn apply(&mut self, zone: &str, unit: &Value) -> Value {
        if self.read_only {
            return rejected("the zone is read-only");
        }
        let mut after = self.sets.clone();
        let (mut done, mut expected) = (true, true);
        for change in unit.get("changes").and_then(Value::as_array).into_iter().flatten() {
            let text = |key: &str| change.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            let key = (text("name"), text("type"));
            if key.0 != zone && !key.0.ends_with(&format!(".{zone}")) {
                return rejected("it is not in the zone");
            }
            let [old, new] = ["before", "after"].map(|key| change.get(key).and_then(set_of));
            let current = self.sets.get(&key);
            done &= current == new.as_ref();
            expected &=
                current.map(|set| &set.1) == old.as_ref().map(|set| &set.1) || current == new.as_ref();
            match new {
                Some(set) => after.insert(key, set),
                None => after.remove(&key),
            };
        }
        if done {
            return json!({ "outcome": "applied" });
        }
        if !expected {
            return json!({ "outcome": "changed" });
        }
        let name = unit.get("name").and_then(Value::as_str).unwrap_or_default();
        let types: BTreeSet<&str> =
            after.keys().filter(|key| key.0 == name).map(|key| key.1.as_str()).collect();
        if types.contains("CNAME") && types.len() > 1 {
            return rejected("a CNAME stands alone");
        }
        self.sets = after;
        self.serial += 1;
        json!({ "outcome": "applied" })
    }
}
