//! The JSON Schema of the file, against every example that people are shown.

use std::{collections::BTreeMap, path::PathBuf};

use netstead_settings::{KeyInfo, Shape};

use super::*;

fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = vec![root.join("README.md")];
    for directory in ["docs/guide", "docs/reference"] {
        for entry in std::fs::read_dir(root.join(directory)).unwrap() {
            found.push(entry.unwrap().path());
        }
    }
    found.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    found
}

/// The TOML examples of a document, each with what it says as JSON.
fn examples(text: &str) -> Vec<(String, serde_json::Value)> {
    let blocks = text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let read = |block: &str| (block.to_owned(), toml::from_str(block).unwrap());
    blocks.map(read).collect()
}

#[test]
fn every_example_of_the_documents_fits_the_schema_and_is_understood() {
    let schema = jsonschema::validator_for(&layout::schema()).unwrap();
    let mut count = 0;
    for path in documents() {
        let text = std::fs::read_to_string(&path).unwrap();
        for (block, example) in examples(&text) {
            let wrong: Vec<_> = schema.iter_errors(&example).map(|error| error.to_string()).collect();
            assert!(wrong.is_empty(), "{}: {wrong:?}\n{block}", path.display());
            let read = read(Some((Path::new("netstead.toml"), &block)), [], &[]);
            assert!(read.is_ok(), "{}: {read:?}\n{block}", path.display());
            count += 1;
        }
    }
    assert!(count >= 10, "only {count} examples were found");
}

#[test]
fn the_schema_refuses_what_the_reader_refuses() {
    let schema = jsonschema::validator_for(&layout::schema()).unwrap();
    for (text, fits) in [
        ("[dns.lan]\ntype = \"powerdns\"\nurl = \"http://ns1\"\napi_key = { credential = \"pdns\" }\n", true),
        ("[dns.lan]\ntype = \"powerdns\"\n", true),
        ("[dns.lan]\ntype = \"powrdns\"\n", false),
        ("[dns.lan]\ntype = \"powerdns\"\nservers = [\"ns1\"]\n", false),
        ("[dns.lan]\nurl = \"http://ns1\"\n", false),
        // A table called like a kind is of that kind, unless it says another.
        ("[source.docker]\n", true),
        ("[source.docker]\nhost = \"tcp://10.0.0.1:2375\"\n", true),
        ("[source.docker]\npath = \"hosts\"\n", false),
        ("[source.docker]\ntype = \"hosts\"\npath = \"hosts\"\n", true),
        ("[source.docker]\ntype = \"hosts\"\nhost = \"tcp://10.0.0.1:2375\"\n", false),
        ("[dns.powerdns]\nurl = \"http://ns1\"\n", true),
        ("[pool.lan]\nnetwork = \"10.0.3.0/24\"\nsticky = \"yes\"\n", false),
        ("[ledger]\nmax_events = 5\n", false),
        ("[pools.lan]\n", false),
    ] {
        let document: serde_json::Value = toml::from_str(text).unwrap();
        assert_eq!(schema.is_valid(&document), fits, "{text}");
    }
}

/// A table of netstead.toml: its section, and its type if it has one.
type TableName = (String, Option<String>);

/// The keys of netstead.toml, each with the value that stands behind it.
fn keys_of_example_file() -> BTreeMap<TableName, Vec<(String, String)>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/netstead.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let (mut found, mut current) = (BTreeMap::<TableName, Vec<_>>::new(), None);
    for line in text.lines() {
        if let Some(header) = line.strip_prefix("#[").and_then(|rest| rest.strip_suffix(']')) {
            current = Some((header.split('.').next().unwrap().to_owned(), None));
        } else if let Some(rest) = line.strip_prefix("# With type = \"") {
            let section = current.take().unwrap().0;
            current = Some((section, rest.split('"').next().map(str::to_owned)));
        } else if let Some((key, value)) = line.strip_prefix('#').and_then(|rest| rest.split_once(" ="))
            && !key.contains(' ')
        {
            let keys = found.entry(current.clone().unwrap()).or_default();
            keys.push((key.to_owned(), value.trim().to_owned()));
        }
    }
    found
}

/// A value of this shape, for keys that stand in the file without one.
fn sample(shape: &Shape) -> String {
    match shape {
        Shape::Text | Shape::Format(_) | Shape::Span | Shape::Path => "\"x\"".to_owned(),
        Shape::Flag => "true".to_owned(),
        Shape::Number { min, .. } => min.to_string(),
        Shape::Secret => "{ env = \"X\" }".to_owned(),
        Shape::Choice(words) => format!("\"{}\"", words[0]),
        Shape::List(item) => format!("[{}]", sample(item)),
        Shape::OneOrMore(item) => sample(item),
        Shape::Pairs => "{ x = \"x\" }".to_owned(),
        Shape::Table => "{}".to_owned(),
        Shape::Tables(keys) => {
            let keys: Vec<_> =
                keys.iter().map(|key| format!("{} = {}", key.name, sample(&key.shape))).collect();
            format!("[{{ {} }}]", keys.join(", "))
        }
        Shape::AnyOf(shapes) => sample(&shapes[0]),
    }
}

