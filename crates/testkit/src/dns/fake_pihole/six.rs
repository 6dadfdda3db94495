//! The API of version 6: sessions, and lists of the configuration whose items are part of the path.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::{APP_PASSWORD, PASSWORD, PiHoleState, SEATS, valid_name};
use crate::fake_http::{HttpRequest, HttpResponse, decoded};

pub(super) fn answer(request: &HttpRequest, held: &mut PiHoleState) -> HttpResponse {
    let session = request.header("x-ftl-sid").and_then(|id| held.sessions.iter().position(|one| one.0 == id));
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/api/info/login") => {
            return reply(200, &json!({ "https_port": 443, "dns": true, "took": 0.1 }));
        }
        ("POST", "/api/auth") => return log_in(&request.text(), held),
        _ => {}
    }
    if session.is_none() && !held.without_password {
        return error(401, "unauthorized", "Unauthorized", None);
    }
    let app = session.and_then(|at| held.sessions.get(at)).is_some_and(|one| one.1);
    // Still encoded: an item may have a slash.
    let path = request.target.split('?').next().unwrap_or_default();
    match (request.method.as_str(), path) {
        ("DELETE", "/api/auth") => {
            session.map(|at| held.sessions.remove(at));
            HttpResponse::new(204, "")
        }
        ("GET", "/api/auth/sessions") => {
            let one = |(at, one): (usize, &(String, bool))| json!({ "id": at, "current_session": Some(at) == session, "app": one.1 });
            let all: Vec<Value> = held.sessions.iter().enumerate().map(one).collect();
            reply(200, &json!({ "sessions": all }))
        }
        ("GET", "/api/config/webserver/api/app_sudo") => {
            reply(200, &json!({ "config": { "webserver": { "api": { "app_sudo": held.app_sudo } } } }))
        }
        ("GET", "/api/config/dns") => {
            let dns = json!({ "hosts": held.hosts, "cnameRecords": held.aliases, "upstreams": [] });
            reply(200, &json!({ "config": { "dns": dns }, "took": 0.1 }))
        }
        ("POST", "/api/action/restartdns") if !held.allow_destructive => error(
            403,
            "forbidden",
            "Restarting DNS is not allowed",
            Some("Check setting webserver.api.allow_destructive"),
        ),
        ("POST", "/api/action/restartdns") => {
            held.restart();
            reply(200, &json!({ "status": "ok" }))
        }
        (method @ ("PUT" | "DELETE"), path) => {
            match path.strip_prefix("/api/config/dns/").and_then(|rest| rest.split_once('/')) {
                _ if app && !held.app_sudo => {
                    let hint = "The current app session is not allowed to modify Pi-hole config settings (webserver.api.app_sudo is false)";
                    error(403, "forbidden", "Unable to change configuration (read-only)", Some(hint))
                }
                Some((list @ ("hosts" | "cnameRecords"), item)) if !item.contains('/') => {
                    let restart = request.parameter("restart").is_none_or(|value| value != "false");
                    change(method == "PUT", list == "hosts", &decoded(item), restart, held)
                }
                _ => error(400, "bad_request", "Invalid path depth", None),
            }
        }
        _ => error(404, "not_found", "Not found", None),
    }
}

fn log_in(body: &str, held: &mut PiHoleState) -> HttpResponse {
    held.logins += 1;
    let session = |valid: bool, sid: Option<&str>, message: &str| {
        let validity = if sid.is_some() { 1800 } else { -1 };
        json!({ "session": { "valid": valid, "totp": false, "sid": sid, "validity": validity, "message": message } })
    };
    if held.without_password {
        return reply(200, &session(true, None, "no password set"));
    }
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let Some(password) = body.get("password").and_then(Value::as_str) else {
        return error(400, "bad_request", "No password found in JSON payload", None);
    };
    let app = password == APP_PASSWORD;
    if held.revoked || !(app || password == PASSWORD) {
        held.failures += 1;
        return reply(401, &session(false, None, "password incorrect"));
    }
    if held.second_factor && !app {
        return error(400, "bad_request", "No 2FA token found in JSON payload", None);
    }
    if held.sessions.len() >= SEATS {
        return error(
            429,
            "api_seats_exceeded",
            "API seats exceeded",
            Some("increase webserver.api.max_sessions"),
        );
    }
    // Base64, as the real ones have it.
    let id = format!("vFA+EP4MQ5JJvJg/3Q2Jn{}=", held.logins);
    held.sessions.push((id.clone(), app));
    held.most_sessions = held.most_sessions.max(held.sessions.len());
    reply(200, &session(true, Some(&id), "password correct"))
}

fn change(adds: bool, hosts: bool, item: &str, restart: bool, held: &mut PiHoleState) -> HttpResponse {
    let list = if hosts { &mut held.hosts } else { &mut held.aliases };
    let at = list.iter().position(|other| other == item);
    match (adds, at) {
        (true, Some(_)) => {
            return error(
                400,
                "bad_request",
                "Item already present",
                Some("Uniqueness of items is enforced"),
            );
        }
        (true, None) => {
            if let Err(problem) = if hosts { check_host(item) } else { check_alias(item, list) } {
                return error(400, "bad_request", "Invalid value", Some(&problem));
            }
            list.push(item.to_owned());
        }
        (false, Some(at)) => drop(list.remove(at)),
        (false, None) => return reply(404, &json!({ "took": 0.1 })),
    }
    if !hosts && restart {
        held.restart();
    }
    if adds { reply(201, &json!({ "took": 0.1 })) } else { HttpResponse::new(204, "") }
}

fn check_host(item: &str) -> Result<(), String> {
    let mut words = item.split('#').next().unwrap_or_default().split_whitespace();
    let address = words.next().unwrap_or_default();
    if address.parse::<IpAddr>().is_err() {
        return Err(format!("dns.hosts[0]: neither a valid IPv4 nor IPv6 address (\"{address}\")"));
    }
    let names: Vec<&str> = words.collect();
    match names.iter().find(|name| !valid_name(name)) {
        Some(name) => Err(format!("dns.hosts[0]: invalid hostname (\"{name}\")")),
        None if names.is_empty() => Err("dns.hosts[0]: entry does not have at least one hostname".into()),
        None => Ok(()),
    }
}

/// dnsmasq, which tries a configuration before it is taken, has every alias once.
fn check_alias(item: &str, list: &[String]) -> Result<(), String> {
    let (names, _) = item.rsplit_once(',').ok_or("dns.cnameRecords[0]: not a valid CNAME definition")?;
    let taken = |name: &str| list.iter().any(|other| other.split(',').next() == Some(name));
    if item.split(',').any(str::is_empty) {
        return Err("dns.cnameRecords[0]: contains an empty string".into());
    }
    if names.split(',').any(taken) { Err("duplicate CNAME".into()) } else { Ok(()) }
}

fn reply(status: u16, body: &Value) -> HttpResponse {
    HttpResponse::new(status, body.to_string()).header("content-type", "application/json; charset=utf-8")
}

fn error(status: u16, key: &str, message: &str, hint: Option<&str>) -> HttpResponse {
    reply(status, &json!({ "error": { "key": key, "message": message, "hint": hint }, "took": 0.1 }))
}
