//! One request and its answer.

use std::time::Duration;

use serde_json::{Value, json};

use super::{PveAgent, PveCluster, PveGuest, PveGuestKind, PveRights, PveVersion, shapes};
use crate::{HttpRequest, HttpResponse};

/// An answer, and how long it takes.
type Answer = (HttpResponse, Duration);

impl PveCluster {
    pub(super) fn answer(&mut self, request: &HttpRequest) -> Answer {
        let at_once = |response: HttpResponse| (response, Duration::ZERO);
        if request.header("transfer-encoding").is_some() {
            return at_once(refused(501, "chunked transfer encoding not supported"));
        }
        let has_body = !request.body.is_empty();
        if has_body && !matches!(request.method.as_str(), "POST" | "PUT") {
            return at_once(refused(501, "Unexpected content for method"));
        }
        let Some(path) = request.path.strip_prefix("/api2/json") else {
            return at_once(refused(404, "no such file"));
        };
        if request.method == "POST" && path == "/access/ticket" {
            return self.login(request);
        }
        let rights = match self.rights_of(request) {
            Ok(rights) => rights,
            Err(reason) => return (bare(401, reason), self.refusal_delay),
        };
        if request.method != "GET" {
            return at_once(not_implemented(request, path));
        }
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        let Some((answer, delay)) = self.get(&segments, request, &rights) else {
            return at_once(not_implemented(request, path));
        };
        let stalled = match segments[..] {
            ["nodes", node, ..] => self.stalled.get(node).copied(),
            _ => None,
        };
        (checked(path, answer), delay.max(stalled.unwrap_or_default()))
    }

