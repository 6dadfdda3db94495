//! A zone of the fake, and its records.

use serde_json::{Value, json};

use super::rdata::rdata;

/// The parameters of a call, from its query and its form.
#[derive(Debug, Clone)]
pub(super) struct Parameters(pub(super) Vec<(String, String)>);

impl Parameters {
    pub(super) fn find(&self, name: &str) -> Option<&str> {
        let own = self.0.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
        own.filter(|value| !value.is_empty())
    }

    pub(super) fn get(&self, name: &str) -> Result<&str, String> {
        self.find(name).ok_or_else(|| format!("Parameter '{name}' missing."))
    }

    /// An older version does not know `splitText`.
    pub(super) fn with_split_texts(&self, known: bool) -> Self {
        let kept = |pair: &&(String, String)| known || !pair.0.to_lowercase().contains("splittext");
        let mut own: Vec<_> = self.0.iter().filter(kept).cloned().collect();
        own.push(("known".into(), known.to_string()));
        Self(own)
    }
}

#[derive(Debug)]
pub(super) struct Zone {
    pub(super) kind: String,
    pub(super) catalog: Option<String>,
    serial: u32,
    records: Vec<Record>,
}

#[derive(Debug, Clone)]
struct Record {
    name: String,
    kind: String,
    ttl: u32,
    rdata: Value,
    disabled: bool,
    comments: String,
    expiry: u32,
}

impl Record {
    fn shown(&self) -> Value {
        let mut shown = json!({
            "name": self.name,
            "type": self.kind,
            "ttl": self.ttl,
            "ttlString": format!("{}s", self.ttl),
            "disabled": self.disabled,
            "rData": self.rdata,
            "dnssecStatus": "Unknown",
            "expiryTtl": self.expiry,
        });
        if let Some(object) = shown.as_object_mut().filter(|_| !self.comments.is_empty()) {
            object.insert("comments".into(), json!(self.comments));
        }
        shown
    }
}

impl Zone {
    pub(super) fn new(kind: &str, name: &str) -> Self {
        let rdata = json!({ "nameServer": "ns1.example.test" });
        let ns = Record {
            name: name.into(),
            kind: "NS".into(),
            ttl: 3600,
            rdata,
            disabled: false,
            comments: String::new(),
            expiry: 0,
        };
        Self { kind: kind.into(), catalog: None, serial: 1, records: vec![ns] }
    }

    pub(super) fn info(&self, name: &str) -> Value {
        json!({
            "name": name,
            "type": self.kind,
            "internal": false,
            "disabled": false,
            "soaSerial": self.serial,
            "catalog": self.catalog,
            "dnssecStatus": "Unsigned",
        })
    }

    /// All records, or those at `name`; the SOA is among those at the top.
    pub(super) fn records(&self, name: Option<&str>) -> Vec<Value> {
        let top = self.records.first().map(|record| record.name.clone()).unwrap_or_default();
        let soa = json!({
            "name": top, "type": "SOA", "ttl": 900, "disabled": false,
            "rData": { "primaryNameServer": "ns1.example.test", "responsiblePerson": "hostadmin.example.test",
                "serial": self.serial, "refresh": 900, "retry": 300, "expire": 604_800, "minimum": 900 },
        });
        let soa = (name.is_none_or(|name| name == top)).then_some(soa);
        let own = self.records.iter().filter(|record| name.is_none_or(|name| name == record.name));
        soa.into_iter().chain(own.map(Record::shown)).collect()
    }

    fn ttl(parameters: &Parameters) -> Result<u32, String> {
        let ttl = parameters.find("ttl").unwrap_or("3600");
        ttl.parse().map_err(|_| format!("Input string '{ttl}' was not in a correct format."))
    }

    pub(super) fn add(
        &mut self,
        zone: &str,
        domain: &str,
        kind: &str,
        parameters: &Parameters,
    ) -> Result<Value, String> {
        let (ttl, rdata) = (Self::ttl(parameters)?, rdata(kind, parameters, false)?);
        let others = || self.records.iter().filter(|record| record.name == domain);
        if kind == "CNAME" {
            if domain == zone {
                return Err("Cannot set CNAME record at zone apex.".into());
            }
            if others().any(|record| record.kind == "CNAME") {
                return Err(
                    "Record already exists. Use overwrite option if you wish to overwrite existing record."
                        .into(),
                );
            }
            if others().next().is_some() {
                return Err("Cannot set record: a CNAME record cannot exists with other record types for the same name.".into());
            }
        } else if others().any(|record| record.kind == "CNAME") {
            return Err(
                "Cannot add record: a CNAME record cannot exists with other record types for the same name."
                    .into(),
            );
        }
        let same = |record: &&mut Record| record.name == domain && record.kind == kind;
        let twin = others().any(|record| record.kind == kind && record.rdata == rdata);
        if twin && others().filter(|record| record.kind == kind).all(|record| record.ttl == ttl) {
            return Err("Cannot add record: record already exists.".into());
        }
        // All records of a set have the newest time to live.
        for record in self.records.iter_mut().filter(same) {
            record.ttl = ttl;
        }
        let comments = parameters.find("comments").unwrap_or_default().to_owned();
        let (name, kind) = (domain.to_owned(), kind.to_owned());
        let record = Record { name, kind, ttl, rdata, disabled: false, comments, expiry: 0 };
        let shown = record.shown();
        if !twin {
            self.records.push(record);
        }
        self.serial += 1;
        Ok(shown)
    }

    pub(super) fn update(
        &mut self,
        domain: &str,
        kind: &str,
        parameters: &Parameters,
    ) -> Result<Value, String> {
        let (ttl, new) = (Self::ttl(parameters)?, rdata(kind, parameters, true)?);
        let old = rdata(kind, parameters, false)?;
        // The value of a CNAME is not compared: there is one.
        let is_old = |record: &Record| {
            record.name == domain && record.kind == kind && (kind == "CNAME" || record.rdata == old)
        };
        let at = self.records.iter().position(is_old);
        let at = at.ok_or("Cannot update record: the record does not exists.")?;
        let twin = |record: &Record| record.name == domain && record.kind == kind && record.rdata == new;
        if self.records.iter().enumerate().any(|(index, record)| index != at && twin(record)) {
            return Err("Cannot update record: record already exists.".into());
        }
        for record in self.records.iter_mut().filter(|record| record.name == domain && record.kind == kind) {
            record.ttl = ttl;
        }
        let record = self.records.get_mut(at).ok_or("Cannot update record.")?;
        record.rdata = new;
        record.disabled = parameters.find("disable") == Some("true");
        // What is not repeated is lost.
        parameters.find("comments").unwrap_or_default().clone_into(&mut record.comments);
        record.expiry = parameters.find("expiryTtl").and_then(|text| text.parse().ok()).unwrap_or(0);
        self.serial += 1;
        Ok(record.shown())
    }

    pub(super) fn delete(&mut self, domain: &str, kind: &str, parameters: &Parameters) -> Result<(), String> {
        let old = if kind == "CNAME" { None } else { Some(rdata(kind, parameters, false)?) };
        let is_old = |record: &Record| {
            record.name == domain
                && record.kind == kind
                && old.as_ref().is_none_or(|old| record.rdata == *old)
        };
        let before = self.records.len();
        self.records.retain(|record| !is_old(record));
        if self.records.len() == before {
            return Err("Cannot delete record: no such record exists.".into());
        }
        self.serial += 1;
        Ok(())
    }
}
