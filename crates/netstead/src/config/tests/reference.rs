//! `docs/reference/netstead.toml`, the tables of `configuration.md` and the capability table come from the descriptions of
//! the keys. These tests compare them; with `UPDATE_DOCS=1` they write them.

use std::{fmt::Write as _, path::PathBuf};

use netstead_model::{Marks, TtlSupport, WriteOrder, ZoneSource};
use netstead_settings::{key_rows, toml_lines};

use super::*;
use crate::config::layout::{named_sections, plain_sections};

fn document(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name)
}

/// Writes the file if that is asked for, and compares it.
fn compare(name: &str, wanted: &str) {
    let path = document(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, wanted).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == wanted,
        "docs/reference/{name} is old: UPDATE_DOCS=1 cargo test -p netstead reference"
    );
}

fn example_file() -> String {
    let mut text = String::from(
        "# Every key that netstead.toml may have. A key stands here with its default, an example if it must be set, or nothing.\n\
         # Made from the code by `UPDATE_DOCS=1 cargo test -p netstead reference`.\n",
    );
    for section in plain_sections() {
        let _ = write!(text, "\n#[{}]\n{}", section.name, toml_lines(&section.keys));
    }
    for section in named_sections() {
        let name = if section.name == "domain" { "\"NAME\"" } else { "NAME" };
        let _ = write!(text, "\n#[{}.{name}]\n{}", section.name, toml_lines(&section.shared));
        for (kind, title, keys) in &section.kinds {
            if !keys.is_empty() {
                let _ = write!(text, "\n# With type = \"{kind}\": {title}\n{}", toml_lines(keys));
            }
        }
    }
    text
}

/// The table that a marker such as `<!-- keys: dns.powerdns -->` stands for.
fn generated(what: &str) -> String {
    if what == "capabilities" {
        return capabilities();
    }
    let (section, kind) = what.split_once('.').map_or((what, None), |(section, kind)| (section, Some(kind)));
    let plain = plain_sections().into_iter().find(|one| one.name == section);
    let named = named_sections().into_iter().find(|one| one.name == section);
    let keys = match (plain, named, kind) {
        (Some(section), _, None) => section.keys,
        (Some(section), _, Some("type")) => section.keys.into_iter().take(1).collect(),
        (Some(section), _, Some(kind)) => {
            section.types.into_iter().find(|(name, _)| *name == kind).unwrap().1
        }
        (_, Some(section), None) => section.shared,
        (_, Some(section), Some(kind)) => {
            section.kinds.into_iter().find(|(name, _, _)| *name == kind).unwrap().2
        }
        (None, None, _) => panic!("no section {what}"),
    };
    key_rows(&keys)
}

fn capabilities() -> String {
    let mut text = String::from(
        "| type | ownership is marked | late writes | a name while it changes | times to live | values of one type | wildcards | zones | values \
         that others add meanwhile | record types |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for kind in crate::config::dns::kinds().kinds {
        let can = (kind.capabilities)();
        let types = if can.types == netstead_model::RecordType::ALL {
            "all".to_owned()
        } else {
            can.types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        let marks = match can.marks {
            Marks::Txt => "as TXT",
            Marks::Comment => "as comments",
            Marks::TxtOrComment => "as TXT, or as comments",
            Marks::None => "in the store alone",
        };
        let late = if can.fenced { "refused by the server" } else { "found and taken back" };
        let order = match can.order {
            WriteOrder::Atomic => "changes at once",
            WriteOrder::InPlace => "is there; missing for a moment between CNAME and others",
            WriteOrder::AddFirst => "has both values for a moment; missing for one between CNAME and others",
            WriteOrder::RemoveFirst => "is missing for a moment",
        };
        let ttl = match can.ttl {
            TtlSupport::Free => "any".to_owned(),
            TtlSupport::Fixed(allowed) => allowed.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
            TtlSupport::None(_) => "none".to_owned(),
        };
        let values = if can.one_value { "one" } else { "many" };
        let wildcards = if can.wildcards { "yes" } else { "no" };
        let zones = match can.zones {
            ZoneSource::Listed => "its own",
            ZoneSource::Domains => "none; each configured domain counts as one",
        };
        let foreign = if can.keeps_foreign { "stay" } else { "may be lost" };
        let _ = writeln!(
            text,
            "| `{}` | {marks} | {late} | {order} | {ttl} | {values} | {wildcards} | {zones} | {foreign} | {types} |",
            kind.name,
        );
    }
    text
}

/// The page with every generated part made anew.
fn page(old: &str) -> String {
    let mut text = String::new();
    let mut rest = old;
    while let Some((before, after)) = rest.split_once("<!-- keys: ") {
        let (what, after) = after.split_once(" -->\n").unwrap();
        let (_, after) = after.split_once("<!-- end -->").unwrap();
        let _ = write!(text, "{before}<!-- keys: {what} -->\n\n{}\n<!-- end -->", generated(what));
        rest = after;
    }
    text + rest
}

#[test]
fn the_example_file_has_every_key_and_is_understood() {
    let file = example_file();
    compare("netstead.toml", &file);
    assert!(read(Some((Path::new("netstead.toml"), &file)), [], &[]).is_ok());
}

#[test]
fn the_tables_of_the_reference_page_are_what_the_code_says() {
    let old = std::fs::read_to_string(document("configuration.md")).unwrap();
    compare("configuration.md", &page(&old));
    for what in
        ["api", "log", "ledger", "nameserver", "notify", "pool", "source", "dns", "domain", "capabilities"]
    {
        assert!(old.contains(&format!("<!-- keys: {what} -->")), "{what} is not in configuration.md");
    }
    for section in named_sections() {
        for (kind, _, keys) in section.kinds.iter().filter(|(_, _, keys)| !keys.is_empty()) {
            let marker = format!("<!-- keys: {}.{kind} -->", section.name);
            assert!(old.contains(&marker), "{marker} is not in configuration.md ({} keys)", keys.len());
        }
    }
}
