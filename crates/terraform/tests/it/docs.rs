//! The pages of the registry are those that the schemas give.

use std::{env, fs, path::Path};

use netstead_terraform::{docs::pages, provider};

/// `UPDATE_DOCS=1` writes them.
#[test]
fn the_pages_of_the_registry_say_what_the_schemas_say() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let pages = pages(&provider());
    if env::var_os("UPDATE_DOCS").is_some() {
        for (path, text) in &pages {
            let file = dir.join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
    }
    for (path, text) in &pages {
        let there = fs::read_to_string(dir.join(path)).unwrap_or_default();
        assert_eq!(
            &there, text,
            "docs/{path} is not as the schema: UPDATE_DOCS=1 cargo test -p netstead-terraform"
        );
    }
    let written: usize = ["resources", "data-sources", "ephemeral-resources", "functions", "guides"]
        .iter()
        .map(|part| fs::read_dir(dir.join(part)).unwrap().count())
        .sum();
    assert_eq!(written + 1, pages.len(), "a page is left of a resource that is gone");
}
