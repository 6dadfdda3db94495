//! Every dependency has a reason, and none brings an unwanted crate.

use std::collections::BTreeSet;

use anyhow::{Context, Result};

use crate::shell::{cargo, output, root};

/// Crates that must not be in the tree, on any platform, and why. `deny.toml` says the same for those who have
/// cargo-deny.
const BANNED: &[(&str, &str)] = &[
    ("ring", "one crypto provider is enough, and it is aws-lc-rs"),
    ("native-tls", "TLS is rustls, everywhere"),
    ("openssl", "TLS is rustls, everywhere"),
    ("openssl-sys", "the build needs a C compiler and no headers"),
];

pub(crate) fn without_reason() -> Result<Vec<String>> {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).context("Cargo.toml cannot be read")?;
    let problem = |name| format!("Cargo.toml: a line above `{name}` should say why it is here");
    Ok(unexplained(&manifest).into_iter().map(problem).collect())
}

/// The dependencies of the workspace without a comment above. One comment may speak for the lines right below
/// it; our own crates need none.
fn unexplained(manifest: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut inside = false;
    let mut explained = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line == "[workspace.dependencies]";
            explained = false;
        } else if line.starts_with('#') {
            explained = true;
        } else if line.trim().is_empty() {
            explained = false;
        } else if inside
            && !explained
            && !line.contains("path = ")
            && let Some((name, _)) = line.split_once([' ', '.', '='])
            && !name.is_empty()
        {
            found.push(name);
        }
    }
    found
}

pub(crate) fn banned() -> Result<Vec<String>> {
    let edges = "tree --workspace --edges normal,build,dev --target all --prefix none --format {p}";
    let tree = output(&mut cargo(edges))?;
    Ok(unwanted(&tree).map(|(name, why)| format!("`{name}` is in the tree: {why}")).collect())
}

/// Refuses a program that has the code of tests in it: the feature `testing` of any of our crates.
pub(crate) fn shipped_test_code() -> Result<Vec<String>> {
    let edges = "tree --package netstead --all-features --edges normal,build,features --prefix none";
    let tree = output(&mut cargo(edges))?;
    let problem = |name| {
        format!("`{name}` is shipped with its feature `testing`: only dev-dependencies may turn it on")
    };
    Ok(with_testing(&tree).into_iter().map(problem).collect())
}

fn with_testing(tree: &str) -> BTreeSet<&str> {
    let feature = " feature \"testing\"";
    tree.lines().filter_map(|line| line.split_once(feature)).map(|(name, _)| name).collect()
}

fn unwanted(tree: &str) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    let names: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    BANNED.iter().filter(move |(name, _)| names.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_speaks_for_the_lines_below_it() {
        let manifest = "\
            [workspace.package]\nversion = \"1\"\n\n\
            [workspace.dependencies]\n\
            ours = { path = \"crates/ours\" }\n\n\
            # The command line.\nclap = \"4\"\nclap_complete = \"4\"\n\n\
            bare = \"1\"\nworse = { version = \"2\",\n  features = [] }\n\
            # Said.\nfine = \"1\"\n\
            [profile.dev]\ndebug = 1\n";
        assert_eq!(unexplained(manifest), ["bare", "worse"]);
    }

    #[test]
    fn a_feature_for_tests_is_seen_wherever_it_is_turned_on() {
        let tree = "netstead v0.1.0 (/crates/netstead)\nnetstead-store feature \"default\"\n\
                    netstead-store feature \"testing\"\nnetstead-store feature \"testing\" (*)\nserde v1.0.0\n";
        assert_eq!(with_testing(tree).into_iter().collect::<Vec<_>>(), ["netstead-store"]);
    }

    #[test]
    fn only_the_whole_name_is_banned() {
        let tree = "app v1.0.0 (/app)\nopenssl-probe v0.2.2\nring v0.17.14\nserde v1.0.0 (*)\n";
        assert_eq!(unwanted(tree).map(|(name, _)| *name).collect::<Vec<_>>(), ["ring"]);
    }
}
