//! The controllers `sections` and `subnets`.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use serde_json::{Map, Value, json};

use super::{
    Held, Subnet,
    answer::{Answer, filtered},
    text,
};
use crate::fake_http::HttpRequest;

/// A network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Network {
    pub(super) base: IpAddr,
    pub(super) mask: u8,
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.mask)
    }
}

impl Network {
    /// The network `BASE/MASK`; none if it does not begin there.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (base, mask) = text.split_once('/')?;
        let (base, mask): (IpAddr, u8) = (base.parse().ok()?, mask.parse().ok()?);
        let network = Self { base, mask };
        (mask <= network.bits() && number(base) & network.hosts_mask() == 0).then_some(network)
    }

    fn bits(self) -> u8 {
        if self.base.is_ipv4() { 32 } else { 128 }
    }

    fn hosts_mask(self) -> u128 {
        let hosts = u32::from(self.bits().saturating_sub(self.mask));
        1_u128.checked_shl(hosts).map_or(u128::MAX, |size| size - 1)
    }

    pub(super) fn contains(self, ip: IpAddr) -> bool {
        ip.is_ipv4() == self.base.is_ipv4() && number(ip) & !self.hosts_mask() == number(self.base)
    }

    fn overlaps(self, other: Self) -> bool {
        self.contains(other.base) || other.contains(self.base)
    }

    /// The numbers of the addresses that it hands out: without network and broadcast, unless it is a pool or has one or two.
    pub(super) fn hosts(self, pool: bool) -> std::ops::RangeInclusive<u128> {
        let (first, last) = (number(self.base), number(self.base) | self.hosts_mask());
        let whole = pool || self.hosts_mask() < 2;
        match (whole, self.base) {
            (true, _) => first..=last,
            (false, IpAddr::V4(_)) => first + 1..=last - 1,
            (false, IpAddr::V6(_)) => first + 1..=last,
        }
    }

    pub(super) fn address(self, number: u128) -> IpAddr {
        match self.base {
            IpAddr::V4(_) => Ipv4Addr::from_bits(u32::try_from(number).unwrap_or(u32::MAX)).into(),
            IpAddr::V6(_) => Ipv6Addr::from_bits(number).into(),
        }
    }
}

