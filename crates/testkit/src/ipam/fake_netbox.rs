//! [`FakeNetBox`]: a NetBox of an older version, for shapes and faults that the real one of the tests does not have.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::{Map, Value, json};

use crate::{FakeHttp, HttpRequest, HttpResponse};

const TOKEN: &str = "0123456789abcdef0123456789abcdef01234567";

/// A fake NetBox. It knows no filter but the one for pages, ignores all others as the real one ignores those that it does not
/// know, and refuses a batch without naming the member.
#[derive(Debug)]
pub struct FakeNetBox {
    http: FakeHttp,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    version: String,
    /// Objects by their list and id.
    lists: BTreeMap<String, BTreeMap<u64, Map<String, Value>>>,
    next: u64,
    /// The most objects of a page.
    page: usize,
}

impl FakeNetBox {
    /// Starts one that says this version: `3.7`.
    pub fn start(version: &str) -> Self {
        let state = State { version: version.to_owned(), page: 50, ..State::default() };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        let http = FakeHttp::start(move |request| {
            let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
            state.answer(request).header("api-version", &state.version.clone())
        });
        Self { http, state }
    }

    pub fn url(&self) -> String {
        self.http.url()
    }

    /// The token that it knows.
    pub fn token(&self) -> &'static str {
        TOKEN
    }

    pub fn http(&self) -> &FakeHttp {
        &self.http
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The objects of a list, such as `/api/ipam/prefixes/`.
    pub fn list(&self, path: &str) -> Vec<Value> {
        let state = self.state();
        state.lists.get(path).into_iter().flat_map(|all| all.values().cloned().map(Value::Object)).collect()
    }

    /// Puts an object into a list, and gives its id.
    pub fn put(&self, path: &str, body: &Value) -> u64 {
        let body = body.as_object().cloned().unwrap_or_default();
        self.state().put(path, body)
    }

    /// Changes a field, as a person would.
    pub fn set(&self, path: &str, id: u64, field: &str, value: &Value) {
        if let Some(object) = self.state().lists.get_mut(path).and_then(|all| all.get_mut(&id)) {
            object.insert(field.to_owned(), value.clone());
        }
    }
}

impl State {
    fn answer(&mut self, request: &HttpRequest) -> HttpResponse {
        let token = request.header("authorization").and_then(|value| value.strip_prefix("Token "));
        if token != Some(TOKEN) {
            return HttpResponse::value(403, &json!({ "detail": "Invalid token" }));
        }
        let path = request.path.clone();
        let body: Value = serde_json::from_str(&request.text()).unwrap_or(Value::Null);
        let last = path.trim_end_matches('/').rsplit_once('/');
        let one = last.and_then(|(list, id)| Some((format!("{list}/"), id.parse::<u64>().ok()?)));
        match (request.method.as_str(), one) {
            ("OPTIONS", _) => HttpResponse::value(200, &json!({ "actions": { "POST": {} } })),
            ("GET", None) => self.page(request, &path),
            ("GET", Some((list, id))) => match self.lists.get(&list).and_then(|all| all.get(&id)) {
                Some(object) => HttpResponse::value(200, &json!(object)),
                None => HttpResponse::value(404, &json!({ "detail": "Not found." })),
            },
            ("POST", _) => self.create(&path, body),
            ("PATCH" | "DELETE", Some((list, id))) => {
                let mut one = body.as_object().cloned().unwrap_or_default();
                one.insert("id".to_owned(), json!(id));
                self.change(&request.method, &list, vec![one])
            }
            (method, None) => {
                let all = body.as_array().into_iter().flatten().filter_map(|one| one.as_object().cloned());
                self.change(method, &path, all.collect())
            }
            _ => HttpResponse::value(405, &json!({ "detail": "Method not allowed." })),
        }
    }

    fn page(&self, request: &HttpRequest, path: &str) -> HttpResponse {
        let after = request.parameter("id__gt").and_then(|id| id.parse().ok()).unwrap_or(0_u64);
        let all = self.lists.get(path).into_iter().flatten().filter(|(id, _)| **id > after);
        let all: Vec<&Map<String, Value>> = all.map(|(_, object)| object).collect();
        let next = if all.len() > self.page { json!("http://elsewhere.test/") } else { Value::Null };
        let page: Vec<_> = all.iter().take(self.page).collect();
        HttpResponse::value(
            200,
            &json!({ "count": all.len(), "next": next, "previous": null, "results": page }),
        )
    }

