//! A fake of Technitium DNS Server: the part of its HTTP API about zones and records, as strict as the real one.

mod rdata;
mod zone;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::{Value, json};

use self::zone::{Parameters, Zone};
use crate::fake_http::{FakeHttp, HttpRequest, HttpResponse};

const TOKEN: &str = "technitium-test-token";

/// The rights of a token's user in all zones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the server has these rights")]
pub struct TechnitiumRights {
    pub view: bool,
    pub modify: bool,
    pub delete: bool,
    /// New zones may be made.
    pub create: bool,
}

impl TechnitiumRights {
    pub const ALL: Self = Self { view: true, modify: true, delete: true, create: true };
}

/// A running fake.
#[derive(Debug)]
pub struct FakeTechnitium {
    http: FakeHttp,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    /// Its major version: up to 14 no token in a header, up to 10 no form, up to 12 no split texts.
    version: u32,
    tokens: BTreeMap<String, TechnitiumRights>,
    zones: BTreeMap<String, Zone>,
    /// The URL of the primary node, if this is a secondary one; empty if this is the primary.
    cluster: Option<String>,
}

impl FakeTechnitium {
    /// Version 15 with these zones.
    pub fn start(zones: &[&str]) -> Self {
        Self::start_version(15, zones)
    }

    pub fn start_version(version: u32, zones: &[&str]) -> Self {
        let zones = zones.iter().map(|name| ((*name).to_owned(), Zone::new("Primary", name))).collect();
        let tokens = BTreeMap::from([(TOKEN.to_owned(), TechnitiumRights::ALL)]);
        let state = Arc::new(Mutex::new(State { version, tokens, zones, cluster: None }));
        let inside = Arc::clone(&state);
        let answer = move |request: &HttpRequest| {
            let mut state = inside.lock().unwrap_or_else(PoisonError::into_inner);
            let body = state.answer(request).unwrap_or_else(|message| refusal(&message));
            HttpResponse::json(200, body.to_string())
        };
        Self { http: FakeHttp::start(answer), state }
    }

    pub fn http(&self) -> &FakeHttp {
        &self.http
    }

