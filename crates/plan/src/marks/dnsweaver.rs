//! dnsweaver's marks: TXT at `_dnsweaver.<name>`.
//!
//! The value is `heritage=dnsweaver`, then `instance=<id>` if there is one, then other keys, with commas between. Newer
//! versions write one mark for each value: `record-version=2`, `record-type`, and `record-target` in base64url. Where it
//! cannot list a zone it keeps the names it manages in TXT records at `_dnsweaver-catalog-<number>.<zone>`.

use netstead_model::{Name, RecordData, RecordType};

const PREFIX: &str = "_dnsweaver.";
const CATALOGUE: &str = "_dnsweaver-catalog-";

/// Whether TXT records at `name` list what dnsweaver manages in `zone`.
pub fn is_catalogue(name: &Name, zone: &Name) -> bool {
    let number = name.as_str().strip_prefix(CATALOGUE).and_then(|rest| rest.split_once('.'));
    number.is_some_and(|(number, rest)| {
        rest == zone.as_str() && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Where dnsweaver keeps its list of names with this number.
pub fn catalogue_name(number: usize, zone: &Name) -> Option<Name> {
    format!("{CATALOGUE}{number}.{zone}").parse().ok()
}

/// The names that a list of dnsweaver has. It writes them in full or without the zone.
pub fn catalogued(data: &RecordData, zone: &Name) -> Vec<Name> {
    let RecordData::Txt(strings) = data else { return Vec::new() };
    let words = strings.iter().filter_map(|string| std::str::from_utf8(string).ok());
    let name = |word: &str| -> Option<Name> {
        let full: Option<Name> = word.trim_matches('"').parse().ok();
        full.filter(|name| name.is_subdomain_of(zone))
            .or_else(|| Name::join(word.trim_matches('"'), zone).ok())
    };
    words.flat_map(str::split_whitespace).filter_map(name).collect()
}

/// Where the marks of a name stand.
pub fn mark_name(name: &Name) -> Option<Name> {
    if name.as_str().starts_with(PREFIX) { None } else { format!("{PREFIX}{name}").parse().ok() }
}

/// One mark of dnsweaver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The name whose records are meant.
    pub name: Name,
    pub instance: Option<String>,
    /// Missing in old marks, which mean every A, AAAA, CNAME and SRV at the name.
    pub kind: Option<RecordType>,
    /// As dnsweaver wrote it: an address or a name.
    pub target: Option<String>,
}

impl Mark {
    /// Reads a mark; none if the record is something else.
    pub fn parse(at: &Name, data: &RecordData) -> Option<Self> {
        let name = at.as_str().strip_prefix(PREFIX)?.parse().ok()?;
        let RecordData::Txt(strings) = data else { return None };
        let text = String::from_utf8(strings.concat()).ok()?;
        let mut fields =
            text.trim_matches('"').split(',').map(|field| field.split_once('=').unwrap_or((field, "")));
        if fields.next()? != ("heritage", "dnsweaver") {
            return None;
        }
        let mut mark = Self { name, instance: None, kind: None, target: None };
        for (key, value) in fields {
            match key {
                "instance" => mark.instance = Some(value.to_owned()),
                "record-type" => mark.kind = Some(value.parse().ok()?),
                "record-target" => mark.target = Some(String::from_utf8(base64url(value)?).ok()?),
                _ => {}
            }
        }
        Some(mark)
    }

    /// Whether the value at the mark's name is dnsweaver's. A mark that names no value says it of all types dnsweaver
    /// writes: so did dnsweaver.
    pub fn covers(&self, data: &RecordData) -> bool {
        use RecordType::{A, Aaaa, Cname, Https, Srv};
        let kind = data.kind();
        match (self.kind, &self.target) {
            (Some(wanted), _) if wanted != kind => false,
            (Some(_), Some(target)) => is_target(data, target.trim_end_matches('.')),
            (Some(_), None) => true,
            (None, _) => matches!(kind, A | Aaaa | Cname | Srv | Https),
        }
    }
}

fn is_target(data: &RecordData, target: &str) -> bool {
    let is = |name: &Name| name.as_str().eq_ignore_ascii_case(target);
    match data {
        RecordData::Cname(name)
        | RecordData::Ptr(name)
        | RecordData::Ns(name)
        | RecordData::Srv { target: name, .. } => is(name),
        RecordData::Txt(strings) => strings.concat() == target.as_bytes(),
        RecordData::Https(_) | RecordData::Svcb(_) => true,
        _ => data.to_address().is_some_and(|address| target.parse() == Ok(address)),
    }
}

/// Base64 with `-` and `_`, without padding.
fn base64url(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut have) = (0u32, 0u32);
    for byte in text.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(value)) & 0xffff;
        have += 6;
        if have >= 8 {
            have -= 8;
            bytes.push(u8::try_from((bits >> have) & 0xff).ok()?);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(at: &str, text: &str) -> Option<Mark> {
        Mark::parse(&at.parse().unwrap(), &RecordData::txt(text))
    }

    #[test]
    fn an_old_mark_means_all_that_dnsweaver_writes_at_the_name() {
        let mark =
            mark("_dnsweaver.app.example.com", "heritage=dnsweaver,instance=home,proxied=true").unwrap();
        assert_eq!((mark.name.as_str(), mark.instance.as_deref()), ("app.example.com", Some("home")));
        assert!(mark.covers(&RecordData::A([192, 0, 2, 1].into())));
        assert!(!mark.covers(&RecordData::txt("v=spf1")));
    }

    #[test]
    fn a_new_mark_means_one_value() {
        let text = "heritage=dnsweaver,record-version=2,record-type=A,record-target=MTkyLjAuMi4x";
        let mark = mark("_dnsweaver.app.example.com", text).unwrap();
        assert_eq!(mark.target.as_deref(), Some("192.0.2.1"));
        assert!(mark.covers(&RecordData::A([192, 0, 2, 1].into())));
        assert!(!mark.covers(&RecordData::A([192, 0, 2, 2].into())));
    }

    #[test]
    fn a_catalogue_has_names_with_and_without_the_zone() {
        let zone: Name = "w.test".parse().unwrap();
        let list = RecordData::Txt(vec![b"app".to_vec(), b"web.w.test api".to_vec()]);
        let names: Vec<String> = catalogued(&list, &zone).iter().map(ToString::to_string).collect();
        assert_eq!(names, ["app.w.test", "web.w.test", "api.w.test"]);
        let at = catalogue_name(3, &zone).unwrap();
        assert!(
            is_catalogue(&at, &zone) && catalogued(&RecordData::A([192, 0, 2, 1].into()), &zone).is_empty()
        );
    }

    #[test]
    fn what_is_no_mark_is_left() {
        assert_eq!(mark("_dnsweaver.app.example.com", "heritage=external-dns"), None);
        assert_eq!(mark("app.example.com", "heritage=dnsweaver"), None);
        assert_eq!(mark("_dnsweaver.a.b", "heritage=dnsweaver,record-type=A,record-target=***"), None);
    }
}
