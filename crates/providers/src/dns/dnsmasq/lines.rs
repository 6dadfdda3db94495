//! Lines of dnsmasq's files: those that hold records, and how a record is written.

use std::{fmt::Write as _, io::Write as _, net::IpAddr};

use netstead_model::{Name, RecordData, RecordType};

/// Options that hold records of types that Netstead does not write to dnsmasq.
const OTHER_TYPES: [&str; 5] = ["mx-host", "caa-record", "naptr-record", "dns-rr", "interface-name"];

/// The meaning of one line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) records: Vec<(Name, RecordData)>,
    /// Sets with a value that cannot be read.
    pub(super) opaque: Vec<(Name, RecordType)>,
    /// Names with records of other types.
    pub(super) others: Vec<Name>,
}

/// Reads a line of a hosts file: an address and its names.
pub(super) fn hosts_line(line: &[u8]) -> Line {
    let text = String::from_utf8_lossy(line);
    let mut words = text.split('#').next().unwrap_or_default().split_whitespace();
    let Some(address) = words.next().and_then(|word| word.parse::<IpAddr>().ok()) else {
        return Line::default();
    };
    let names = words.filter_map(|word| word.parse::<Name>().ok());
    Line { records: names.map(|name| (name, RecordData::address(address))).collect(), ..Line::default() }
}

/// Reads a line of a configuration file. Options that hold no records mean nothing here.
pub(super) fn conf_line(line: &[u8]) -> Line {
    let Some((option, value)) = split_once(line, b'=') else { return Line::default() };
    let option = String::from_utf8_lossy(option.trim_ascii()).into_owned();
    let fields = fields(value);
    let Some(first) = fields.first() else { return Line::default() };
    match option.as_str() {
        "address" => address(value),
        "host-record" => host_record(&fields),
        "cname" => cname(&fields),
        "txt-record" => Line {
            records: name(first)
                .map(|name| (name, RecordData::Txt(texts(fields.get(1..).unwrap_or_default()))))
                .into_iter()
                .collect(),
            ..Line::default()
        },
        "srv-host" => srv(&fields),
        "ptr-record" => {
            let target = fields.get(1).and_then(|field| name(field));
            one(name(first), RecordType::Ptr, target.map(RecordData::Ptr))
        }
        other if OTHER_TYPES.contains(&other) => {
            Line { others: name(first).into_iter().collect(), ..Line::default() }
        }
        _ => Line::default(),
    }
}

/// `/name/name/address`. Without an address the names are blocked, which is no record.
fn address(value: &[u8]) -> Line {
    let text = String::from_utf8_lossy(value.trim_ascii()).into_owned();
    let text = text.split_once(" #").map_or(text.as_str(), |(text, _)| text).trim();
    let Some((names, address)) = text.strip_prefix('/').and_then(|rest| rest.rsplit_once('/')) else {
        return Line::default();
    };
    let Ok(address) = address.parse::<IpAddr>() else { return Line::default() };
    let names = names.split('/').filter_map(|name| name.parse::<Name>().ok());
    Line { records: names.map(|name| (name, RecordData::address(address))).collect(), ..Line::default() }
}

/// `name,name,address,address,ttl`.
fn host_record(fields: &[Vec<u8>]) -> Line {
    let mut names = Vec::new();
    let mut addresses = Vec::new();
    for field in fields {
        let text = String::from_utf8_lossy(field);
        if let Ok(address) = text.parse::<IpAddr>() {
            addresses.push(RecordData::address(address));
        } else if addresses.is_empty() {
            names.extend(text.parse::<Name>().ok());
        }
    }
    let records = names.iter().flat_map(|name| addresses.iter().map(|data| (name.clone(), data.clone())));
    Line { records: records.collect(), ..Line::default() }
}

/// `alias,alias,target` or `alias,alias,target,ttl`.
fn cname(fields: &[Vec<u8>]) -> Line {
    let ttl = |field: &Vec<u8>| field.iter().all(u8::is_ascii_digit);
    let fields = match fields.split_last() {
        Some((last, rest)) if rest.len() >= 2 && ttl(last) => rest,
        _ => fields,
    };
    let Some((target, aliases)) = fields.split_last() else { return Line::default() };
    let aliases = aliases.iter().filter_map(|alias| name(alias));
    match name(target) {
        Some(target) => Line {
            records: aliases.map(|alias| (alias, RecordData::Cname(target.clone()))).collect(),
            ..Line::default()
        },
        None => Line { opaque: aliases.map(|alias| (alias, RecordType::Cname)).collect(), ..Line::default() },
    }
}

