//! Every file that describes a kind is in the list of kinds. Without this rule a forgotten line would make a kind that no program knows.

use anyhow::Result;

use super::files::{shown, sources};
use crate::shell::root;

/// A file that describes a kind has such a line.
const DESCRIBES: &str = "pub const KIND: ";
/// Directories with a file for each kind, and the file with their list.
const LISTS: &[(&str, &str)] = &[
    ("crates/providers/src/dns/", "crates/providers/src/dns.rs"),
    ("crates/providers/src/ipam/", "crates/providers/src/ipam.rs"),
    ("crates/providers/src/pool/", "crates/providers/src/pool.rs"),
    ("crates/sources/src/", "crates/sources/src/lib.rs"),
];

pub(crate) fn unlisted() -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for path in sources()? {
        let name = shown(&path);
        let Some((dir, list)) = LISTS.iter().find(|(dir, _)| name.starts_with(dir)) else { continue };
        if !std::fs::read_to_string(&path)?.lines().any(|line| line.starts_with(DESCRIBES)) {
            continue;
        }
        // The kind is named like its file, whatever lies below that: `docker/settings.rs` describes `docker`.
        let rest = name.get(dir.len()..).unwrap_or_default();
        let kind = rest.split(['/', '.']).next().unwrap_or_default();
        if !lists(&std::fs::read_to_string(root().join(list))?, kind) {
            problems
                .push(format!("{name} describes a kind: add `&{kind}::KIND` to the list `KINDS` of {list}"));
        }
    }
    Ok(problems)
}

/// Whether the list of kinds in this text has the kind.
fn lists(text: &str, kind: &str) -> bool {
    let list = text.split("pub const KINDS: ").nth(1).and_then(|rest| rest.split("];").next());
    list.is_some_and(|list| list.contains(&format!("&{kind}::KIND")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_that_is_named_outside_of_the_list_alone_is_missing() {
        let text = "pub mod webhook;\npub use webhook::KIND;\n\npub const KINDS: &[&DnsKind] = &[\n    &powerdns::KIND,\n];\n\
                    // &webhook::KIND\n";
        assert!(lists(text, "powerdns"));
        assert!(!lists(text, "webhook"));
    }
}
