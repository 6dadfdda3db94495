//! Traefik's files, from a router to an answer.

use crate::{resolve, sandbox::Sandbox};

const FILE: &str =
    "http:\n  routers:\n    web:\n      rule: Host(`web.home.test`)\n    all:\n      rule: PathPrefix(`/`)\n";

#[test]
fn a_router_in_a_file_has_its_name_and_a_half_written_file_removes_nothing() {
    let mut sandbox = Sandbox::empty();
    let dynamic = sandbox.path().join("dynamic");
    std::fs::create_dir(&dynamic).unwrap();
    std::fs::write(dynamic.join("web.yml"), FILE).unwrap();
    let config = sandbox.path().join("netstead.toml");
    let text = "[source.files]\ntype = \"traefik\"\npaths = [\"dynamic\"]\ntarget = \"10.0.3.9\"\n";
    std::fs::write(&config, text).unwrap();
    let named = config.to_str().unwrap().to_owned();
    assert!(sandbox.does(&format!("config check {named}")).contains("source  files: traefik at "));
    sandbox.start(&["--config", &named]);
    resolve::until(&["10.0.3.9"], || resolve::a(sandbox.dns(), "web.home.test"));
    assert!(sandbox.does("explain web.home.test").contains("http.routers.web.rule"));
    let workloads = sandbox.does("get workloads -o json");
    assert!(workloads.contains("the rule names no host"), "{workloads}");

    // What inotify tells of: a second file comes, the first is half written.
    std::fs::write(dynamic.join("db.toml"), "[tcp.routers.db]\nrule = \"HostSNI(`db.home.test`)\"\n")
        .unwrap();
    resolve::until(&["10.0.3.9"], || resolve::a(sandbox.dns(), "db.home.test"));
    std::fs::write(dynamic.join("web.yml"), "http:\n  routers:\n    new:\n      rule: Host(`new.home")
        .unwrap();
    let partial = || sandbox.does("get sources").contains("partial");
    let begun = resolve::Stopwatch::start();
    while !partial() {
        assert!(begun.elapsed() < crate::sandbox::SOON, "{}", sandbox.does("get sources"));
    }
    assert_eq!(resolve::a(sandbox.dns(), "web.home.test").values, ["10.0.3.9"]);
}