/// `name,target,port,priority,weight`; all but the name may be missing.
fn srv(fields: &[Vec<u8>]) -> Line {
    let number = |index: usize, usual: u16| match fields.get(index) {
        None => Some(usual),
        Some(field) => String::from_utf8_lossy(field).parse::<u16>().ok(),
    };
    let data = || {
        let target = name(fields.get(1)?)?;
        Some(RecordData::Srv { target, port: number(2, 1)?, priority: number(3, 0)?, weight: number(4, 0)? })
    };
    one(fields.first().and_then(|field| name(field)), RecordType::Srv, data())
}

fn one(name: Option<Name>, kind: RecordType, data: Option<RecordData>) -> Line {
    match (name, data) {
        (Some(name), Some(data)) => Line { records: vec![(name, data)], ..Line::default() },
        (Some(name), None) => Line { opaque: vec![(name, kind)], ..Line::default() },
        (None, _) => Line::default(),
    }
}

fn name(field: &[u8]) -> Option<Name> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

fn texts(fields: &[Vec<u8>]) -> Vec<Vec<u8>> {
    if fields.is_empty() { vec![Vec::new()] } else { fields.to_vec() }
}

fn split_once(line: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let index = line.iter().position(|byte| *byte == at)?;
    Some((line.get(..index)?, line.get(index + 1..)?))
}

/// The fields between commas. Quotes hold a field together and know a few escapes; a `#` after a space begins a comment.
fn fields(value: &[u8]) -> Vec<Vec<u8>> {
    let mut fields = vec![Vec::new()];
    let (mut quoted, mut was_quoted, mut blank) = (false, false, true);
    let mut bytes = value.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let Some(field) = fields.last_mut() else { break };
        match byte {
            b'"' => (quoted, was_quoted) = (!quoted, true),
            b'\\' if quoted => match bytes.peek().and_then(|next| unescaped(*next)) {
                Some(meant) => {
                    bytes.next();
                    field.push(meant);
                }
                None => field.push(byte),
            },
            b',' if !quoted => {
                trim(field, was_quoted);
                was_quoted = false;
                fields.push(Vec::new());
            }
            b'#' if !quoted && blank => break,
            _ if !quoted && byte.is_ascii_whitespace() && (was_quoted || field.is_empty()) => {}
            _ => field.push(byte),
        }
        blank = byte.is_ascii_whitespace();
    }
    if let Some(field) = fields.last_mut() {
        trim(field, was_quoted);
    }
    fields
}

/// Blanks around a field count only in quotes.
fn trim(field: &mut Vec<u8>, was_quoted: bool) {
    if !was_quoted {
        *field = field.trim_ascii().to_vec();
    }
}

fn unescaped(byte: u8) -> Option<u8> {
    match byte {
        b'"' | b'\\' => Some(byte),
        b't' => Some(b'\t'),
        b'n' => Some(b'\n'),
        b'r' => Some(b'\r'),
        b'b' => Some(8),
        b'e' => Some(27),
        _ => None,
    }
}

/// Adds the line of a hosts file for an address.
pub(super) fn add_hosts_line(text: &mut Vec<u8>, name: &Name, address: IpAddr) {
    // A `Vec` takes everything.
    let _ = writeln!(text, "{address}\t{name}");
}

/// The line of a configuration file for a record, or why there is none.
pub(super) fn to_conf_line(name: &Name, data: &RecordData) -> Result<Vec<u8>, String> {
    let mut line = match data {
        RecordData::A(_) | RecordData::Aaaa(_) if name.is_wildcard() => {
            format!("address=/{name}/{data}").into_bytes()
        }
        _ if name.is_wildcard() => return Err("dnsmasq has wildcards for addresses only".into()),
        RecordData::A(_) | RecordData::Aaaa(_) => format!("host-record={name},{data}").into_bytes(),
        RecordData::Cname(target) if target == name => {
            return Err(format!("`{name}` would be an alias of itself"));
        }
        RecordData::Cname(target) => format!("cname={name},{target}").into_bytes(),
        RecordData::Ptr(target) => format!("ptr-record={name},{target}").into_bytes(),
        RecordData::Srv { priority, weight, port, target } => {
            format!("srv-host={name},{target},{port},{priority},{weight}").into_bytes()
        }
        RecordData::Txt(strings) => txt_line(name, strings)?,
        other => return Err(format!("dnsmasq is given no records of type {}", other.kind())),
    };
    line.push(b'\n');
    Ok(line)
}

