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
    for workload in &report.workloads {
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
    assert_eq!(whole.view, View::Complete);
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
            matches!(&report.view, View::Partial { reason } if reason.contains("web.yml")),
            "{half}: {:?}",
            report.view
        );
        assert_eq!(report.workloads, whole.workloads, "{half}");
    }
    fs::write(&web, YAML).unwrap();
    assert_eq!(source.report().await.view, View::Complete);
    fs::remove_file(&db).unwrap();
    let report = source.report().await;
    assert_eq!((report.view, report.workloads.len()), (View::Complete, 2));
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
    assert_eq!(report.view, View::Complete);
    let unclear: Vec<(String, bool)> =
        report.workloads.iter().map(|one| (one.id.to_string(), one.unclear)).collect();
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
