//! Hand-written files, as people and editors leave them.

use std::{path::Path, time::Duration};

use netstead_model::{Content, Source as _, SystemClock, View};
use netstead_sources::{Hosts, contract, hosts::Config};
use proptest::prelude::*;

fn hosts(path: &Path) -> Hosts {
    Hosts::new("file".parse().unwrap(), Config { path: path.to_owned() }, SystemClock::shared())
}

const LINES: &str = "# my machines\n127.0.0.1 localhost\n10.0.3.5 nas.home.test files.home.test\nfd00::5  nas.home.test # both\n";

const TABLE: &str = r#"
[hosts."nas.home.test"]
addresses = ["10.0.3.5", "fd00::5"]
aliases = ["files.home.test"]
ttl = 60

[hosts."home.test"]
records = { MX = ["10 mail.home.test"] }
"#;

#[tokio::test]
async fn a_file_in_either_style_keeps_the_contract() {
    let dir = tempfile::tempdir().unwrap();
    for (file, text) in [("hosts", LINES), ("hosts.toml", TABLE)] {
        let path = dir.path().join(file);
        std::fs::write(&path, text).unwrap();
        contract::sees_the_same_twice(&hosts(&path)).await;
    }
    contract::admits_what_it_cannot_see(&hosts(&dir.path().join("missing"))).await;
}

#[tokio::test]
async fn a_file_without_end_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let (zero, large) = (dir.path().join("zero"), dir.path().join("large"));
    std::os::unix::fs::symlink("/dev/zero", &zero).unwrap();
    std::fs::File::create(&large).unwrap().set_len((16 << 20) + 1).unwrap();
    for (path, reason) in [
        (zero, "it is not a regular file"),
        (large, "it has more than 16777216 bytes, the most that is read"),
        (dir.path().to_owned(), "it is a directory"),
    ] {
        let report = hosts(&path).report().await;
        let reason = format!("{} cannot be read: {reason}", path.display());
        assert_eq!((report.view, report.workloads), (View::Failed { reason }, Vec::new()));
    }
}

#[tokio::test]
async fn lines_give_names_their_addresses_of_both_families() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hosts");
    std::fs::write(&path, LINES).unwrap();
    let report = hosts(&path).report().await;
    let seen: Vec<String> = report
        .workloads
        .iter()
        .flat_map(|workload| &workload.wishes)
        .map(|wish| match &wish.content {
            Content::Addresses(addresses) => {
                let shown: Vec<String> = addresses.iter().map(ToString::to_string).collect();
                format!("{} {} main={}", wish.name, shown.join(" "), wish.main)
            }
            Content::Records { .. } => "records".into(),
        })
        .collect();
    assert_eq!(seen, ["files.home.test 10.0.3.5 main=false", "nas.home.test 10.0.3.5 fd00::5 main=true"]);
}

#[tokio::test]
async fn a_half_written_file_never_claims_to_be_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hosts");
    for text in [
        "",
        "10.0.3.5 nas.home.te",
        "10.0.3.5 a.test\n10.0.",
        "10.0.3.5 a.test\nbanana b.test\n",
        "10.0.3.9\n",
    ] {
        std::fs::write(&path, text).unwrap();
        contract::admits_what_it_cannot_see(&hosts(&path)).await;
    }
    let path = dir.path().join("hosts.toml");
    let cuts =
        (0..TABLE.len()).step_by(7).filter(|cut| toml::from_str::<toml::Table>(&TABLE[..*cut]).is_err());
    for cut in cuts.take(8) {
        std::fs::write(&path, &TABLE[..cut]).unwrap();
        contract::admits_what_it_cannot_see(&hosts(&path)).await;
    }
}

#[tokio::test]
async fn an_unknown_key_is_an_error_that_says_where() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hosts.toml");
    std::fs::write(&path, "[hosts.\"a.test\"]\naddress = [\"10.0.0.1\"]\n").unwrap();
    let View::Failed { reason } = hosts(&path).report().await.view else { panic!("it must fail") };
    assert!(reason.contains("address") && reason.contains("line 2"), "{reason}");
}

#[tokio::test]
async fn a_change_is_noticed_also_when_the_file_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hosts");
    std::fs::write(&path, LINES).unwrap();
    let source = hosts(&path);
    let replaced = dir.path().join("hosts.new");
    std::fs::write(&replaced, "10.0.3.6 other.home.test\n").unwrap();
    std::fs::rename(&replaced, &path).unwrap();
    tokio::time::timeout(Duration::from_secs(5), source.changed()).await.expect("noticed");
    assert_eq!(source.report().await.workloads.len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn no_text_makes_it_panic(text in ".{0,200}", toml in any::<bool>()) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(if toml { "x.toml" } else { "x" });
        std::fs::write(&path, text).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        if let Ok(runtime) = runtime {
            runtime.block_on(async { hosts(&path).report().await });
        }
    }
}
