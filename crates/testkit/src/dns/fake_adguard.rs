//! [`FakeAdGuard`]: the rewrites of AdGuard Home as its API has them, for faults that the real one cannot be told to have.

use std::{
    net::Ipv4Addr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::{Value, json};

use crate::fake_http::{FakeHttp, HttpRequest, HttpResponse};

/// `netstead:netstead-test` as HTTP sends it.
const BASIC: &str = "Basic bmV0c3RlYWQ6bmV0c3RlYWQtdGVzdA==";
/// After so many refused logins every login is refused.
const MOST_FAILURES: usize = 5;

/// The version that it pretends to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AdGuardVersion {
    /// Adds and deletes only.
    V0_107_20,
    /// Changes a rewrite in place.
    V0_107_60,
    /// A rewrite can be disabled.
    V0_107_79,
}

/// An AdGuard Home that only has rewrites.
#[derive(Debug)]
pub struct FakeAdGuard {
    http: FakeHttp,
    held: Arc<Mutex<Held>>,
}

#[derive(Debug, Default)]
struct Held {
    /// Domain, answer, enabled.
    rewrites: Vec<(String, String, bool)>,
    failures: usize,
    revoked: bool,
}

impl FakeAdGuard {
    pub fn start(version: AdGuardVersion) -> Self {
        Self::start_at(Ipv4Addr::LOCALHOST, version)
    }

    /// The same at another address of this machine.
    pub fn start_at(host: Ipv4Addr, version: AdGuardVersion) -> Self {
        let held: Arc<Mutex<Held>> = Arc::default();
        let inside = Arc::clone(&held);
        let http = FakeHttp::start_at(host, move |request| answer(request, version, &mut lock(&inside)));
        Self { http, held }
    }

    /// The server itself: its address, and the faults that it is told to have.
    pub fn http(&self) -> &FakeHttp {
        &self.http
    }

    /// Changes the password, or changes it back.
    pub fn revoke(&self, revoked: bool) {
        lock(&self.held).revoked = revoked;
    }

    /// How many logins were refused.
    pub fn failures(&self) -> usize {
        lock(&self.held).failures
    }

    /// All rewrites: domain, answer, enabled.
    pub fn rewrites(&self) -> Vec<(String, String, bool)> {
        lock(&self.held).rewrites.clone()
    }

    /// Forgets all of them, as a server does that was installed again.
    pub fn lose_rewrites(&self) {
        lock(&self.held).rewrites.clear();
    }

    /// Adds one as a person does in the web interface.
    pub fn add(&self, domain: &str, answer: &str, enabled: bool) {
        lock(&self.held).rewrites.push((domain.into(), answer.into(), enabled));
    }
}

fn lock(held: &Mutex<Held>) -> MutexGuard<'_, Held> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(request: &HttpRequest, version: AdGuardVersion, held: &mut Held) -> HttpResponse {
    let login = request.header("authorization").is_some_and(|login| login == BASIC);
    if !login || held.revoked || held.failures >= MOST_FAILURES {
        held.failures += 1;
        return HttpResponse::new(401, "");
    }
    held.failures = 0;
    let changes = request.method != "GET";
    if changes && request.header("content-type").is_none_or(|kind| kind != "application/json") {
        return HttpResponse::new(415, "only content-type application/json is allowed\n");
    }
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/control/rewrite/list") => HttpResponse::json(200, list(version, held).to_string()),
        ("POST", "/control/rewrite/add") => match entry(&request.text(), "") {
            Ok((domain, answer, enabled)) => {
                if !valid(&answer) {
                    return HttpResponse::new(400, format!("normalizing: invalid CNAME target {answer:?}\n"));
                }
                let enabled = enabled.unwrap_or(true) || version < AdGuardVersion::V0_107_79;
                held.rewrites.push((domain.to_lowercase(), answer, enabled));
                HttpResponse::new(200, "")
            }
            Err(problem) => HttpResponse::new(400, problem),
        },
        ("POST", "/control/rewrite/delete") => match entry(&request.text(), "") {
            Ok((domain, answer, _)) => {
                held.rewrites.retain(|one| (&one.0, &one.1) != (&domain, &answer));
                HttpResponse::new(200, "")
            }
            Err(problem) => HttpResponse::new(400, problem),
        },
        ("PUT", "/control/rewrite/update") if version > AdGuardVersion::V0_107_20 => {
            update(&request.text(), held)
        }
        (_, "/control/rewrite/add" | "/control/rewrite/delete" | "/control/rewrite/list") => {
            HttpResponse::new(405, "only the right method is allowed\n")
        }
        _ => HttpResponse::new(404, "404 page not found\n"),
    }
}

fn list(version: AdGuardVersion, held: &Held) -> Value {
    let one = |(domain, answer, enabled): &(String, String, bool)| {
        let mut one = json!({ "domain": domain, "answer": answer });
        if let (AdGuardVersion::V0_107_79, Some(one)) = (version, one.as_object_mut()) {
            one.insert("enabled".into(), json!(enabled));
        }
        one
    };
    held.rewrites.iter().map(one).collect()
}

fn update(body: &str, held: &mut Held) -> HttpResponse {
    let (old, new) = match (entry(body, "/target"), entry(body, "/update")) {
        (Ok(old), Ok(new)) => (old, new),
        (Err(problem), _) | (_, Err(problem)) => return HttpResponse::new(400, problem),
    };
    if !valid(&new.1) {
        return HttpResponse::new(400, format!("normalizing: invalid CNAME target {:?}\n", new.1));
    }
    match held.rewrites.iter_mut().find(|one| (&one.0, &one.1) == (&old.0, &old.1)) {
        Some(one) => {
            *one = (new.0.to_lowercase(), new.1, new.2.unwrap_or(one.2));
            HttpResponse::new(200, "")
        }
        None => HttpResponse::new(400, "target rule not found\n"),
    }
}

/// Domain, answer and whether it is enabled, from the object at `pointer`.
fn entry(body: &str, pointer: &str) -> Result<(String, String, Option<bool>), String> {
    let body: Value = serde_json::from_str(body).map_err(|error| format!("json.Decode: {error}\n"))?;
    let object = body.pointer(pointer).ok_or("json.Decode: no such object\n")?;
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok((text("domain"), text("answer"), object.get("enabled").and_then(Value::as_bool)))
}

/// An address, a name, or one of the two words with a meaning of their own.
fn valid(answer: &str) -> bool {
    let label = |label: &str| {
        let inner = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        !label.is_empty() && label.len() < 64 && label.chars().all(inner)
    };
    matches!(answer, "A" | "AAAA")
        || answer.parse::<std::net::IpAddr>().is_ok()
        || answer.split('.').all(label)
}
