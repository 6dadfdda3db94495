//! A fake of Cloudflare's API: the part about zones and their records, as strict as the real one.

mod records;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::{Value, json};

use self::records::Refusal;
use crate::fake_http::{FakeHttp, HttpRequest, HttpResponse};

const TOKEN: &str = "cloudflare-test-token";

/// A running fake.
#[derive(Debug)]
pub struct FakeCloudflare {
    http: FakeHttp,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    /// The permissions of the token; none if it is not valid.
    permissions: Option<Vec<&'static str>>,
    zones: BTreeMap<String, Zone>,
    /// The most entries in one page, however many are asked for.
    page: usize,
    /// So many more requests are answered.
    left: usize,
    next: u64,
    /// A page that is shown empty.
    missing_page: Option<usize>,
}

#[derive(Debug)]
struct Zone {
    name: String,
    records: Vec<Value>,
}

const ALL: [&str; 3] = ["#zone:read", "#dns_records:read", "#dns_records:edit"];

impl FakeCloudflare {
    pub fn start(zones: &[&str]) -> Self {
        let zone = |(number, name): (usize, &&str)| {
            (format!("{number:032x}"), Zone { name: (*name).to_owned(), records: Vec::new() })
        };
        let state = State {
            permissions: Some(ALL.to_vec()),
            zones: zones.iter().enumerate().map(zone).collect(),
            page: 5_000,
            left: 1_200,
            next: 1,
            missing_page: None,
        };
        let state = Arc::new(Mutex::new(state));
        let inside = Arc::clone(&state);
        let answer = move |request: &HttpRequest| {
            inside.lock().unwrap_or_else(PoisonError::into_inner).answer(request)
        };
        Self { http: FakeHttp::start(answer), state }
    }

    pub fn http(&self) -> &FakeHttp {
        &self.http
    }

    pub fn url(&self) -> String {
        format!("{}/client/v4", self.http.url())
    }