    fn create(&mut self, path: &str, body: Value) -> HttpResponse {
        let many = body.is_array();
        let bodies = match body {
            Value::Array(all) => all,
            one => vec![one],
        };
        let bodies: Vec<Map<String, Value>> =
            bodies.into_iter().filter_map(|one| one.as_object().cloned()).collect();
        // Names have so many characters at most.
        let long = |body: &Map<String, Value>| {
            body.get("name").and_then(Value::as_str).is_some_and(|name| name.len() > 64)
        };
        if bodies.iter().any(long) {
            return HttpResponse::value(400, &json!({ "detail": "A name is too long." }));
        }
        let made: Vec<Value> = bodies
            .into_iter()
            .map(|body| {
                let id = self.put(path, body);
                json!(self.lists.get(path).and_then(|all| all.get(&id)))
            })
            .collect();
        let answer = if many { json!(made) } else { made.into_iter().next().unwrap_or_default() };
        HttpResponse::value(201, &answer)
    }

    fn put(&mut self, path: &str, body: Map<String, Value>) -> u64 {
        self.next += 1;
        let id = self.next;
        let mut object = self.shown(body);
        object.insert("id".to_owned(), json!(id));
        self.lists.entry(path.to_owned()).or_default().insert(id, object);
        id
    }

    fn change(&mut self, method: &str, path: &str, all: Vec<Map<String, Value>>) -> HttpResponse {
        let id_of = |one: &Map<String, Value>| one.get("id").and_then(Value::as_u64).unwrap_or_default();
        let missing =
            all.iter().any(|one| self.lists.get(path).is_none_or(|there| !there.contains_key(&id_of(one))));
        if missing {
            return HttpResponse::value(404, &json!({ "detail": "Not found." }));
        }
        for one in all {
            let (id, changed) = (id_of(&one), self.shown(one));
            let Some(there) = self.lists.get_mut(path) else { continue };
            if method == "DELETE" {
                there.remove(&id);
                continue;
            }
            let Some(object) = there.get_mut(&id) else { continue };
            for (name, value) in changed {
                // Custom fields are changed one by one.
                let own = object.get_mut(&name).and_then(Value::as_object_mut);
                match own.filter(|_| name == "custom_fields").zip(value.as_object()) {
                    Some((own, more)) => own.extend(more.clone()),
                    None => drop(object.insert(name, value)),
                }
            }
        }
        if method == "DELETE" { HttpResponse::new(204, "") } else { HttpResponse::value(200, &json!([])) }
    }

    /// Values as NetBox shows them: relations and choices as objects.
    fn shown(&self, body: Map<String, Value>) -> Map<String, Value> {
        let lists = [
            ("cluster", "/api/virtualization/clusters/"),
            ("virtual_machine", "/api/virtualization/virtual-machines/"),
            ("primary_ip4", "/api/ipam/ip-addresses/"),
            ("primary_ip6", "/api/ipam/ip-addresses/"),
            ("untagged_vlan", "/api/ipam/vlans/"),
            ("vrf", "/api/ipam/vrfs/"),
        ];
        let mut shown = Map::new();
        for (name, value) in body {
            let list = lists
                .iter()
                .find(|(relation, _)| *relation == name)
                .and_then(|(_, list)| self.lists.get(*list));
            let related = list.and_then(|all| all.get(&value.as_u64()?)).map(|object| json!(object));
            let value = match (name.as_str(), value) {
                ("status", Value::String(word)) => json!({ "value": word, "label": word }),
                // MACs are in capitals, decimals are texts.
                ("mac_address", Value::String(mac)) => json!(mac.to_uppercase()),
                ("vcpus", Value::Number(number)) => json!(format!("{number}.00")),
                ("tags", Value::Array(tags)) => {
                    let name = |mut tag: Value| {
                        if let (Some(slug), Some(tag)) = (tag.get("slug").cloned(), tag.as_object_mut()) {
                            tag.insert("name".to_owned(), slug);
                        }
                        tag
                    };
                    tags.into_iter().map(name).collect()
                }
                (_, value) => related.unwrap_or(value),
            };
            shown.insert(name, value);
        }
        shown
    }
}