pub(super) fn number(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => ip.to_bits().into(),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

impl Held {
    pub(super) fn sections_call(&self, method: &str, rest: &[&str]) -> Result<Answer, Answer> {
        let section = |(id, name): (&u64, &String)| json!({ "id": id, "name": name, "strictMode": "1" });
        match (method, rest) {
            ("GET", []) if self.sections.is_empty() => Err(Answer::refused(404, "No sections available")),
            ("GET", []) => Ok(Answer::data(self.sections.iter().map(section).collect())),
            ("GET", [id, "subnets"]) => {
                let id = self.section(id)?;
                let mine = self.subnets.iter().filter(|(_, subnet)| subnet.section == id);
                let rows: Vec<Value> = mine
                    .map(|(id, subnet)| {
                        let mut row = row(*id, subnet);
                        row.insert("usage".to_owned(), self.usage(*id, subnet));
                        Value::Object(row)
                    })
                    .collect();
                if rows.is_empty() {
                    return Err(Answer::refused(404, "No subnets found"));
                }
                Ok(Answer::data(rows.into()))
            }
            _ => Err(Answer::refused(501, "Not Implemented")),
        }
    }

    /// The controller `vrf`.
    pub(super) fn vrf_call(&self, method: &str, rest: &[&str]) -> Result<Answer, Answer> {
        let vrf =
            |(id, name): (&u64, &String)| json!({ "id": id, "name": name, "rd": null, "sections": null });
        match (method, rest) {
            ("GET", []) if self.vrfs.is_empty() => Err(Answer::refused(404, "No vrfs configured")),
            ("GET", []) => Ok(Answer::data(self.vrfs.iter().map(vrf).collect())),
            _ => Err(Answer::refused(501, "Not Implemented")),
        }
    }

    fn section(&self, id: &str) -> Result<u64, Answer> {
        let known = id.parse::<u64>().ok().filter(|id| self.sections.contains_key(id));
        known.ok_or_else(|| Answer::refused(400, "Invalid section Id"))
    }

    pub(super) fn subnets_call(
        &mut self,
        request: &HttpRequest,
        method: &str,
        rest: &[&str],
        body: &Map<String, Value>,
    ) -> Result<Answer, Answer> {
        match (method, rest) {
            ("GET", ["cidr" | "search", base, mask]) => {
                let network = Network::parse(&format!("{base}/{mask}"));
                let network = network.ok_or_else(|| Answer::refused(400, "Invalid subnet"))?;
                let found =
                    self.subnets.iter().filter(|(_, subnet)| subnet.network == network && !subnet.folder);
                let rows: Vec<Value> = found.map(|(id, subnet)| Value::Object(row(*id, subnet))).collect();
                if rows.is_empty() {
                    return Err(Answer::refused(404, "No subnets found"));
                }
                Ok(Answer::data(rows.into()))
            }
            ("GET", [id]) => self.subnet_answer(id),
            ("GET", [id, "usage"]) => {
                let (id, subnet) = self.subnet(id)?;
                Ok(Answer::data(self.usage(id, subnet)))
            }
            ("GET", [id, "addresses"]) => {
                let (id, _) = self.subnet(id)?;
                let mine = self.addresses.iter().filter(|(_, row)| row.subnet == id);
                let rows: Vec<Value> = mine.map(|(id, row)| self.shown(*id, row)).collect();
                if rows.is_empty() {
                    return Err(Answer::refused(404, "No addresses found"));
                }
                Ok(Answer::data(filtered(request, rows)?.into()))
            }
            ("POST", []) => self.add(body),
            _ => Err(Answer::refused(501, "Not Implemented")),
        }
    }

    pub(super) fn subnet(&self, id: &str) -> Result<(u64, &Subnet), Answer> {
        let found = id.parse::<u64>().ok().and_then(|id| Some((id, self.subnets.get(&id)?)));
        found.ok_or_else(|| Answer::refused(400, &format!("Invalid subnet Id ({id})")))
    }

    fn subnet_answer(&self, id: &str) -> Result<Answer, Answer> {
        // A text that is no number is another mistake than a number that no subnet has.
        if id.parse::<u64>().is_err() {
            return Err(Answer::refused(404, "Invalid Id"));
        }
        let (id, subnet) = self.subnet(id)?;
        let mut row = row(id, subnet);
        row.insert(
            "calculation".to_owned(),
            json!({ "Type": "IPv4", "Subnet bitmask": subnet.network.mask }),
        );
        if let Some((gateway, address)) =
            self.addresses.iter().find(|(_, row)| row.subnet == id && row.gateway)
        {
            row.insert("gatewayId".to_owned(), json!(gateway));
            row.insert("gateway".to_owned(), json!({ "ip_addr": address.ip.to_string(), "id": gateway }));
        }
        Ok(Answer::data(Value::Object(row)))
    }

    fn usage(&self, id: u64, subnet: &Subnet) -> Value {
        let used = self.addresses.values().filter(|row| row.subnet == id).count();
        let hosts = subnet.network.hosts(subnet.pool);
        let most = hosts.end().saturating_sub(*hosts.start()).saturating_add(1);
        let free = most.saturating_sub(u128::try_from(used).unwrap_or_default());
        // The largest number is a text, always.
        json!({ "used": used, "maxhosts": most.to_string(), "freehosts": free.to_string() })
    }

    fn add(&mut self, body: &Map<String, Value>) -> Result<Answer, Answer> {
        let field = |name: &str| body.get(name).map(text).unwrap_or_default();
        let known = ["subnet", "mask", "sectionId", "description", "masterSubnetId", "vlanId", "vrfId"];
        if let Some(other) = body.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(Answer::refused(400, &format!("Invalid request key {other}")));
        }
        let section = self.section(&field("sectionId"))?;
        let network = Network::parse(&format!("{}/{}", field("subnet"), field("mask")));
        let network = network.ok_or_else(|| Answer::refused(400, "Invalid subnet"))?;
        let master = self.subnets.get(&field("masterSubnetId").parse::<u64>().unwrap_or_default());
        let master = master.map(|master| master.network);
        // Every section is strict.
        let near = self.subnets.values().filter(|other| other.section == section && !other.folder);
        let mut overlapping =
            near.filter(|other| other.network.overlaps(network) && Some(other.network) != master);
        if let Some(other) = overlapping.next() {
            return Err(Answer::refused(409, &format!("Subnet overlaps with {}", other.network)));
        }
        let id = self.next();
        let description = field("description");
        let subnet = Subnet { section, network, folder: false, pool: false, vrf: None, description };
        self.subnets.insert(id, subnet);
        Ok(Answer::created("Subnet created", id, Some(json!(network.to_string()))))
    }
}

fn row(id: u64, subnet: &Subnet) -> Map<String, Value> {
    let row = json!({
        "id": id,
        "subnet": subnet.network.base.to_string(),
        "mask": subnet.network.mask.to_string(),
        "sectionId": subnet.section,
        "description": subnet.description,
        "masterSubnetId": 0,
        "vlanId": null,
        "vrfId": subnet.vrf,
        "isFolder": u8::from(subnet.folder),
        "isFull": 0,
        "isPool": u8::from(subnet.pool),
        "tag": 2,
    });
    match row {
        Value::Object(row) => row,
        _ => Map::new(),
    }
}
