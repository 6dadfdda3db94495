//! The controller `addresses`.

use std::net::IpAddr;

use serde_json::{Map, Value, json};

use super::{
    Held, Row,
    answer::{Answer, filtered},
    subnets::number,
    text,
};
use crate::fake_http::HttpRequest;

/// Fields of an address that hold a text.
const TEXTS: &[&str] = &["hostname", "description", "mac", "owner", "note", "port", "location"];
/// Fields that may be written beside them.
const OTHERS: &[&str] = &["ip", "subnetId", "is_gateway", "tag", "deviceId", "excludePing", "PTRignore"];
/// `Offline`, `Used`, `Reserved`, `DHCP`.
const TAGS: std::ops::RangeInclusive<u64> = 1..=4;
/// The tag `Used`.
const USED: u64 = 2;

impl Held {
    pub(super) fn addresses_call(
        &mut self,
        request: &HttpRequest,
        method: &str,
        rest: &[&str],
        body: &Map<String, Value>,
    ) -> Result<Answer, Answer> {
        match (method, rest) {
            ("GET", ["search", ip]) => {
                let ip: IpAddr = ip.parse().map_err(|_| Answer::refused(400, "Invalid address"))?;
                self.rows(request, |row| row.ip == ip, "Address not found")
            }
            ("GET", ["search_hostname", name]) => self.rows(
                request,
                |row| row.fields.get("hostname").is_some_and(|own| own == name),
                "Hostname not found",
            ),
            ("GET", [ip, subnet]) if ip.parse::<IpAddr>().is_ok() => self.raw(ip, subnet),
            ("POST", ["first_free", subnet]) => self.first_free(subnet, body),
            ("POST", []) => self.create(body),
            ("PATCH", [id]) => self.change(id, body),
            ("DELETE", [id]) => self.delete(id.parse().ok()),
            ("DELETE", [ip, subnet]) => {
                let ip: Option<IpAddr> = ip.parse().ok();
                let mut all = self.addresses.iter();
                let found = all.find(|(_, row)| Some(row.ip) == ip && row.subnet.to_string() == *subnet);
                let id =
                    found.map(|(id, _)| *id).ok_or_else(|| Answer::refused(404, "No addresses found"))?;
                self.delete(Some(id))
            }
            _ => Err(Answer::refused(501, "Not Implemented")),
        }
    }

    fn rows(&self, request: &HttpRequest, fits: impl Fn(&Row) -> bool, none: &str) -> Result<Answer, Answer> {
        let found = self.addresses.iter().filter(|(_, row)| fits(row));
        let rows: Vec<Value> = found.map(|(id, row)| self.shown(*id, row)).collect();
        if rows.is_empty() {
            return Err(Answer::refused(404, none));
        }
        Ok(Answer::data(filtered(request, rows)?.into()))
    }

    /// A row as lists have it.
    pub(super) fn shown(&self, id: u64, row: &Row) -> Value {
        let mut shown = Map::from_iter([
            ("id".to_owned(), json!(id)),
            ("subnetId".to_owned(), json!(row.subnet)),
            ("ip".to_owned(), json!(row.ip.to_string())),
            ("is_gateway".to_owned(), json!(u8::from(row.gateway))),
            ("tag".to_owned(), json!(row.tag)),
            ("deviceId".to_owned(), Value::Null),
            ("lastSeen".to_owned(), Value::Null),
            ("editDate".to_owned(), Value::Null),
        ]);
        let custom = self.custom_fields.iter().map(String::as_str);
        for name in TEXTS.iter().copied().chain(custom) {
            let value = row.fields.get(name).map_or(Value::Null, |value| json!(value));
            shown.insert(name.to_owned(), value);
        }
        Value::Object(shown)
    }

    /// A row as the database has it: the address is a number, and two fields have other names.
    fn raw(&self, ip: &str, subnet: &str) -> Result<Answer, Answer> {
        let ip: Option<IpAddr> = ip.parse().ok();
        let mut all = self.addresses.iter();
        let found = all.find(|(_, row)| Some(row.ip) == ip && row.subnet.to_string() == subnet);
        let (id, row) = found.ok_or_else(|| Answer::refused(404, "No addresses found"))?;
        let Value::Object(mut shown) = self.shown(*id, row) else {
            return Err(Answer::refused(500, "Unable to read addresses"));
        };
        for (name, own) in [("tag", "state"), ("deviceId", "switch")] {
            let value = shown.remove(name).unwrap_or_default();
            shown.insert(own.to_owned(), value);
        }
        shown.insert("ip_addr".to_owned(), json!(number(row.ip).to_string()));
        Ok(Answer::data(Value::Object(shown)))
    }

