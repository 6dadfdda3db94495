//! The JSON Schema of the file, against every example that people are shown.

use std::path::PathBuf;

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
        ("[pool.lan]\nnetwork = \"10.0.3.0/24\"\nsticky = \"yes\"\n", false),
        ("[ledger]\nmax_events = 5\n", false),
        ("[pools.lan]\n", false),
    ] {
        let document: serde_json::Value = toml::from_str(text).unwrap();
        assert_eq!(schema.is_valid(&document), fits, "{text}");
    }
}
