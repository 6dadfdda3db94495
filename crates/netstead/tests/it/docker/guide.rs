//! The guide of a Docker host, typed.

use std::thread::sleep;

use super::*;
use crate::guide_reader::Reader;

/// Blocks of commands in the guide.
const WHOAMI: usize = 2;
const PRINTER: usize = 3;

#[test]
fn the_guide_of_a_docker_host_works_as_typed() {
    let Some(docker) = shared() else { return };
    let mut reader = Reader::of("docker.md");
    reader.sandbox.set("DOCKER_HOST", &docker.host());
    reader.sandbox.start(&[]);

    let port = format!("-p {} ", reader.sandbox.dns());
    let block = reader.block("sh", WHOAMI, &[("traefik/whoami", "tiny:1"), ("-p 5300 ", &port)]);
    let (start, ask) = block.trim_end().rsplit_once('\n').unwrap();
    let started = reader.types(start);
    assert_eq!(started.code, 0, "{}", started.err);
    // A reader asks again, too.
    let begun = Stopwatch::start();
    while reader.types(ask).out.trim() != machine() {
        assert!(begun.elapsed() < SOON, "{}", reader.sandbox.does("get workloads -o wide"));
        sleep(Duration::from_millis(100));
    }
    assert!(reader.sandbox.does("get workloads").contains("whoami"));
    assert!(reader.sandbox.does("explain whoami.home.example.com").contains(&machine()));

    let _card = card();
    // The pool, the network and the container are there in this order; `docker0` is the card of this machine.
    let lan = [("192.168.1.", "10.250.7."), ("parent=eth0", "parent=docker0"), (" cups", " tiny:1")];
    let made = reader.types(&reader.block("sh", PRINTER, &lan));
    assert_eq!(made.code, 0, "{}", made.err);
    let begun = Stopwatch::start();
    while !reader.sandbox.does("get claims").contains("docker/printer") {
        assert!(begun.elapsed() < SOON, "{}", reader.sandbox.does("get workloads -o wide"));
        sleep(Duration::from_millis(50));
    }
    let held = reader.sandbox.does("explain 10.250.7.60");
    assert!(held.contains("printer"), "{held}");
    docker.docker(&["rm", "-f", "whoami", "printer"]);
    docker.docker(&["network", "rm", "lan"]);
}
