//! Traefik's files, as people, editors and Traefik's other friends leave them.

use std::{fs, path::Path, time::Duration};

use netstead_model::{Report, Source as _, SystemClock, View};
use netstead_sources::{
    TraefikFiles, contract,
    traefik::{Config, FilePattern},
};

const YAML: &str = "http:\n  routers:\n    web:\n      rule: Host(`web.test`) || Host(`www.test`)\n      entryPoints: [websecure]\n      service: web\n    any:\n      rule: PathPrefix(`/`)\n  services: {}\n";
const TOML: &str = "[tcp.routers.db]\nrule = \"HostSNI(`db.test`)\"\nservice = \"db\"\n[http.routers.wild]\nrule = \"HostRegexp(`^.+$`)\"\n[[http.routers.wild.tls.domains]]\nmain = \"a.test\"\nsans = [\"*.a.test\"]\n";

fn files(path: &Path, target: Option<&str>) -> TraefikFiles {
    let config = Config {
        poll: std::time::Duration::from_mins(1),
        paths: vec![path.to_owned()],
        patterns: FilePattern::usual(),
        entrypoints: Vec::new(),
        default_entrypoints: Vec::new(),
        target: target.map(|target| target.parse().unwrap()),
        places: None,
    };
    TraefikFiles::new("files".parse().unwrap(), config, SystemClock::shared())
}

fn names(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    for workload in report.workloads() {
        for wish in &workload.wishes {
            let content = serde_json::to_string(&wish.content).unwrap();
            lines.push(format!("{} {} {content} ({})", workload.id, wish.name, wish.reason));
        }
        lines.extend(workload.why_not.iter().map(|why| format!("{} ! {why}", workload.id)));
    }
    lines
}

#[tokio::test]
async fn routers_of_all_files_below_a_directory_give_names() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("below")).unwrap();
    fs::write(dir.path().join("web.yml"), YAML).unwrap();
    fs::write(dir.path().join("below/db.toml"), TOML).unwrap();
    fs::write(dir.path().join(".web.yml.swp"), "not read").unwrap();
    fs::write(dir.path().join("web.yml~"), "not read").unwrap();
    let source = files(dir.path(), Some("10.0.0.5"));
    contract::sees_the_same_twice(&source).await;
    let report = source.report().await;
    let at = r#"{"addresses":["10.0.0.5"]}"#;
    assert_eq!(
        names(&report),
        [
            "http/any ! web.yml: http.routers.any.rule: the rule names no host".to_owned(),
            format!("http/web web.test {at} (web.yml: http.routers.web.rule)"),
            format!("http/web www.test {at} (web.yml: http.routers.web.rule)"),
            format!("http/wild *.a.test {at} (db.toml: http.routers.wild.rule (tls.domains))"),
            format!("http/wild a.test {at} (db.toml: http.routers.wild.rule (tls.domains))"),
            format!("tcp/db db.test {at} (db.toml: tcp.routers.db.rule)"),
        ]
    );
}

