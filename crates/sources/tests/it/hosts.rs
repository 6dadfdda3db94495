//! Hand-written files, as people and editors leave them.

use std::{path::Path, time::Duration};

use netstead_model::{Content, Diagnosis, ManualClock, Source as _, SystemClock, View};
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
        assert_eq!((report.view(), report.workloads()), (View::Failed { reason }, Vec::new()));
    }
}

#[tokio::test]
async fn lines_give_names_their_addresses_of_both_families() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hosts");
    std::fs::write(&path, LINES).unwrap();
    let report = hosts(&path).report().await;
    let seen: Vec<String> = report
        .workloads()
        .into_iter()
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

/// The names of a report, and what it says of itself.
async fn seen(source: &Hosts) -> (Vec<String>, View) {
    let report = source.report().await;
    let names = report
        .workloads()
        .into_iter()
        .flat_map(|workload| &workload.wishes)
        .map(|wish| wish.name.to_string());
    (names.collect(), report.view())
}

#[tokio::test]
async fn a_last_line_without_an_end_is_left_out_until_the_file_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let open =
        |path: &Path| Hosts::new("file".parse().unwrap(), Config { path: path.to_owned() }, clock.shared());
    let partial = |reason: &str| View::Partial { reason: reason.into() };
    let half = "its last line has no end; it may be half written, and is read once it stays the same";
    let path = dir.path().join("hosts");
    let source = open(&path);
    std::fs::write(&path, "10.1.0.1 a.corp.com\n10.1.0.3 www.co").unwrap();
    assert_eq!(seen(&source).await, (vec!["a.corp.com".to_owned()], partial(half)));
    clock.advance(Duration::from_secs(2));
    std::fs::write(&path, "10.1.0.1 a.corp.com\n10.1.0.3 www.corp.com").unwrap();
    assert_eq!(seen(&source).await, (vec!["a.corp.com".to_owned()], partial(half)), "it has just changed");
    clock.advance(Duration::from_secs(2));
    assert_eq!(seen(&source).await.1, partial(half), "two seconds are not enough");
    clock.advance(Duration::from_secs(1));
    let whole = vec!["a.corp.com".to_owned(), "www.corp.com".to_owned()];
    assert_eq!(seen(&source).await, (whole.clone(), View::Complete), "that is how the file shall be");
    std::fs::write(&path, "10.1.0.1 a.corp.com\n10.1.0.3 www.corp.com\n").unwrap();
    assert_eq!(seen(&source).await, (whole, View::Complete));

    let path = dir.path().join("hosts.toml");
    let source = open(&path);
    std::fs::write(&path, TABLE.trim_end()).unwrap();
    assert_eq!(seen(&source).await, (Vec::new(), View::Failed { reason: half.into() }));
    clock.advance(Duration::from_secs(3));
    assert_eq!(seen(&source).await.1, View::Complete);
}

#[tokio::test]
async fn a_file_without_a_last_end_is_looked_at_again_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hosts");
    std::fs::write(&path, "10.1.0.3 www.corp.com").unwrap();
    let source = hosts(&path);
    assert_ne!(seen(&source).await.1, View::Complete);
    tokio::time::timeout(Duration::from_secs(30), source.changed()).await.expect("another look is due");
    assert_eq!(seen(&source).await, (vec!["www.corp.com".to_owned()], View::Complete));
    let quiet = tokio::time::timeout(Duration::from_millis(100), source.changed()).await;
    assert!(quiet.is_err(), "it is believed now, and nothing is waited for");
}

#[tokio::test]
async fn a_file_that_is_replaced_all_the_time_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hosts");
    let replace = move |number: u32| {
        let new = path.with_extension("new");
        std::fs::write(&new, format!("10.1.0.3 n{number}.corp.com\n")).unwrap();
        std::fs::rename(&new, &path).unwrap();
    };
    let source = hosts(&dir.path().join("hosts"));
    replace(0);
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let writer = std::thread::spawn(move || {
        let mut number = 1;
        while stopped.recv_timeout(Duration::from_millis(20)).is_err() {
            replace(number);
            number += 1;
        }
    });
    let mut last = None;
    for _ in 0..3 {
        let (names, view) = seen(&source).await;
        assert_eq!((names.len(), view), (1, View::Complete));
        assert_ne!(last, Some(names.clone()), "each look sees a newer one");
        last = Some(names);
    }
    stop.send(()).unwrap();
    writer.join().unwrap();
}

#[tokio::test]
async fn an_unknown_key_is_an_error_that_says_where() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hosts.toml");
    std::fs::write(&path, "[hosts.\"a.test\"]\naddress = [\"10.0.0.1\"]\n").unwrap();
    let View::Failed { reason } = hosts(&path).report().await.view() else { panic!("it must fail") };
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
    assert_eq!(source.report().await.workloads().len(), 1);
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

#[tokio::test]
async fn a_file_that_cannot_be_read_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hosts");
    let shown = path.display().to_string();
    let source = hosts(&path);
    let missing = format!("{shown} cannot be read: No such file or directory (os error 2)");
    let hint = "make it, mount it into the container, or correct `path`";
    assert_eq!(source.diagnose().await, [Diagnosis::problem(&missing, hint)]);
    assert_eq!(source.report().await.view(), View::Failed { reason: missing });
    std::fs::write(&path, "10.0.3.1 a.home.test\n").unwrap();
    assert_eq!(source.diagnose().await, [Diagnosis::fine(format!("{shown} can be read"))]);
}