    fn login(&mut self, request: &HttpRequest) -> Answer {
        let form = request.form();
        let of = |name: &str| form.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone());
        let (user, password) = (of("username").unwrap_or_default(), of("password").unwrap_or_default());
        let known =
            self.users.get(&user).filter(|(own, _)| *own == password).map(|(_, rights)| rights.clone());
        // An old ticket that still counts renews itself.
        let known = known.or_else(|| self.tickets.get(&password).cloned());
        let Some(rights) = known else { return (bare(401, "authentication failure"), self.refusal_delay) };
        self.logins += 1;
        let ticket = format!("PVE:{user}:{:08X}::c2lnbmF0dXJl+/=", self.logins);
        self.tickets.insert(ticket.clone(), rights);
        let data = json!({
            "username": user, "ticket": ticket, "CSRFPreventionToken": "69000000:c2ln", "clustername": self.name,
        });
        (data_of(&data), Duration::ZERO)
    }

    fn rights_of(&self, request: &HttpRequest) -> Result<PveRights, &'static str> {
        if let Some(header) = request.header("authorization") {
            let token = header.strip_prefix("PVEAPIToken=").or_else(|| header.strip_prefix("PVEAPIToken "));
            return token.and_then(|token| self.tokens.get(token)).cloned().ok_or("Authentication failed!");
        }
        let cookie = request.header("cookie").and_then(|cookie| cookie.strip_prefix("PVEAuthCookie="));
        let ticket = cookie.ok_or("No ticket")?;
        self.tickets
            .get(&crate::fake_http::decoded(ticket))
            .cloned()
            .ok_or("Permission denied - invalid PVE ticket")
    }

    fn get(&self, path: &[&str], request: &HttpRequest, rights: &PveRights) -> Option<Answer> {
        if path == ["cluster", "nextid"] {
            return Some((self.next_id(request), Duration::ZERO));
        }
        if let Some((name, _)) = request.query.first() {
            // A filter hides the networks of 9.1, and no call that is made has a parameter.
            let why = "property is not defined in schema and the schema does not allow additional properties";
            return Some((bad_parameter(name, why), Duration::ZERO));
        }
        let at_once = |value: Value| Some((data_of(&value), Duration::ZERO));
        let nine = self.version == PveVersion::Nine;
        match path {
            ["version"] => {
                let (version, release) = if nine { ("9.1.3", "9.1") } else { ("8.4.14", "8.4") };
                at_once(json!({ "version": version, "release": release, "repoid": "0123456789abcdef" }))
            }
            ["access", "permissions"] => at_once(rights.shown()),
            ["nodes"] => at_once(self.node_list()),
            ["cluster", "resources"] => at_once(self.resources(rights)),
            ["cluster", "status"] => match need(rights, "/", "Sys.Audit") {
                Some(refusal) => Some(refusal),
                None => at_once(self.status()),
            },
            ["cluster", "tasks"] => {
                at_once(if rights.allows("/", "Sys.Audit") { self.task_list() } else { json!([]) })
            }
            ["cluster", "sdn", "zones"] => {
                let zone =
                    |(zone, kind): (&String, &String)| json!({ "zone": zone, "type": kind, "digest": "d2" });
                at_once(self.zones.iter().filter(|_| rights.allows("/sdn", "SDN.Audit")).map(zone).collect())
            }
            ["cluster", "sdn", "vnets"] => {
                let vnet = |(vnet, (zone, tag)): (&String, &(String, Option<u16>))| {
                    let mut shown = json!({ "vnet": vnet, "type": "vnet", "zone": zone, "digest": "d3" });
                    if let (Some(tag), Some(shown)) = (tag, shown.as_object_mut()) {
                        shown.insert("tag".into(), json!(tag.to_string()));
                    }
                    shown
                };
                at_once(self.vnets.iter().filter(|_| rights.allows("/sdn", "SDN.Audit")).map(vnet).collect())
            }
            ["nodes", node, rest @ ..] => self.of_node(node, rest, rights),
            _ => None,
        }
    }

    /// The next free number, or the one that is asked for if it is free. Privileges do not matter here.
    fn next_id(&self, request: &HttpRequest) -> HttpResponse {
        let Some(asked) = request.parameter("vmid") else {
            let free = (100..1_000_000_000).find(|number| !self.guests.contains_key(number));
            return data_of(&json!(free.unwrap_or_default().to_string()));
        };
        match asked.parse::<u32>() {
            Ok(vmid) if self.guests.contains_key(&vmid) => {
                bad_parameter("vmid", &format!("VM {vmid} already exists"))
            }
            Ok(vmid) if vmid >= 100 => data_of(&json!(vmid.to_string())),
            _ => bad_parameter("vmid", "invalid format - value does not look like a valid VM ID"),
        }
    }

    fn of_node(&self, node: &str, rest: &[&str], rights: &PveRights) -> Option<Answer> {
        let at_once = |value: Value| Some((data_of(&value), Duration::ZERO));
        match self.nodes.get(node) {
            None => return Some((refused(500, &format!("hostname lookup '{node}' failed")), Duration::ZERO)),
            Some(false) => return Some((bare(595, "No route to host"), Duration::ZERO)),
            Some(true) => {}
        }
        match rest {
            ["network"] => match need(rights, &format!("/nodes/{node}"), "Sys.Audit") {
                Some(refusal) => Some(refusal),
                None => at_once(self.network.clone().into()),
            },
            ["sdn", "zones", "localnetwork", "bridges"] if self.version == PveVersion::Nine => {
                match need(rights, "/sdn/zones/localnetwork", "SDN.Audit") {
                    Some(refusal) => Some(refusal),
                    None => at_once(self.bridge_ports(node)),
                }
            }
            ["sdn", "vnets", vnet, "mac-vrf"] if self.version == PveVersion::Nine => {
                let of = self.mac_vrf.iter().filter(|(own, ..)| own == vnet);
                at_once(
                    of.map(|(_, mac, ip)| json!({ "ip": ip, "mac": mac, "nexthop": "10.0.0.2" })).collect(),
                )
            }
            [kind @ ("qemu" | "lxc"), vmid, rest @ ..] => {
                let own = vmid.parse().ok().and_then(|vmid: u32| self.guests.get(&vmid));
                let own = own.filter(|guest| guest.node == node && guest.kind.word() == *kind);
                let Some(guest) = own else {
                    let dir = if *kind == "qemu" { "qemu-server" } else { "lxc" };
                    let text = format!("Configuration file 'nodes/{node}/{dir}/{vmid}.conf' does not exist");
                    return Some((refused(500, &text), Duration::ZERO));
                };
                self.of_guest(guest, rest, rights)
            }
            _ => None,
        }
    }

    fn of_guest(&self, guest: &PveGuest, rest: &[&str], rights: &PveRights) -> Option<Answer> {
        let at_once = |value: Value| Some((data_of(&value), Duration::ZERO));
        if let Some(refusal) = need_of_guest(rights, guest, "VM.Audit") {
            return Some(refusal);
        }
        match rest {
            ["config"] => at_once(guest.shown_config()),
            ["interfaces"] if guest.kind == PveGuestKind::Lxc => {
                if !guest.is_running() {
                    return at_once(Value::Null);
                }
                at_once(guest.interfaces.iter().map(super::PveInterface::of_container).collect())
            }
            ["agent", command] if guest.kind == PveGuestKind::Qemu => {
                let privilege = match self.version {
                    PveVersion::Eight => "VM.Monitor",
                    PveVersion::Nine => "VM.GuestAgent.Audit",
                };
                need_of_guest(rights, guest, privilege).or_else(|| self.ask_agent(guest, command))
            }
            _ => None,
        }
    }

    fn ask_agent(&self, guest: &PveGuest, command: &str) -> Option<Answer> {
        let wrong = |text: &str, delay: Duration| Some((refused(500, text), delay));
        if !guest.config.contains_key("agent") {
            return wrong("No QEMU guest agent configured", Duration::ZERO);
        }
        if !guest.is_running() {
            return wrong(&format!("VM {} is not running", guest.vmid), Duration::ZERO);
        }
        let result = match (guest.agent, command) {
            (PveAgent::Silent, _) => return wrong("QEMU guest agent is not running", Duration::ZERO),
            (PveAgent::Hung, _) => {
                let text = format!("VM {} qga command 'guest-{command}' failed - got timeout", guest.vmid);
                return wrong(&text, self.hang);
            }
            (PveAgent::Blocked, _) => json!({ "error": {
                "class": "CommandNotFound",
                "desc": format!("The command guest-{command} has been disabled for this instance"),
            } }),
            (PveAgent::Answers, "get-host-name") => json!({ "host-name": guest.hostname }),
            (PveAgent::Answers, "network-get-interfaces") => {
                guest.interfaces.iter().map(super::PveInterface::of_agent).collect()
            }
            _ => return None,
        };
        Some((data_of(&json!({ "result": result })), Duration::ZERO))
    }
}

