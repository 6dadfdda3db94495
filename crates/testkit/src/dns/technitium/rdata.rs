//! The data of a record, from the parameters of a call.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::{Map, Value, json};

use super::zone::Parameters;

/// Numbers of service parameters by their names.
const SERVICE_KEYS: [&str; 8] =
    ["mandatory", "alpn", "no-default-alpn", "port", "ipv4hint", "ech", "ipv6hint", "dohpath"];

/// The data that the real server makes of the parameters; `new` are those of an update, which fall back to the old ones.
pub(super) fn rdata(kind: &str, parameters: &Parameters, new: bool) -> Result<Value, String> {
    let get = |name: &str| {
        let mut renewed = String::from("new");
        renewed.extend(name.chars().next().map(|c| c.to_ascii_uppercase()));
        renewed.extend(name.chars().skip(1));
        let renewed = parameters.find(&renewed).filter(|_| new);
        renewed.map_or_else(|| parameters.get(name), Ok)
    };
    let number = |name: &str| -> Result<u16, String> {
        let text = get(name)?;
        text.parse().map_err(|_| format!("The input string '{text}' was not in a correct format."))
    };
    let domain = |name: &str| -> Result<String, String> {
        let text = get(name)?.trim_matches('.').to_lowercase();
        Ok(if text.is_empty() { ".".to_owned() } else { text })
    };
    match kind {
        "A" | "AAAA" => {
            let text = get("ipAddress")?;
            let address: IpAddr =
                text.parse().map_err(|_| "An invalid IP address was specified.".to_owned())?;
            if address.is_ipv4() == (kind == "A") {
                Ok(json!({ "ipAddress": address.to_string() }))
            } else {
                Err("The address does not fit the record type.".into())
            }
        }
        "NS" => Ok(json!({ "nameServer": domain("nameServer")? })),
        // An update has no `newCname`.
        "CNAME" => {
            let cname = parameters.get("cname")?.trim_matches('.').to_lowercase();
            Ok(json!({ "cname": cname }))
        }
        "PTR" => Ok(json!({ "ptrName": domain("ptrName")? })),
        "MX" => Ok(json!({ "preference": number("preference")?, "exchange": domain("exchange")? })),
        "TXT" => text(parameters, get("text")?, new),
        "SRV" => Ok(json!({
            "priority": number("priority")?, "weight": number("weight")?, "port": number("port")?,
            "target": domain("target")?,
        })),
        "CAA" => {
            let flags: u8 = get("flags")?.parse().map_err(|_| "Bad flags.".to_owned())?;
            Ok(json!({ "flags": flags, "tag": get("tag")?, "value": ascii(get("value")?) }))
        }
        "SVCB" | "HTTPS" => {
            let target = get("svcTargetName")?.trim_matches('.').to_lowercase();
            let params = service_params(get("svcParams")?)?;
            Ok(json!({
                "svcPriority": number("svcPriority")?, "svcTargetName": target, "svcParams": params,
                "autoIpv4Hint": false, "autoIpv6Hint": false,
            }))
        }
        _ => Err(format!("Parameter 'rdata' missing for {kind}.")),
    }
}

/// The server stores ASCII, and a question mark for everything else.
fn ascii(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii() { c } else { '?' }).collect()
}

fn text(parameters: &Parameters, text: &str, new: bool) -> Result<Value, String> {
    let split = parameters.find("newSplitText").filter(|_| new).or_else(|| parameters.find("splitText"));
    let text = ascii(text);
    let strings: Vec<String> = if split == Some("true") {
        text.split(['\r', '\n']).filter(|part| !part.is_empty()).map(unescaped).collect()
    } else {
        let chars: Vec<char> = text.chars().collect();
        chars.chunks(255).map(|part| part.iter().collect()).collect()
    };
    if strings.iter().any(|string| string.len() > 255) {
        return Err("TXT record character-string length cannot exceed 255 bytes.".into());
    }
    let joined = strings.concat();
    if parameters.find("known") == Some("false") {
        return Ok(json!({ "text": joined }));
    }
    Ok(json!({ "text": joined, "splitText": strings.len() > 1, "characterStrings": strings }))
}

fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, false) => out.push(c),
            (_, true) => match chars.next() {
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some('t') => out.push('\t'),
                Some('\\') | None => out.push('\\'),
                Some(other) => out.extend(['\\', other]),
            },
        }
    }
    out
}

fn service_params(text: &str) -> Result<Value, String> {
    let mut params = Map::new();
    if text.eq_ignore_ascii_case("false") {
        return Ok(Value::Object(params));
    }
    let parts: Vec<&str> = text.split('|').collect();
    for pair in parts.chunks(2) {
        let [key, value] = pair else { return Err("Index was outside the bounds of the array.".into()) };
        let number = SERVICE_KEYS.iter().position(|known| known.eq_ignore_ascii_case(key));
        let number = number.or_else(|| key.parse().ok()).filter(|number| *number <= 65_535);
        let number = number.ok_or_else(|| format!("Requested value '{key}' was not found."))?;
        let value = match number {
            0 | 1 | 7 => (*value).to_owned(),
            2 => String::new(),
            3 => value.parse::<u16>().map_err(|_| "Bad port.".to_owned())?.to_string(),
            4 => addresses::<Ipv4Addr>(value)?,
            6 => addresses::<Ipv6Addr>(value)?,
            _ => hex(value)?,
        };
        let name = SERVICE_KEYS.get(number).map_or_else(|| number.to_string(), |name| (*name).to_owned());
        if params.insert(name, json!(value)).is_some() {
            return Err("An item with the same key has already been added.".into());
        }
    }
    Ok(Value::Object(params))
}

fn addresses<T: std::str::FromStr + ToString>(text: &str) -> Result<String, String> {
    let read = |part: &str| part.parse::<T>().map(|address| address.to_string());
    let read: Result<Vec<String>, _> = text.split(',').map(read).collect();
    read.map(|addresses| addresses.join(",")).map_err(|_| "An invalid IP address was specified.".into())
}

/// Bytes in hexadecimal, with or without colons; shown with them.
fn hex(text: &str) -> Result<String, String> {
    let digits: String = text.chars().filter(|c| *c != ':').collect();
    if !digits.len().is_multiple_of(2) || !digits.chars().all(|c| c.is_ascii_hexdigit()) {
        return Err("The input is not a valid hex string.".into());
    }
    let digits: Vec<char> = digits.to_uppercase().chars().collect();
    Ok(digits.chunks(2).map(|pair| pair.iter().collect::<String>()).collect::<Vec<_>>().join(":"))
}
