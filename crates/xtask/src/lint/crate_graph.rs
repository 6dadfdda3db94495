//! Which crate may depend on which.

use anyhow::{Context, Result};

use crate::shell::root;

/// Each crate with the crates it may depend on; tests may also use the testkit. ARCHITECTURE.md describes them.
const ALLOWED: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("settings", &["model"]),
    ("wire", &["model", "settings"]),
    ("store", &["model", "wire"]),
    ("ledger", &["model", "store"]),
    ("sources", &["model", "settings", "wire"]),
    ("plan", &["model"]),
    ("client", &["model", "wire"]),
    ("providers", &["model", "settings", "wire", "client"]),
    ("nameserver", &["model", "settings", "wire", "store"]),
    ("engine", &["model", "store", "ledger", "plan"]),
    ("api", &["model", "wire", "store", "ledger", "plan", "engine", "client"]),
    ("operator", &["model", "settings", "wire"]),
    ("web", &["model", "client", "api"]),
    (
        "netstead",
        &[
            "model",
            "settings",
            "wire",
            "store",
            "ledger",
            "sources",
            "plan",
            "providers",
            "nameserver",
            "engine",
            "client",
            "api",
            "operator",
            "web",
        ],
    ),
    ("terraform", &["model", "wire", "client", "providers"]),
    ("testkit", &[]),
    ("xtask", &[]),
];

pub(crate) fn forbidden_dependencies() -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).context("crates/ cannot be read")? {
        let entry = entry?;
        // A directory without a manifest is not a crate, as cargo sees it too.
        let Ok(manifest) = std::fs::read_to_string(entry.path().join("Cargo.toml")) else { continue };
        let room = entry.file_name().to_string_lossy().into_owned();
        let Some((_, may_know)) = ALLOWED.iter().find(|(name, _)| *name == room) else {
            problems.push(format!(
                "crates/{room} is not in the table of rooms: crates/xtask/src/lint/crate_graph.rs"
            ));
            continue;
        };
        let strangers = dependencies_of(&manifest).into_iter().filter(|other| !may_know.contains(other));
        problems.extend(strangers.map(|other| format!("crates/{room}: `{room}` may not know `{other}`")));
    }
    Ok(problems)
}

/// The crates that a manifest names outside of its dev-dependencies.
fn dependencies_of(manifest: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut tests_only = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            tests_only = line.contains("dev-dependencies");
        } else if !tests_only && let Some(rest) = line.strip_prefix("netstead-") {
            found.extend(rest.split(['.', ' ', '=']).next());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tests_use_is_their_own_affair() {
        let manifest = "[package]\nname = \"netstead-api\"\n\n\
            [dependencies]\nnetstead-model.workspace = true\nnetstead-store = { workspace = true }\n\n\
            [target.'cfg(unix)'.dependencies]\nnetstead-client.workspace = true\n\n\
            [dev-dependencies]\nnetstead-testkit.workspace = true\n";
        assert_eq!(dependencies_of(manifest), ["model", "store", "client"]);
    }

    #[test]
    fn no_room_knows_itself_through_others() {
        for (number, (room, may_know)) in ALLOWED.iter().enumerate() {
            for other in *may_know {
                let place = ALLOWED.iter().position(|(name, _)| name == other);
                assert!(place.is_some_and(|place| place < number), "{room} knows {other}, which comes later");
            }
        }
    }
}