/// The answer, or one that says why it has not the form of Proxmox VE.
fn checked(path: &str, answer: HttpResponse) -> HttpResponse {
    if answer.status != 200 {
        return answer;
    }
    let body: Value = serde_json::from_str(&answer.body).unwrap_or_default();
    match shapes::wrong(path, body.get("data").unwrap_or(&Value::Null)) {
        Some(why) => refused(500, &why),
        None => answer,
    }
}

fn data_of(data: &Value) -> HttpResponse {
    HttpResponse::json(200, json!({ "data": data }).to_string())
}

/// An error with its text in the status line and in the body. The connection ends.
fn refused(status: u16, text: &str) -> HttpResponse {
    let body = json!({ "data": null, "message": format!("{text}\n") }).to_string();
    HttpResponse::json(status, body).reason(text).header("connection", "close")
}

/// An error with its text in the status line alone.
fn bare(status: u16, reason: &str) -> HttpResponse {
    HttpResponse::json(status, "").reason(reason).header("connection", "close")
}

fn not_implemented(request: &HttpRequest, path: &str) -> HttpResponse {
    refused(501, &format!("Method '{} {path}' not implemented", request.method))
}

/// The refusal of one parameter.
fn bad_parameter(name: &str, why: &str) -> HttpResponse {
    let text = json!({
        "data": null, "message": "Parameter verification failed.\n", "errors": { (name): format!("{why}\n") },
    });
    let answer = HttpResponse::json(400, text.to_string()).reason("Parameter verification failed.");
    answer.header("connection", "close")
}

/// The refusal if the caller has no such privilege.
fn need(rights: &PveRights, path: &str, privilege: &str) -> Option<Answer> {
    (!rights.allows(path, privilege)).then(|| lacks(path, privilege))
}

/// The same for a guest.
fn need_of_guest(rights: &PveRights, guest: &PveGuest, privilege: &str) -> Option<Answer> {
    (!rights.allow_guest(guest, privilege)).then(|| lacks(&format!("/vms/{}", guest.vmid), privilege))
}

fn lacks(path: &str, privilege: &str) -> Answer {
    (refused(403, &format!("Permission check failed ({path}, {privilege})")), Duration::ZERO)
}