    /// Takes the lowest free address and makes it, in one step.
    fn first_free(&mut self, subnet: &str, body: &Map<String, Value>) -> Result<Answer, Answer> {
        let (id, subnet) =
            self.subnet(subnet).map_err(|_| Answer::refused(400, "Invalid subnet identifier"))?;
        let taken = |ip: IpAddr| self.addresses.values().any(|row| row.subnet == id && row.ip == ip);
        let network = subnet.network;
        let mut hosts = network.hosts(subnet.pool).map(|number| network.address(number));
        let free = hosts.find(|ip| !taken(*ip)).filter(|_| !subnet.folder);
        let ip = free.ok_or_else(|| Answer::refused(404, "No free addresses found"))?;
        let row = self.row(id, ip, body)?;
        let made = self.next();
        self.addresses.insert(made, row);
        Ok(Answer::created("Address created", made, Some(json!(ip.to_string()))))
    }

    fn create(&mut self, body: &Map<String, Value>) -> Result<Answer, Answer> {
        let field = |name: &str| body.get(name).map(text).unwrap_or_default();
        let Ok(subnet) = field("subnetId").parse::<u64>() else {
            return Err(Answer::refused(400, "SubnetId must be numeric"));
        };
        let Some(held) = self.subnets.get(&subnet) else {
            return Err(Answer::refused(404, "Invalid subnet Id"));
        };
        let ip: IpAddr = field("ip").parse().map_err(|_| Answer::refused(400, "Invalid address"))?;
        if self.addresses.values().any(|row| row.subnet == subnet && row.ip == ip) {
            return Err(Answer::refused(409, "IP address already exists"));
        }
        if !held.network.contains(ip) {
            return Err(Answer::refused(500, "IP address not in selected subnet"));
        }
        let row = self.row(subnet, ip, body)?;
        let id = self.next();
        self.addresses.insert(id, row);
        Ok(Answer::created("Address created", id, None))
    }

    /// A new row of a body; every field that phpIPAM does not know is refused.
    fn row(&self, subnet: u64, ip: IpAddr, body: &Map<String, Value>) -> Result<Row, Answer> {
        let mut row =
            Row { subnet, ip, gateway: false, tag: USED, fields: std::collections::BTreeMap::new() };
        self.write(&mut row, body)?;
        Ok(row)
    }

    fn write(&self, row: &mut Row, body: &Map<String, Value>) -> Result<(), Answer> {
        let nested = body.get("custom_fields").and_then(Value::as_object).filter(|_| self.habits.nest);
        let all = body.iter().filter(|(name, _)| nested.is_none() || *name != "custom_fields");
        for (name, value) in all.chain(nested.into_iter().flatten()) {
            let known = TEXTS.contains(&name.as_str()) || OTHERS.contains(&name.as_str());
            if !known && !self.custom_fields.contains(name) {
                return Err(Answer::refused(400, &format!("Invalid request key {name}")));
            }
            let value = text(value);
            match name.as_str() {
                "mac" if !value.is_empty() => row.set("mac", &mac(&value)?),
                "tag" => {
                    let tag = value.parse().ok().filter(|tag| TAGS.contains(tag));
                    row.tag = tag.ok_or_else(|| Answer::refused(400, "Tag does not exist"))?;
                }
                "is_gateway" => row.gateway = value == "1",
                name if OTHERS.contains(&name) => {}
                // MySQL cuts a text that is too long for its column.
                "description" => row.set("description", &value.chars().take(64).collect::<String>()),
                name => row.set(name, &value),
            }
        }
        Ok(())
    }

    fn change(&mut self, id: &str, body: &Map<String, Value>) -> Result<Answer, Answer> {
        for (field, message) in
            [("ip", "IP address cannot be changed"), ("subnetId", "Subnet cannot be changed")]
        {
            if body.contains_key(field) {
                return Err(Answer::refused(400, message));
            }
        }
        let id = id.parse::<u64>().ok().filter(|id| self.addresses.contains_key(id));
        let id = id.ok_or_else(|| Answer::refused(404, "Address does not exist"))?;
        if body.is_empty() {
            return Err(Answer::refused(400, "No data provided"));
        }
        let Some(mut row) = self.addresses.remove(&id) else {
            return Err(Answer::refused(404, "Address does not exist"));
        };
        let fields = row.fields.clone();
        let gateway = row.gateway;
        let before = std::mem::replace(&mut row.tag, USED);
        let written = self.write(&mut row, body);
        if written.is_err() {
            row = Row { fields, gateway, tag: before, ..row };
        }
        self.addresses.insert(id, row);
        written.map(|()| Answer::done("Address updated"))
    }

    fn delete(&mut self, id: Option<u64>) -> Result<Answer, Answer> {
        let gone = id.and_then(|id| self.addresses.remove(&id));
        gone.map(|_| Answer::done("Address deleted"))
            .ok_or_else(|| Answer::refused(404, "Address does not exist"))
    }
}

/// A MAC in lower case with colons.
fn mac(text: &str) -> Result<String, Answer> {
    let digits: Vec<char> = text.chars().filter(|c| !matches!(c, ':' | '-' | '.')).collect();
    if digits.len() != 12 || !digits.iter().all(char::is_ascii_hexdigit) {
        return Err(Answer::refused(400, "Invalid MAC address"));
    }
    let pairs = digits.chunks(2).map(|pair| pair.iter().collect::<String>().to_ascii_lowercase());
    Ok(pairs.collect::<Vec<_>>().join(":"))
}
