//! A Docker host that loses power.

use super::*;

#[test]
fn containers_that_come_up_one_by_one_after_a_boot_never_lose_their_names() {
    let Some(mut docker) = Dockerd::start() else { return };
    let graces = "\n[dns.own]\ntype = \"builtin\"\ngrace = \"5s\"\nended_grace = \"1s\"\ninterval = \"1s\"\n";
    let sandbox = sandbox(&docker, &format!("target = \"198.51.100.7\"{graces}"));
    let names: Vec<String> = (0..6).map(|_| fresh("boot")).collect();
    let host = |name: &str| format!("{name}.example.test");
    for name in &names {
        run(&docker, name, &host(name), &[]);
    }
    let all_answer = |long: Duration| {
        let begun = Stopwatch::start();
        while begun.elapsed() < long {
            for name in &names {
                assert_eq!(a(sandbox.dns(), &host(name)).values, ["198.51.100.7"], "{name}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    for name in &names {
        until(&["198.51.100.7"], || a(sandbox.dns(), &host(name)));
    }
    docker.lose_power().unwrap();
    all_answer(Duration::from_secs(1));
    docker.resume().unwrap();
    assert_eq!(docker.docker(&["ps", "-q"]), "", "nothing came up by itself");
    let begun = Stopwatch::start();
    while !sandbox.does("get sources").contains("suspect") {
        assert!(begun.elapsed() < SOON, "{}", sandbox.does("get sources"));
    }
    // Longer than grace: so much at once is not believed.
    all_answer(Duration::from_secs(6));
    for name in &names {
        docker.docker(&["start", name]);
        all_answer(Duration::from_millis(300));
    }
    let begun = Stopwatch::start();
    while sandbox.does("get sources").contains("suspect") {
        assert!(begun.elapsed() < SOON, "{}", sandbox.does("get sources"));
    }
    all_answer(Duration::from_secs(1));
    // And from now on everything is as ever.
    docker.docker(&["rm", "-f", &names[0]]);
    until(&[], || a(sandbox.dns(), &host(&names[0])));
}
