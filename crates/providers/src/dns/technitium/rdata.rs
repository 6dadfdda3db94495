//! Values as parameters of a call, and from the JSON of an answer.

use netstead_model::{Name, RecordData, RecordType};
use serde_json::Value;

use super::service;

/// The parameters of `add` and `delete` for a value; the reason if the server cannot hold it.
pub(super) fn parameters(data: &RecordData) -> Result<Vec<(&'static str, String)>, String> {
    let pairs = match data {
        RecordData::A(address) => vec![("ipAddress", address.to_string())],
        RecordData::Aaaa(address) => vec![("ipAddress", address.to_string())],
        RecordData::Cname(name) => vec![("cname", name.to_string())],
        RecordData::Ptr(name) => vec![("ptrName", name.to_string())],
        RecordData::Ns(name) => vec![("nameServer", name.to_string())],
        RecordData::Srv { priority, weight, port, target } => vec![
            ("priority", priority.to_string()),
            ("weight", weight.to_string()),
            ("port", port.to_string()),
            ("target", target.to_string()),
        ],
        RecordData::Mx { preference, exchange } => {
            let exchange = exchange.as_ref().map_or(".", Name::as_str).to_owned();
            vec![("preference", preference.to_string()), ("exchange", exchange)]
        }
        RecordData::Txt(strings) => return text(strings),
        RecordData::Caa { flags, tag, value } => {
            let value = ascii(value)?;
            vec![("flags", flags.to_string()), ("tag", tag.clone()), ("value", value)]
        }
        RecordData::Https(service) | RecordData::Svcb(service) => vec![
            ("svcPriority", service.priority.to_string()),
            ("svcTargetName", service.target.as_ref().map_or(".", Name::as_str).to_owned()),
            ("svcParams", service::to_parameter(service)?),
        ],
    };
    Ok(pairs)
}

/// The parameters of `update` from one value to another of its type.
pub(super) fn update_parameters(old: &RecordData, new: &RecordData) -> Result<Vec<(String, String)>, String> {
    let owned = |(key, value): (&str, String)| (key.to_owned(), value);
    // The one value of a CNAME is the new one.
    if let RecordData::Cname(_) = new {
        return Ok(parameters(new)?.into_iter().map(owned).collect());
    }
    let renamed = |(key, value): (&str, String)| {
        let mut renamed = String::from("new");
        renamed.extend(key.chars().next().map(|c| c.to_ascii_uppercase()));
        renamed.extend(key.chars().skip(1));
        (renamed, value)
    };
    let (old, new) = (parameters(old)?, parameters(new)?);
    Ok(old.into_iter().map(owned).chain(new.into_iter().map(renamed)).collect())
}

/// The server keeps ASCII, and makes a question mark of everything else.
fn ascii(bytes: &[u8]) -> Result<String, String> {
    if bytes.is_ascii() && !bytes.is_empty() {
        return Ok(String::from_utf8_lossy(bytes).into_owned());
    }
    Err("Technitium holds only text in ASCII, and no empty text".into())
}

/// Strings as the server splits a text by itself, or one on each line.
fn text(strings: &[Vec<u8>]) -> Result<Vec<(&'static str, String)>, String> {
    let whole = ascii(&strings.concat())?;
    if RecordData::txt(&whole) == RecordData::Txt(strings.to_vec()) {
        return Ok(vec![("text", whole), ("splitText", "false".into())]);
    }
    let escaped = |string: &Vec<u8>| {
        let string = ascii(string)?;
        Ok(string.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t"))
    };
    let lines: Result<Vec<String>, String> = strings.iter().map(escaped).collect();
    Ok(vec![("text", lines?.join("\n")), ("splitText", "true".into())])
}

/// The value in an answer. None if our types cannot hold it.
pub(super) fn read(kind: RecordType, rdata: &Value) -> Option<RecordData> {
    let text = |key: &str| rdata.get(key)?.as_str();
    let short = |key: &str| u16::try_from(rdata.get(key)?.as_u64()?).ok();
    let name = |key: &str| text(key)?.parse::<Name>().ok();
    Some(match kind {
        RecordType::A => RecordData::A(text("ipAddress")?.parse().ok()?),
        RecordType::Aaaa => RecordData::Aaaa(text("ipAddress")?.parse().ok()?),
        RecordType::Cname => RecordData::Cname(name("cname")?),
        RecordType::Ptr => RecordData::Ptr(name("ptrName")?),
        RecordType::Ns => RecordData::Ns(name("nameServer")?),
        RecordType::Srv => RecordData::Srv {
            priority: short("priority")?,
            weight: short("weight")?,
            port: short("port")?,
            target: name("target")?,
        },
        RecordType::Mx => RecordData::Mx {
            preference: short("preference")?,
            exchange: if text("exchange")? == "." { None } else { Some(name("exchange")?) },
        },
        RecordType::Txt => match rdata.get("characterStrings").and_then(Value::as_array) {
            Some(strings) => {
                let strings = strings.iter().map(|string| Some(string.as_str()?.as_bytes().to_vec()));
                RecordData::Txt(strings.collect::<Option<_>>()?)
            }
            // Old versions join the strings.
            None => RecordData::txt(text("text")?),
        },
        RecordType::Caa => RecordData::Caa {
            flags: u8::try_from(rdata.get("flags")?.as_u64()?).ok()?,
            tag: text("tag")?.to_ascii_lowercase(),
            value: text("value")?.as_bytes().to_vec(),
        },
        RecordType::Https => RecordData::Https(service::read(rdata)?),
        RecordType::Svcb => RecordData::Svcb(service::read(rdata)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(kind: RecordType, text: &str) -> RecordData {
        RecordData::parse(kind, text).unwrap()
    }

    #[test]
    fn strings_of_a_text_stay_apart() {
        let pair = |text: &str, split: &str| vec![("text", text.to_owned()), ("splitText", split.to_owned())];
        let one = value(RecordType::Txt, r#""one \\ string""#);
        assert_eq!(parameters(&one), Ok(pair(r"one \ string", "false")));
        let two = value(RecordType::Txt, r#""one \\" "two\010lines""#);
        assert_eq!(parameters(&two), Ok(pair("one \\\\\ntwo\\nlines", "true")));
        for lost in [r#""""#, r#""a" """#, r#""\195\188""#] {
            assert!(parameters(&value(RecordType::Txt, lost)).is_err(), "{lost}");
        }
    }

    #[test]
    fn an_update_names_both_values_but_of_a_cname() {
        let pairs = |old: &RecordData, new: &RecordData| {
            let pairs = update_parameters(old, new).unwrap();
            pairs.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join("&")
        };
        let a = |text: &str| value(RecordType::A, text);
        assert_eq!(pairs(&a("192.0.2.1"), &a("192.0.2.2")), "ipAddress=192.0.2.1&newIpAddress=192.0.2.2");
        let alias = |text: &str| value(RecordType::Cname, text);
        assert_eq!(pairs(&alias("a.test."), &alias("b.test.")), "cname=b.test");
    }
}
