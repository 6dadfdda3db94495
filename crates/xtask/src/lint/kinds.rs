//! Every file that describes a kind is in the list of kinds, or among the modules that the build makes the list of. Without this rule a
//! forgotten line would make a kind that no program knows.

use anyhow::Result;

use super::files::{shown, sources};
use crate::shell::root;

/// A file that describes a kind has such a line.
const DESCRIBES: &str = "pub const KIND: ";
/// Directories with a file for each kind, the file with their list, and what their line there is.
const LISTS: &[(&str, &str, ListedBy)] = &[
    ("crates/providers/src/dns/", "crates/providers/src/dns.rs", ListedBy::Module),
    ("crates/providers/src/ipam/", "crates/providers/src/ipam.rs", ListedBy::Module),
    ("crates/providers/src/pool/", "crates/providers/src/pool.rs", ListedBy::Module),
    ("crates/sources/src/", "crates/sources/src/lib.rs", ListedBy::Entry),
];

/// How a kind gets into a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListedBy {
    /// By the line that names its module.
    Module,
    /// By an entry of `KINDS`.
    Entry,
}

pub(crate) fn unlisted() -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for path in sources()? {
        let name = shown(&path);
        let Some(&(dir, list, by)) = LISTS.iter().find(|(dir, ..)| name.starts_with(dir)) else { continue };
        if !std::fs::read_to_string(&path)?.lines().any(|line| line.starts_with(DESCRIBES)) {
            continue;
        }
        // The kind is named like its file, whatever lies below that: `docker/settings.rs` describes `docker`.
        let rest = name.get(dir.len()..).unwrap_or_default();
        let kind = rest.split(['/', '.']).next().unwrap_or_default();
        if by == ListedBy::Module && rest != format!("{kind}.rs") {
            problems
                .push(format!("{name} describes a kind: do that in {dir}{kind}.rs, where the build looks"));
        }
        if !by.lists(&std::fs::read_to_string(root().join(list))?, kind) {
            problems.push(format!("{name} describes a kind: add {} to {list}", by.line(kind)));
        }
    }
    Ok(problems)
}

impl ListedBy {
    fn line(self, kind: &str) -> String {
        match self {
            Self::Module => format!("`pub mod {kind};`"),
            Self::Entry => format!("`&{kind}::KIND` to the list `KINDS`"),
        }
    }

    /// Whether the kind is listed in this text.
    fn lists(self, text: &str, kind: &str) -> bool {
        match self {
            Self::Module => text.lines().any(|line| line == format!("pub mod {kind};")),
            Self::Entry => {
                let list = text.split("pub const KINDS: ").nth(1).and_then(|rest| rest.split("];").next());
                list.is_some_and(|list| list.contains(&format!("&{kind}::KIND")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_that_is_named_outside_of_the_list_alone_is_missing() {
        let text = "pub mod webhook;\npub use webhook::KIND;\n\npub const KINDS: &[&DnsKind] = &[\n    &powerdns::KIND,\n];\n\
                    // &webhook::KIND\n";
        assert!(ListedBy::Entry.lists(text, "powerdns"));
        assert!(!ListedBy::Entry.lists(text, "webhook"));
        assert!(ListedBy::Module.lists(text, "webhook"));
        assert!(!ListedBy::Module.lists(text, "powerdns"));
    }
}