    pub fn token(&self) -> &'static str {
        TOKEN
    }

    /// The id of a zone.
    pub fn zone_id(&self, name: &str) -> Option<String> {
        self.state().zones.iter().find(|(_, zone)| zone.name == name).map(|(id, _)| id.clone())
    }

    /// Gives the token these permissions; none makes it invalid.
    pub fn set_permissions(&self, permissions: Option<&[&'static str]>) {
        self.state().permissions = permissions.map(<[_]>::to_vec);
    }

    /// Shows at most so many entries in one page.
    pub fn set_page(&self, most: usize) {
        self.state().page = most;
    }

    /// Shows this page as an empty one.
    pub fn lose_page(&self, number: Option<usize>) {
        self.state().missing_page = number;
    }

    /// Answers so many more requests before it asks to slow down.
    pub fn set_left(&self, requests: usize) {
        self.state().left = requests;
    }

    /// Makes a record as a person does in the dashboard.
    ///
    /// # Panics
    ///
    /// If it refuses that.
    #[expect(clippy::panic, reason = "this is how a test fails")]
    pub fn by_hand(&self, zone: &str, record: Value) {
        let mut state = self.state();
        let id = state.fresh_id();
        let Some(zone) = state.zones.values_mut().find(|own| own.name == zone) else { panic!("no {zone}") };
        if let Err(refusal) = zone.post(record, &id) {
            panic!("{refusal:?}");
        }
    }

    /// The records of a zone as the API shows them.
    pub fn records(&self, zone: &str) -> Vec<Value> {
        let state = self.state();
        let found = state.zones.values().find(|own| own.name == zone);
        found.map(|zone| zone.records.clone()).unwrap_or_default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refused(status: u16, code: u64, message: &str) -> HttpResponse {
    let errors = json!([{ "code": code, "message": message }]);
    let body = json!({ "success": false, "errors": errors, "messages": [], "result": null });
    HttpResponse::json(status, body.to_string())
}

fn done(result: &Value, info: Option<Value>) -> HttpResponse {
    let mut body = json!({ "success": true, "errors": [], "messages": [], "result": result });
    if let (Some(body), Some(info)) = (body.as_object_mut(), info) {
        body.insert("result_info".into(), info);
    }
    HttpResponse::json(200, body.to_string())
}

impl State {
    fn fresh_id(&mut self) -> String {
        self.next += 1;
        format!("{:032x}", self.next)
    }

    fn may(&self, permission: &str) -> bool {
        self.permissions.as_ref().is_some_and(|all| all.contains(&permission))
    }

    fn answer(&mut self, request: &HttpRequest) -> HttpResponse {
        let Some(left) = self.left.checked_sub(1) else {
            return refused(429, 971, "Please wait and consider throttling your request speed.")
                .header("retry-after", "120");
        };
        self.left = left;
        match request.header("authorization").and_then(|value| value.strip_prefix("Bearer ")) {
            None => return refused(400, 6003, "Invalid request headers"),
            Some(token) if token != TOKEN || self.permissions.is_none() => {
                return refused(403, 9109, "Invalid access token");
            }
            Some(_) => {}
        }
        let denied = || refused(403, 10_000, "Authentication error");
        let path = request.path.strip_prefix("/client/v4/").unwrap_or_default().to_owned();
        let parts: Vec<&str> = path.split('/').collect();
        match (request.method.as_str(), parts.as_slice()) {
            ("GET", ["zones"]) if self.may("#zone:read") => self.list_zones(request),
            ("GET", ["zones", id]) if self.may("#zone:read") => match self.zones.get(*id) {
                Some(zone) => done(&self.shown(id, zone), None),
                None => refused(404, 1001, "Invalid zone identifier"),
            },
            ("GET", ["zones", id, "dns_records"]) if self.may("#dns_records:read") => {
                match self.zones.get(*id) {
                    Some(zone) => self.page(request, &zone.records, 5_000_000),
                    None => refused(
                        404,
                        7003,
                        "Could not route to the zone, perhaps your object identifier is invalid?",
                    ),
                }
            }
            ("POST", ["zones", id, "dns_records", "batch"]) if self.may("#dns_records:edit") => {
                self.batch(id, &request.body)
            }
            (_, ["zones", ..]) => denied(),
            _ => refused(404, 7000, "No route for that URI"),
        }
    }

    fn shown(&self, id: &str, zone: &Zone) -> Value {
        json!({ "id": id, "name": zone.name, "status": "active", "type": "full", "permissions": self.permissions })
    }

    fn list_zones(&self, request: &HttpRequest) -> HttpResponse {
        let named = |zone: &Zone| request.parameter("name").is_none_or(|name| name == zone.name);
        let zones = self.zones.iter().filter(|(_, zone)| named(zone));
        let zones: Vec<Value> = zones.map(|(id, zone)| self.shown(id, zone)).collect();
        self.page(request, &zones, 50)
    }

    fn page(&self, request: &HttpRequest, all: &[Value], most: usize) -> HttpResponse {
        let number = |name: &str, usual: usize| match request.parameter(name) {
            Some(text) => text.parse::<usize>().ok().filter(|number| *number > 0),
            None => Some(usual),
        };
        let (Some(size), Some(page)) = (number("per_page", 20), number("page", 1)) else {
            return refused(400, 1004, "Invalid paging");
        };
        if size > most {
            return refused(400, 1004, "per_page is too large");
        }
        let size = size.min(self.page);
        let part: Vec<Value> = all.iter().skip((page - 1) * size).take(size).cloned().collect();
        let part = if self.missing_page == Some(page) { Vec::new() } else { part };
        let info = json!({
            "page": page, "per_page": size, "count": part.len(), "total_count": all.len(),
            "total_pages": all.len().div_ceil(size),
        });
        done(&Value::Array(part), Some(info))
    }

    /// One transaction: deletes, then patches, then posts.
    fn batch(&mut self, id: &str, body: &[u8]) -> HttpResponse {
        let Ok(body) = serde_json::from_slice::<Value>(body) else { return refused(400, 9207, "Bad JSON") };
        let list = |name: &str| body.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
        let (deletes, patches, posts) = (list("deletes"), list("patches"), list("posts"));
        let count = deletes.len() + patches.len() + posts.len();
        if count == 0 || count > 200 {
            return refused(400, 81_063, "Number of records in the batch exceeds the limit of 200.");
        }
        let ids: Vec<String> = posts.iter().map(|_| self.fresh_id()).collect();
        let Some(zone) = self.zones.get_mut(id) else {
            return refused(
                404,
                7003,
                "Could not route to the zone, perhaps your object identifier is invalid?",
            );
        };
        let before = zone.records.clone();
        let run = || -> Result<(), Refusal> {
            deletes.iter().try_for_each(|delete| zone.delete(delete))?;
            patches.iter().try_for_each(|patch| zone.patch(patch))?;
            posts.into_iter().zip(ids).try_for_each(|(post, id)| zone.post(post, &id))
        };
        match run() {
            Ok(()) => done(&json!({ "deletes": [], "patches": [], "puts": [], "posts": [] }), None),
            Err((code, message)) => {
                zone.records = before;
                refused(400, code, message)
            }
        }
    }
}