#[tokio::test]
async fn names_can_point_at_a_name_or_wherever_a_provider_says() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db.toml");
    fs::write(&path, "[tcp.routers.db]\nrule = \"HostSNI(`db.test`)\"\n").unwrap();
    let named = files(&path, Some("lb.test")).report().await;
    assert!(names(&named)[0].contains(r#"["CNAME lb.test."]"#), "{:?}", names(&named));
    let open = files(&path, None).report().await;
    assert!(names(&open)[0].contains(r#"{"addresses":[]}"#), "{:?}", names(&open));
}

#[tokio::test]
async fn a_file_that_may_be_half_written_keeps_its_names() {
    let dir = tempfile::tempdir().unwrap();
    let (web, db) = (dir.path().join("web.yml"), dir.path().join("db.toml"));
    fs::write(&web, YAML).unwrap();
    fs::write(&db, TOML).unwrap();
    let source = files(dir.path(), None);
    let whole = source.report().await;
    assert_eq!(whole.view(), View::Complete);
    for half in [
        "",
        "http:\n  routers:\n    web:\n      rule: Host(`web.te",
        "http:\n  routers:\n    web:\n      rule: \"Host(`web",
        "http: [",
        "http:\n  routers: {{ range",
    ] {
        fs::write(&web, half).unwrap();
        let report = source.report().await;
        assert!(
            matches!(&report.view(), View::Partial { reason } if reason.contains("web.yml")),
            "{half}: {:?}",
            report.view()
        );
        assert_eq!(report.workloads(), whole.workloads(), "{half}");
    }
    fs::write(&web, YAML).unwrap();
    assert_eq!(source.report().await.view(), View::Complete);
    fs::remove_file(&db).unwrap();
    let report = source.report().await;
    assert_eq!((report.view(), report.workloads().len()), (View::Complete, 2));
}

#[tokio::test]
async fn a_rule_that_cannot_be_read_is_a_matter_of_its_router_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("web.yml");
    let bad = YAML.replace("|| Host(`www.test`)", "|| Host(`www.te");
    fs::write(&path, bad + "    db:\n      rule: Host(`db.test`)\n").unwrap();
    let text = fs::read_to_string(&path).unwrap().replace("  services: {}\n", "");
    fs::write(&path, text).unwrap();
    let report = files(&path, None).report().await;
    assert_eq!(report.view(), View::Complete);
    let unclear: Vec<(String, bool)> =
        report.workloads().into_iter().map(|one| (one.id.to_string(), one.unclear)).collect();
    assert_eq!(
        unclear,
        [("http/any".into(), false), ("http/db".into(), false), ("http/web".into(), true)],
        "what it asked for before stays"
    );
    assert!(
        names(&report).iter().any(|line| line.starts_with("http/web ! http.routers.web: ")),
        "{report:?}"
    );
}

#[tokio::test]
async fn what_is_not_there_is_never_taken_for_nothing() {
    let dir = tempfile::tempdir().unwrap();
    contract::admits_what_it_cannot_see(&files(&dir.path().join("missing"), None)).await;
    // A directory that is not mounted is empty.
    contract::admits_what_it_cannot_see(&files(dir.path(), None)).await;
}

#[tokio::test]
async fn a_change_below_a_directory_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("below")).unwrap();
    let source = files(dir.path(), None);
    let write = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        fs::write(dir.path().join("below/web.yml"), YAML).unwrap();
    };
    let noticed = tokio::time::timeout(Duration::from_secs(10), source.changed());
    let (noticed, ()) = tokio::join!(noticed, write);
    noticed.expect("inotify tells of the new file");
}

#[tokio::test]
async fn a_file_whose_last_line_has_no_end_keeps_what_it_said_until_it_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("web.yml");
    let clock = netstead_model::ManualClock::default();
    let config = Config {
        poll: std::time::Duration::from_mins(1),
        paths: vec![path.clone()],
        patterns: FilePattern::usual(),
        entrypoints: Vec::new(),
        default_entrypoints: Vec::new(),
        target: Some("10.0.0.5".parse().unwrap()),
        places: None,
    };
    let source = TraefikFiles::new("files".parse().unwrap(), config, clock.shared());
    let text = |end: &str| {
        format!(
            "http:\n  routers:\n    web:\n      rule: PathPrefix(`/`)\n      tls:\n        domains:\n          - main: {end}"
        )
    };
    let seen = async || {
        let report = source.report().await;
        let names = report
            .workloads()
            .into_iter()
            .flat_map(|workload| &workload.wishes)
            .map(|wish| wish.name.to_string());
        (names.collect::<Vec<_>>(), report.view() == View::Complete)
    };
    fs::write(&path, text("a.corp.com\n")).unwrap();
    assert_eq!(seen().await, (vec!["a.corp.com".to_owned()], true));
    fs::write(&path, text("www.co")).unwrap();
    assert_eq!(seen().await, (vec!["a.corp.com".to_owned()], false), "half a name is another name");
    fs::write(&path, text("www.corp.com")).unwrap();
    assert_eq!(seen().await, (vec!["a.corp.com".to_owned()], false));
    clock.advance(Duration::from_secs(3));
    assert_eq!(seen().await, (vec!["www.corp.com".to_owned()], true), "that is how it shall be");
}

#[tokio::test]
async fn files_that_are_replaced_all_the_time_are_read() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("web.yml"), YAML).unwrap();
    let source = files(dir.path(), Some("10.0.0.5"));
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let place = dir.path().to_owned();
    let writer = std::thread::spawn(move || {
        let mut number = 1;
        while stopped.recv_timeout(Duration::from_millis(20)).is_err() {
            fs::write(place.join(".new"), YAML.replace("www.test", &format!("n{number}.test"))).unwrap();
            fs::rename(place.join(".new"), place.join("web.yml")).unwrap();
            number += 1;
        }
    });
    for _ in 0..3 {
        let report = source.report().await;
        assert_eq!((report.view(), report.workloads().len()), (View::Complete, 2));
    }
    stop.send(()).unwrap();
    writer.join().unwrap();
}
