//! The most that a file may hold. A client with the role `write` can send one to `what-if`, and reading it takes time and memory.

use netstead_plan::DomainMatch;

use netstead_settings::{Entry, Problems, Table, Value};

/// Most tables of each kind, with what to do instead.
const TABLES: [(&str, usize, Option<&str>); 4] = [
    ("pool", 25_000, Some("make the others with `netstead pool create`")),
    ("source", 500, None),
    ("dns", 500, None),
    ("domain", 1000, None),
];

/// Most domains and patterns of all `[dns.NAME]` and `[source.NAME]` together…
const MOST_PATTERNS: usize = 5000;
/// …and how many of them may be regular expressions, each of which takes memory as long as it is there.
const MOST_REGEXES: usize = 100;

/// Whether the file is small enough to be looked at more closely. Nothing but these numbers is checked here.
pub(super) fn check(root: &Table, problems: &mut Problems) -> bool {
    let mut within = true;
    for (section, most, hint) in TABLES {
        let Some((entry, tables)) = named(root, section) else { continue };
        let count = tables.entries.len();
        if count > most {
            let message = format!("there are {count} `[{section}.NAME]`, and a file may have at most {most}");
            problems.add(&entry.key, message, hint.map(str::to_owned));
            within = false;
        }
    }
    let sections: Vec<(&Entry, &Table)> =
        ["dns", "source"].iter().filter_map(|name| named(root, name)).collect();
    let Some((entry, _)) = sections.first() else { return within };
    let entries = sections.iter().flat_map(|(_, tables)| tables.entries.values());
    let tables = entries.filter_map(|entry| match &entry.node.value {
        Value::Table(table) => Some(table),
        _ => None,
    });
    let lists = tables.flat_map(|table| [table.entries.get("domains"), table.entries.get("exclude_domains")]);
    let patterns: Vec<&str> = lists.flatten().flat_map(texts).collect();
    let regexes = patterns.iter().filter(|text| DomainMatch::is_regex(text)).count();
    for (count, most, what) in [
        (patterns.len(), MOST_PATTERNS, "domains"),
        (regexes, MOST_REGEXES, "regular expressions among the domains"),
    ] {
        if count > most {
            let message = format!("there are {count} {what}, and a file may have at most {most}");
            let hint = "a domain means all names below it; `*` in a domain means any text";
            problems.add(&entry.key, message, Some(hint.to_owned()));
            within = false;
        }
    }
    within
}

fn named<'t>(root: &'t Table, section: &str) -> Option<(&'t Entry, &'t Table)> {
    let entry = root.entries.get(section)?;
    match &entry.node.value {
        Value::Table(table) => Some((entry, table)),
        _ => None,
    }
}

/// The texts of a list, as `Section::list` reads them.
fn texts(entry: &Entry) -> Vec<&str> {
    match &entry.node.value {
        Value::List(nodes) => {
            let texts = nodes.iter().filter_map(|node| match &node.value {
                Value::Text(text) => Some(text.as_str()),
                _ => None,
            });
            texts.collect()
        }
        Value::Plain(text) => text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect(),
        _ => Vec::new(),
    }
}
