//! The API of version 5: one page, everything in the query, 200 for everything.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::{PiHoleState, TOKEN, valid_name};
use crate::fake_http::{HttpRequest, HttpResponse};

pub(super) fn answer(request: &HttpRequest, held: &mut PiHoleState) -> HttpResponse {
    let get = |key: &str| request.parameter(key);
    if get("version").is_some() {
        return HttpResponse::new(200, r#"{"version":3}"#);
    }
    if !held.without_password && (get("auth") != Some(TOKEN) || held.revoked) {
        held.failures += 1;
        return HttpResponse::new(200, "[]");
    }
    let (name, address, target) =
        (get("domain").unwrap_or_default(), get("ip").unwrap_or_default(), get("target").unwrap_or_default());
    let hosts = get("customdns").is_some();
    let data = match (hosts, get("action")) {
        (true, Some("get")) => json!({ "data": pairs(&held.hosts, ' ', true) }),
        (false, Some("get")) if get("customcname").is_some() => {
            json!({ "data": pairs(&held.aliases, ',', false) })
        }
        (true, Some("add")) => add_host(held, name, address),
        (true, Some("delete")) => delete(&mut held.hosts, &format!("{address} {name}")),
        (false, Some("add")) => add_alias(held, name, target),
        (false, Some("delete")) => delete(&mut held.aliases, &format!("{name},{target}")),
        _ => return HttpResponse::new(200, "Wrong action"),
    };
    if data.get("success").and_then(Value::as_bool) == Some(true) {
        held.restart();
    }
    HttpResponse::new(200, data.to_string())
}

/// The two parts of each line, the name first.
fn pairs(lines: &[String], between: char, turned: bool) -> Vec<[String; 2]> {
    let pair = |line: &String| {
        let (front, back) = if turned { line.split_once(between)? } else { line.rsplit_once(between)? };
        Some(if turned { [back.to_owned(), front.to_owned()] } else { [front.to_owned(), back.to_owned()] })
    };
    lines.iter().filter_map(pair).collect()
}

fn add_host(held: &mut PiHoleState, name: &str, address: &str) -> Value {
    let Ok(parsed) = address.parse::<IpAddr>() else { return refused("IP must be valid") };
    if !valid_name(name) {
        return refused(&format!("Domain &#039;{name}&#039; is not valid"));
    }
    let taken = |line: &String| {
        line.split_once(' ').is_some_and(|(other, at)| {
            at == name && other.parse::<IpAddr>().is_ok_and(|other| other.is_ipv4() == parsed.is_ipv4())
        })
    };
    if held.hosts.iter().any(taken) {
        let family = if parsed.is_ipv4() { 4 } else { 6 };
        return refused(&format!("The domain {name} already has a custom DNS entry for an IPv{family}"));
    }
    held.hosts.push(format!("{address} {name}"));
    done()
}

fn add_alias(held: &mut PiHoleState, name: &str, target: &str) -> Value {
    if !valid_name(target) {
        return refused("Target must be valid");
    }
    if !valid_name(name) {
        return refused(&format!("Domain &#039;{name}&#039; is not valid"));
    }
    if held
        .aliases
        .iter()
        .any(|line| line.rsplit_once(',').is_some_and(|(names, _)| names.split(',').any(|one| one == name)))
    {
        return refused(&format!("There is already a CNAME record for &#039;{name}&#039;"));
    }
    held.aliases.push(format!("{name},{target}"));
    done()
}

fn delete(lines: &mut Vec<String>, line: &str) -> Value {
    match lines.iter().position(|other| other == line) {
        Some(at) => {
            lines.remove(at);
            done()
        }
        None => refused("This domain/ip association does not exist"),
    }
}

fn done() -> Value {
    json!({ "success": true, "message": "" })
}

fn refused(message: &str) -> Value {
    json!({ "success": false, "message": message })
}
