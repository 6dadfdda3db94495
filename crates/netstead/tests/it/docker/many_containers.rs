//! Many containers, and what looking at them costs.

use std::collections::BTreeMap;

use netstead_testkit::RecordingProxy;

use super::*;

const MANY: usize = 500;

#[test]
fn five_hundred_containers_are_read_with_a_few_calls() {
    let Some(docker) = Dockerd::start() else { return };
    // One program that makes them all: starting `docker` for each takes longer than what it asks for.
    let make = r#"i=0; while [ $i -lt "$2" ]; do
        printf '{"Image":"tiny:1","Labels":{"netstead.hostname":"many%s.example.test"}}' "$i" > "$1/body"
        curl -sf --unix-socket "$1/docker.sock" -H 'Content-Type: application/json' -d @"$1/body" \
            "http://docker/containers/create?name=many$i" > /dev/null || exit 1
        i=$((i + 1)); done"#;
    let mut command = docker.command("sh");
    let made = command.args(["-c", make, "sh"]).arg(docker.dir()).arg(MANY.to_string()).status().unwrap();
    assert!(made.success());

    let recorder = RecordingProxy::before(docker.socket()).unwrap();
    let mut sandbox = Sandbox::empty();
    let text = format!(
        "[source.dock]\ntype = \"docker\"\nhost = \"tcp://{}\"\nkeep_stopped = true\ntarget = \"198.51.100.7\"\n",
        recorder.address()
    );
    std::fs::write(sandbox.path().join("netstead.toml"), text).unwrap();
    sandbox.start(&[]);
    let last = format!("many{}.example.test", MANY - 1);
    until(&["198.51.100.7"], || a(sandbox.dns(), &last));
    let count = |asked: Vec<String>| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for path in asked {
            let single = path.starts_with("/containers/") && path != "/containers/json";
            *counts.entry(if single { "/containers/ID/json".into() } else { path }).or_default() += 1;
        }
        counts
    };
    // The beginning, the events' first word, and this are three looks at most; an environment is asked for once.
    sandbox.does("apply");
    let first = count(recorder.asked());
    assert_eq!(first.get("/containers/ID/json"), Some(&MANY), "{first:?}");
    for path in ["/containers/json", "/networks", "/info"] {
        assert!(first.get(path).is_some_and(|times| (1..=3).contains(times)), "{first:?}");
    }
    sandbox.does("apply");
    let again = count(recorder.asked());
    assert!(again.values().sum::<usize>() <= 6 && !again.contains_key("/containers/ID/json"), "{again:?}");
    let workloads = sandbox.does("get workloads -o name");
    assert_eq!(workloads.lines().filter(|line| line.contains("many")).count(), MANY);
}