/// A key without a value in the file that a table must have nevertheless, because it follows from others when it is needed.
fn needed(section: &str, kind: Option<&str>) -> Vec<(&'static str, &'static str)> {
    let mut lines = Vec::new();
    match (section, kind) {
        ("dns", Some(kind)) => {
            if kind != "builtin" {
                lines.push(("domains", "[\"home.test\"]"));
            }
            match kind {
                "dnsmasq" => lines.push(("hostsdir", "\"/etc/dnsmasq.hosts\"")),
                "pihole" => lines.push(("url", "\"http://pihole\"")),
                "webhook" => lines.push(("secret", "\"a secret of the tests\"")),
                _ => {}
            }
        }
        ("store", Some("raft")) => {
            lines.extend([("listen", "\"10.0.0.1:5302\""), ("secret", "\"sixteen letters or more\"")]);
        }
        ("source", Some("proxmox")) => {
            lines.extend([("token_id", "\"netstead@pve!one\""), ("token_secret", "\"x\"")]);
        }
        ("backend" | "ipam", Some("phpipam")) => {
            lines.extend([("user", "\"netstead\""), ("password", "\"x\"")]);
        }
        ("pool", None) => lines.push(("network", "\"10.0.3.0/24\"")),
        _ => {}
    }
    lines
}

#[test]
fn every_key_of_the_example_file_fits_the_schema_and_is_read() {
    let schema = jsonschema::validator_for(&layout::schema()).unwrap();
    let in_file = keys_of_example_file();
    let mut checked = 0;
    // Each table with its section, header, type and the keys it may have.
    let mut tables: Vec<(&str, String, Option<&str>, Vec<KeyInfo>)> = Vec::new();
    for section in layout::plain_sections() {
        let header = format!("[{}]", section.name);
        if section.types.is_empty() {
            tables.push((section.name, header, None, section.keys));
        } else {
            let kind = section.keys.iter().take(1);
            tables.extend(section.types.iter().map(|(name, own)| {
                (section.name, header.clone(), Some(*name), kind.clone().chain(own).cloned().collect())
            }));
        }
    }
    for section in layout::named_sections() {
        let name = if section.name == "domain" { "\"home.test\"" } else { "sample" };
        let header = format!("[{}.{name}]", section.name);
        if section.kinds.is_empty() {
            tables.push((section.name, header, None, section.shared));
        } else {
            let shared = section.shared.iter();
            tables.extend(section.kinds.iter().map(|(kind, _, own)| {
                (section.name, header.clone(), Some(*kind), shared.clone().chain(own).cloned().collect())
            }));
        }
    }
    let mut left: Vec<_> =
        in_file.iter().flat_map(|(table, keys)| keys.iter().map(move |key| (table, key))).collect();
    for (section, header, kind, keys) in &tables {
        let (mut whole, mut given) = (format!("{header}\n"), format!("{header}\n"));
        let needed = needed(section, *kind);
        for key in keys {
            let of_kind = [None, kind.map(str::to_owned)].map(|kind| ((*section).to_owned(), kind));
            let of_file = of_kind.iter().filter_map(|table| in_file.get(table)).flatten();
            let (_, written) = of_file
                .clone()
                .find(|(name, _)| name == key.name)
                .unwrap_or_else(|| panic!("{header} {kind:?}: {} is not in netstead.toml", key.name));
            left.retain(|(table, (name, _))| !(of_kind.contains(table) && name == key.name));
            let value = match *kind {
                Some(kind) if key.name == "type" => format!("\"{kind}\""),
                _ if written.is_empty() => sample(&key.shape),
                _ => written.clone(),
            };
            let _ = writeln!(whole, "{} = {value}", key.name);
            let needed = needed.iter().find(|(name, _)| *name == key.name).map(|(_, value)| *value);
            let said = (key.name == "type" || !written.is_empty()).then_some(value.as_str());
            if let Some(value) = needed.or(said) {
                let _ = writeln!(given, "{} = {value}", key.name);
            }
        }
        let document: serde_json::Value = toml::from_str(&whole).unwrap();
        let wrong: Vec<_> = schema.iter_errors(&document).map(|error| error.to_string()).collect();
        assert!(wrong.is_empty(), "{wrong:?}\n{whole}");
        // The reader knows each key, whatever it says of the samples…
        let problems = problems_of(&whole, &[]);
        assert!(
            !problems.contains("unknown key") && !problems.contains("unknown table"),
            "{problems}\n{whole}"
        );
        // … and takes every value that stands in the file.
        let problems = problems_of(&given, &[]);
        assert!(problems.starts_with("understood"), "{problems}\n{given}");
        checked += 1;
    }
    assert!(left.is_empty(), "keys of no table: {left:?}");
    assert!(checked >= 30, "only {checked} tables were checked");
}
