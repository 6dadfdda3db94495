//! The records of a zone of the fake, and what it refuses.

use serde_json::{Value, json};

use super::Zone;

/// Code and message.
pub(super) type Refusal = (u64, &'static str);

const PROXIED: [&str; 3] = ["A", "AAAA", "CNAME"];
const WITH_DATA: [&str; 4] = ["SRV", "CAA", "HTTPS", "SVCB"];
const WITH_CONTENT: [&str; 7] = ["A", "AAAA", "CNAME", "PTR", "NS", "MX", "TXT"];

fn text<'a>(record: &'a Value, key: &str) -> &'a str {
    record.get(key).and_then(Value::as_str).unwrap_or_default()
}

impl Zone {
    fn position(&self, change: &Value) -> Result<usize, Refusal> {
        let id = text(change, "id");
        let at = self.records.iter().position(|record| text(record, "id") == id);
        at.ok_or((81_044, "Record does not exist."))
    }

    pub(super) fn delete(&mut self, delete: &Value) -> Result<(), Refusal> {
        let at = self.position(delete)?;
        self.records.remove(at);
        Ok(())
    }

    pub(super) fn patch(&mut self, patch: &Value) -> Result<(), Refusal> {
        let at = self.position(patch)?;
        let mut record = self.records.remove(at);
        if let (Some(record), Some(patch)) = (record.as_object_mut(), patch.as_object()) {
            record.extend(patch.clone());
        }
        let record = self.checked(record)?;
        self.records.push(record);
        Ok(())
    }

    pub(super) fn post(&mut self, mut post: Value, id: &str) -> Result<(), Refusal> {
        if let Some(post) = post.as_object_mut() {
            post.insert("id".into(), json!(id));
        }
        let record = self.checked(post)?;
        self.records.push(record);
        Ok(())
    }

    /// The record as the server keeps it.
    fn checked(&self, mut record: Value) -> Result<Value, Refusal> {
        let (name, kind) = (text(&record, "name").to_lowercase(), text(&record, "type").to_owned());
        if name != self.name && !name.ends_with(&format!(".{}", self.name)) {
            return Err((9_007, "The record name is not in this zone."));
        }
        let ttl = record.get("ttl").and_then(Value::as_u64).unwrap_or(1);
        if ttl != 1 && !(60..=86_400).contains(&ttl) {
            return Err((9_021, "Invalid TTL. Must be between 60 and 86400 seconds, or 1 for Automatic."));
        }
        let proxied = record.get("proxied").and_then(Value::as_bool).unwrap_or(false);
        if proxied && !PROXIED.contains(&kind.as_str()) {
            return Err((9_004, "This record type cannot be proxied."));
        }
        if text(&record, "comment").chars().count() > 100 {
            return Err((9_300, "DNS record has a comment that is too long."));
        }
        let well_formed = match kind.as_str() {
            "A" => text(&record, "content").parse::<std::net::Ipv4Addr>().is_ok(),
            "AAAA" => text(&record, "content").parse::<std::net::Ipv6Addr>().is_ok(),
            "MX" => record.get("priority").is_some_and(Value::is_u64) && !text(&record, "content").is_empty(),
            "TXT" => text(&record, "content").starts_with('"') && text(&record, "content").ends_with('"'),
            kind if WITH_DATA.contains(&kind) => record.get("data").is_some_and(Value::is_object),
            kind => WITH_CONTENT.contains(&kind) && !text(&record, "content").is_empty(),
        };
        if !well_formed {
            return Err((9_005, "Content for the record is invalid."));
        }
        let others = || self.records.iter().filter(|other| text(other, "name") == name);
        let hosts = |kind: &str| matches!(kind, "A" | "AAAA" | "CNAME");
        if kind == "CNAME" && others().any(|other| hosts(text(other, "type"))) {
            return Err((81_053, "An A, AAAA, or CNAME record with that host already exists."));
        }
        if matches!(kind.as_str(), "A" | "AAAA") && others().any(|other| text(other, "type") == "CNAME") {
            return Err((81_054, "A CNAME record with that host already exists."));
        }
        let value = |record: &Value| {
            ["content", "data", "priority"].map(|key| record.get(key).cloned().unwrap_or(Value::Null))
        };
        if others().any(|other| text(other, "type") == kind && value(other) == value(&record)) {
            return Err((81_058, "An identical record already exists."));
        }
        if let Some(object) = record.as_object_mut() {
            object.insert("name".into(), json!(name));
            object.insert("proxied".into(), json!(proxied));
            object.insert("ttl".into(), json!(if proxied { 1 } else { ttl }));
        }
        Ok(record)
    }
}
