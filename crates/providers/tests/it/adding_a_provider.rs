//! The provider of `docs/guide/adding-a-provider.md`, which is this one, word for word.

mod jsonfile;

use std::{path::Path, sync::Arc};

use netstead_model::{ChangeSign, DnsProvider, Ident};
use netstead_providers::{
    contract::{self, Subject},
    dns::{DnsKind, KINDS},
};
use netstead_settings::{BuildContext, Configured as _};

use self::jsonfile::Config;
use crate::support::zone;

const GUIDE: &str = include_str!("../../../../docs/guide/adding-a-provider.md");

fn build(directory: &Path) -> Arc<dyn DnsProvider> {
    let config = Config { directory: directory.to_owned(), zones: vec![zone()] };
    config.check().unwrap();
    config.build(&BuildContext::new(Ident::from_static("files"))).unwrap()
}

#[test]
fn the_guide_shows_the_provider_that_is_tested_here() {
    let code = include_str!("adding_a_provider/jsonfile.rs");
    assert!(
        GUIDE.contains(&format!("```rust\n{code}```\n")),
        "docs/guide/adding-a-provider.md and crates/providers/tests/it/adding_a_provider/jsonfile.rs differ: copy the file \
         into the guide's first block"
    );
}

/// The line that the guide adds is one of those that the list is made of, and no name is taken twice.
#[test]
fn one_line_adds_the_kind_to_the_list() {
    const IT: &DnsKind = &jsonfile::KIND;
    assert!(KINDS.iter().all(|kind| kind.name != IT.name));
    assert!(GUIDE.contains("```rust\npub mod jsonfile;\n```\n"), "the guide shows another line");
    let modules = include_str!("../../src/dns.rs").lines();
    let modules = modules.filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    let described: Vec<String> =
        modules.filter(|module| *module != "per_record").map(|module| module.replace('_', "-")).collect();
    assert_eq!(KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>(), described);
    let keys: Vec<&str> = jsonfile::KIND.keys().into_iter().map(|key| key.name).collect();
    assert_eq!(keys, ["directory", "zones"]);
}

#[tokio::test]
async fn the_provider_of_the_guide_keeps_the_contract() {
    let dir = tempfile::tempdir().unwrap();
    contract::all(&Subject::inside(build(dir.path()), zone())).await;
    // Another process reads the file; the checks removed what they wrote.
    let left = build(dir.path()).read(&zone()).await.unwrap();
    assert!(left.sets.is_empty() && left.sign.as_ref().and_then(ChangeSign::serial) > Some(10), "{left:?}");
}