fn txt_line(name: &Name, strings: &[Vec<u8>]) -> Result<Vec<u8>, String> {
    let mut line = String::new();
    // Writing to a string cannot fail.
    let _ = write!(line, "txt-record={name}");
    let mut line = line.into_bytes();
    for string in strings {
        line.extend_from_slice(b",\"");
        for byte in string {
            match byte {
                b'"' | b'\\' => line.extend([b'\\', *byte]),
                b'\t' => line.extend_from_slice(b"\\t"),
                b'\n' => line.extend_from_slice(b"\\n"),
                b'\r' => line.extend_from_slice(b"\\r"),
                // dnsmasq marks quoted characters with these and would turn them into others.
                0..32 => return Err(format!("dnsmasq cannot hold a text with the byte {byte}")),
                _ => line.push(*byte),
            }
        }
        line.push(b'"');
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &Line) -> Vec<String> {
        line.records.iter().map(|(name, data)| format!("{name} {} {data}", data.kind())).collect()
    }

    #[test]
    fn foreign_lines_are_read_as_dnsmasq_reads_them() {
        let cases: &[(&str, &[&str])] = &[
            ("address=/app.home.test/10.0.0.1", &["app.home.test A 10.0.0.1"]),
            ("address=/a.test/b.test/fd00::1 # two", &["a.test AAAA fd00::1", "b.test AAAA fd00::1"]),
            ("address=/blocked.test/", &[]),
            ("address=/#/10.0.0.1", &[]),
            ("#address=/app.home.test/10.0.0.1", &[]),
            (
                "cname=www.test,alt.test,web.test,60",
                &["www.test CNAME web.test.", "alt.test CNAME web.test."],
            ),
            ("cname = www.test , web.test", &["www.test CNAME web.test."]),
            ("host-record=nas.test,10.0.0.2,fd00::2,300", &["nas.test A 10.0.0.2", "nas.test AAAA fd00::2"]),
            (r#"txt-record=t.test,"a, \"b\"",c  # no"#, &[r#"t.test TXT "a, \"b\"" "c""#]),
            ("txt-record=t.test", &[r#"t.test TXT """#]),
            ("srv-host=_x._tcp.test,web.test", &["_x._tcp.test SRV 0 0 1 web.test."]),
            ("ptr-record=1.0.0.10.in-addr.arpa,web.test", &["1.0.0.10.in-addr.arpa PTR web.test."]),
            ("server=/home.test/10.0.0.53", &[]),
            ("domain-needed", &[]),
        ];
        for (text, wanted) in cases {
            assert_eq!(shown(&conf_line(text.as_bytes())), *wanted, "{text}");
        }
        let hosts = hosts_line(b" 10.0.0.1\tweb.test www.test # both");
        assert_eq!(shown(&hosts), ["web.test A 10.0.0.1", "www.test A 10.0.0.1"]);
        assert_eq!(hosts_line(b"# 10.0.0.1 web.test"), Line::default());
        assert_eq!(conf_line(b"mx-host=m.test,mail.test,10").others, ["m.test"]);
        let opaque = conf_line(b"srv-host=_x._tcp.test").opaque;
        assert_eq!(opaque, [("_x._tcp.test".parse().unwrap(), RecordType::Srv)]);
    }

    #[test]
    fn written_lines_are_read_back() {
        let cases = [
            ("a.test", RecordType::A, "192.0.2.1"),
            ("*.a.test", RecordType::Aaaa, "2001:db8::1"),
            ("a.test", RecordType::Cname, "b.test."),
            ("a.test", RecordType::Srv, "1 2 443 b.test."),
            ("a.test", RecordType::Ptr, "b.test."),
            ("a.test", RecordType::Txt, r#""\"q\" \\ # , ;" "" " blank " "\195\188\255\009\010\013""#),
        ];
        for (at, kind, text) in cases {
            let (name, data) = (at.parse::<Name>().unwrap(), RecordData::parse(kind, text).unwrap());
            let line = to_conf_line(&name, &data).unwrap();
            assert_eq!(conf_line(line.trim_ascii_end()).records, [(name, data)], "{text}");
        }
        let refused = [
            ("a.test", RecordType::Txt, r#""\000""#),
            ("*.a.test", RecordType::Txt, r#""x""#),
            ("a.test", RecordType::Cname, "a.test."),
            ("a.test", RecordType::Mx, "10 b.test."),
        ];
        for (at, kind, text) in refused {
            let data = RecordData::parse(kind, text).unwrap();
            assert!(to_conf_line(&at.parse().unwrap(), &data).is_err(), "{text}");
        }
    }
}
