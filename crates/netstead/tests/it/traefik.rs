//! Traefik's files, from a router to an answer.

use crate::{house::House, resolve};

const FILE: &str =
    "http:\n  routers:\n    web:\n      rule: Host(`web.home.test`)\n    all:\n      rule: PathPrefix(`/`)\n";

#[test]
fn a_router_in_a_file_has_its_name_and_a_half_written_file_removes_nothing() {
    let mut house = House::empty();
    let dynamic = house.path().join("dynamic");
    std::fs::create_dir(&dynamic).unwrap();
    std::fs::write(dynamic.join("web.yml"), FILE).unwrap();
    let config = house.path().join("netstead.toml");
    let text = "[source.files]\ntype = \"traefik\"\npaths = [\"dynamic\"]\ntarget = \"10.0.3.9\"\n";
    std::fs::write(&config, text).unwrap();
    let named = config.to_str().unwrap().to_owned();
    assert!(house.does(&format!("config check {named}")).contains("source  files: Traefik's files in "));
    house.start(&["--config", &named]);
    resolve::until(&["10.0.3.9"], || resolve::a(house.dns(), "web.home.test"));
    assert!(house.does("explain web.home.test").contains("http.routers.web.rule"));
    let workloads = house.does("get workloads -o json");
    assert!(workloads.contains("the rule names no host"), "{workloads}");

    // What inotify tells of: a second file comes, the first is half written.
    std::fs::write(dynamic.join("db.toml"), "[tcp.routers.db]\nrule = \"HostSNI(`db.home.test`)\"\n")
        .unwrap();
    resolve::until(&["10.0.3.9"], || resolve::a(house.dns(), "db.home.test"));
    std::fs::write(dynamic.join("web.yml"), "http:\n  routers:\n    new:\n      rule: Host(`new.home")
        .unwrap();
    let partial = || house.does("get sources").contains("partial");
    let begun = resolve::Stopwatch::start();
    while !partial() {
        assert!(begun.elapsed() < crate::house::SOON, "{}", house.does("get sources"));
    }
    assert_eq!(resolve::a(house.dns(), "web.home.test").values, ["10.0.3.9"]);
}