    pub fn token(&self) -> &'static str {
        TOKEN
    }

    /// Gives the token's user these rights; none makes the token invalid.
    pub fn set_rights(&self, rights: Option<TechnitiumRights>) {
        let mut state = self.state();
        state.tokens.clear();
        state.tokens.extend(rights.map(|rights| (TOKEN.to_owned(), rights)));
    }

    /// Adds a zone of a type such as `Secondary`.
    pub fn add_zone(&self, kind: &str, name: &str) {
        self.state().zones.insert(name.to_owned(), Zone::new(kind, name));
    }

    /// Makes it the primary node of a cluster, or a secondary one of that `primary`.
    pub fn join_cluster(&self, primary: Option<&str>) {
        self.state().cluster = Some(primary.unwrap_or_default().to_owned());
    }

    /// Acts as a person in its web console: `add`, `update` or `delete` with these parameters.
    ///
    /// # Panics
    ///
    /// If it refuses that.
    #[expect(clippy::panic, reason = "this is how a test fails")]
    pub fn by_hand(&self, action: &str, parameters: &[(&str, &str)]) {
        let pairs = parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let pairs = Parameters(pairs.collect());
        let outcome = self.state().records(action, &pairs, TechnitiumRights::ALL);
        assert!(outcome.is_ok(), "{}", outcome.err().unwrap_or_else(|| panic!("no reason")));
    }

    /// The records of a zone as the API shows them.
    pub fn records(&self, zone: &str) -> Vec<Value> {
        self.state().zones.get(zone).map(|zone| zone.records(None)).unwrap_or_default()
    }

    /// The catalog that a zone is a member of.
    pub fn catalog(&self, zone: &str) -> Option<String> {
        self.state().zones.get(zone)?.catalog.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refusal(message: &str) -> Value {
    if message == INVALID {
        return json!({ "status": "invalid-token", "errorMessage": "Invalid token or session expired." });
    }
    json!({ "status": "error", "errorMessage": message, "stackTrace": "   at DnsServerCore" })
}

const INVALID: &str = "invalid-token";
const DENIED: &str = "Access was denied.";

impl State {
    fn answer(&mut self, request: &HttpRequest) -> Result<Value, String> {
        let mut pairs = request.query.clone();
        if self.version >= 11 {
            pairs.extend(request.form());
        }
        let parameters = Parameters(pairs);
        let bearer = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let bearer = bearer.filter(|_| self.version >= 15);
        let token = match bearer {
            Some(token) => token,
            None => parameters.get("token")?,
        };
        let rights = *self.tokens.get(token).ok_or(INVALID)?;
        let ok = |response: Value| json!({ "response": response, "status": "ok" });
        match request.path.as_str() {
            "/api/user/session/get" => Ok(self.session(rights)),
            "/api/zones/list" if rights.view => {
                let zones: Vec<Value> = self.zones.iter().map(|(name, zone)| zone.info(name)).collect();
                Ok(ok(json!({ "zones": zones })))
            }
            "/api/zones/create" if rights.create => self.create_zone(&parameters).map(ok),
            "/api/zones/list" | "/api/zones/create" => Err(DENIED.into()),
            path => {
                let action = path.strip_prefix("/api/zones/records/").ok_or("Invalid request.")?;
                self.records(action, &parameters, rights).map(ok)
            }
        }
    }

    fn session(&self, rights: TechnitiumRights) -> Value {
        let mut info = json!({
            "version": format!("{}.0", self.version),
            "dnsServerDomain": "ns1.example.test",
            "permissions": { "Zones": {
                "canView": rights.view, "canModify": rights.create, "canDelete": rights.create,
            }},
            "clusterInitialized": self.cluster.is_some(),
        });
        if let (Some(primary), Some(info)) = (&self.cluster, info.as_object_mut()) {
            let node = |name: &str, url: &str, kind: &str, state: &str| json!({ "id": 1, "name": name, "url": url, "type": kind, "state": state });
            let own = "https://ns1.example.test:53443/";
            let nodes = if primary.is_empty() {
                vec![node("ns1.example.test", own, "Primary", "Self")]
            } else {
                vec![
                    node("ns0.example.test", primary, "Primary", "Connected"),
                    node("ns1.example.test", own, "Secondary", "Self"),
                ]
            };
            info.insert("clusterDomain".into(), json!("cluster.test"));
            info.insert("clusterNodes".into(), nodes.into());
        }
        json!({ "username": "netstead", "tokenName": "netstead", "info": info, "status": "ok" })
    }

    fn create_zone(&mut self, parameters: &Parameters) -> Result<Value, String> {
        let name = parameters.get("zone")?.trim_matches('.').to_owned();
        let kind = parameters.find("type").unwrap_or("Primary");
        if self.zones.contains_key(&name) {
            return Err(format!("Zone already exists: {name}"));
        }
        let mut zone = Zone::new(kind, &name);
        zone.catalog = parameters.find("catalog").map(str::to_owned);
        self.zones.insert(name.clone(), zone);
        Ok(json!({ "domain": name }))
    }

    /// The zone that a call is about: the closest one, as the real server finds it.
    fn zone_of(&self, name: &str) -> Option<String> {
        let within = |zone: &&String| name == zone.as_str() || name.ends_with(&format!(".{zone}"));
        self.zones.keys().filter(within).max_by_key(|zone| zone.len()).cloned()
    }

    fn records(
        &mut self,
        action: &str,
        parameters: &Parameters,
        rights: TechnitiumRights,
    ) -> Result<Value, String> {
        let domain = parameters.get("domain")?.trim_matches('.').to_lowercase();
        let asked =
            parameters.find("zone").map_or_else(|| domain.clone(), |zone| zone.trim_matches('.').into());
        let name = self.zone_of(&asked).ok_or_else(|| format!("No such zone was found: {domain}"))?;
        let right = match action {
            "get" => rights.view,
            "add" | "update" => rights.modify,
            _ => rights.delete,
        };
        if !right {
            return Err(DENIED.into());
        }
        let split_texts = self.version >= 13;
        let zone = self.zones.get_mut(&name).ok_or("No such zone was found.")?;
        if action == "get" {
            let all = parameters.find("listZone") == Some("true");
            let records = zone.records((!all).then_some(domain.as_str()));
            return Ok(json!({ "zone": zone.info(&name), "records": records }));
        }
        if !matches!(zone.kind.as_str(), "Primary" | "Forwarder") {
            return Err(format!("Cannot {action} record in {} zone.", zone.kind));
        }
        let kind = parameters.get("type")?.to_uppercase();
        if domain != name && !domain.ends_with(&format!(".{name}")) {
            return Err("The domain name does not belong to the zone.".into());
        }
        let parameters = parameters.with_split_texts(split_texts);
        match action {
            "add" => {
                let added = zone.add(&name, &domain, &kind, &parameters)?;
                Ok(json!({ "zone": zone.info(&name), "addedRecord": added }))
            }
            "update" => {
                let updated = zone.update(&domain, &kind, &parameters)?;
                Ok(json!({ "zone": zone.info(&name), "updatedRecord": updated }))
            }
            "delete" => {
                zone.delete(&domain, &kind, &parameters)?;
                self.delete_pointer(&domain, &kind, &parameters);
                Ok(json!({}))
            }
            _ => Err("Invalid request.".into()),
        }
    }

    /// The real server removes the PTR of an address together with it.
    fn delete_pointer(&mut self, domain: &str, kind: &str, parameters: &Parameters) {
        let address = parameters.find("ipAddress").filter(|_| kind == "A");
        let Some(address) = address else { return };
        let reverse = address.split('.').rev().collect::<Vec<_>>().join(".") + ".in-addr.arpa";
        let pointer = Parameters(vec![("ptrName".into(), domain.into())]);
        let zone = self.zone_of(&reverse);
        if let Some(zone) = zone.and_then(|name| self.zones.get_mut(&name)) {
            let _ = zone.delete(&reverse, "PTR", &pointer);
        }
    }
}
