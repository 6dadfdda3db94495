//! Every example of the provider's pages is one that Terraform accepts.

use std::{collections::BTreeSet, fs};

use netstead_terraform::{docs::pages, provider};
use netstead_testkit::Terraform;

/// The local names that the examples use: a resource belongs to the provider that its type begins with.
const REQUIREMENT: &str = "terraform {\n  required_providers {\n    netstead = {\n      source = \"netstead/netstead\"\n    }\n    \
                           netaddr = {\n      source = \"netstead/netstead\"\n    }\n  }\n}\n";

/// The blocks in a page that are marked as Terraform's.
fn blocks(page: &str) -> Vec<String> {
    let parts = page.split("```terraform\n").skip(1);
    parts.filter_map(|part| Some(part.split_once("```")?.0.to_owned())).collect()
}

/// Blocks of the guides that need what another block of the same guide has.
fn is_fragment(path: &str, block: &str) -> bool {
    path.starts_with("guides/") && !block.contains("resource \"")
}

#[test]
fn every_example_of_the_pages_is_valid() {
    let Some(terraform) = Terraform::new(env!("CARGO_BIN_EXE_terraform-provider-netstead").as_ref()) else {
        return;
    };
    let mut seen = BTreeSet::new();
    for (path, page) in pages(&provider()) {
        let found = blocks(&page);
        assert!(!found.is_empty(), "{path} has no example");
        for block in found {
            if is_fragment(&path, &block) || !seen.insert(block.clone()) {
                continue;
            }
            let requirement = if block.contains("required_providers") { "" } else { REQUIREMENT };
            fs::write(terraform.path().join("main.tf"), format!("{requirement}{block}")).unwrap();
            let run = terraform.run(&["validate", "-no-color"]).unwrap();
            assert_eq!(run.code, 0, "an example of {path}:\n{block}\n{}\n{}", run.out, run.err);
        }
    }
    assert!(seen.len() > 35, "only {} examples were found", seen.len());
}

#[test]
fn every_file_of_examples_is_on_a_page() {
    let pages: String = pages(&provider()).into_iter().map(|(_, page)| page).collect();
    for file in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/examples")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|end| end == "tf") {
            assert!(pages.contains(&fs::read_to_string(&path).unwrap()), "{} is on no page", path.display());
        }
    }
}
