//! Connections never take the files that the store needs.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    process::Command,
    time::Duration,
};

use netstead_testkit::{has_command, skip, wait_until};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::sandbox::{SOON, Sandbox};

const PATIENCE: Duration = Duration::from_secs(10);

/// This process holds the other end of each connection.
fn raise_own_limit() {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap();
    assert!(hard >= 4000, "this test opens 2,200 connections, and {hard} files are allowed");
}

fn open_files(sandbox: &mut Sandbox) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", sandbox.server().id())).unwrap().count()
}

/// The soft and the hard limit of its files.
fn limits(sandbox: &mut Sandbox) -> (u64, u64) {
    let text = std::fs::read_to_string(format!("/proc/{}/limits", sandbox.server().id())).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    let mut numbers = line.split_whitespace().map(|word| word.parse().unwrap_or_default());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

fn connect(port: u16) -> TcpStream {
    let stream =
        TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), PATIENCE).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Asks one question over TCP. Any answer is one.
fn asks_dns(port: u16) -> std::io::Result<()> {
    let mut stream = connect(port);
    // `lan.test. SOA`, without EDNS.
    stream.write_all(
        b"\x00\x1a\x00\x07\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03lan\x04test\x00\x00\x06\x00\x01",
    )?;
    stream.read_exact(&mut [0; 14])
}

#[test]
fn the_soft_limit_of_files_is_raised_to_the_hard_one() {
    let mut sandbox = Sandbox::empty();
    sandbox.start_after("ulimit -Sn 700; ulimit -Hn 3000", &[]);
    assert_eq!(limits(&mut sandbox), (3000, 3000));
    sandbox.stop();
}

#[test]
fn connections_that_say_nothing_stop_neither_the_api_nor_dns_nor_the_store() {
    raise_own_limit();
    let mut sandbox = Sandbox::empty();
    sandbox.start_after("ulimit -n 1024", &[]);
    sandbox.does("pool create lan --range 10.0.3.1-10.0.3.200 --domain lan.test");
    let port = sandbox.url().rsplit(':').next().unwrap().parse().unwrap();
    let api: Vec<_> = (0..1100).map(|_| connect(port)).collect();
    let dns: Vec<_> = (0..1100).map(|_| connect(sandbox.dns())).collect();
    for number in 0..20 {
        sandbox.does(&format!("claim lan web-{number}"));
        asks_dns(sandbox.dns()).unwrap_or_else(|error| panic!("question {number}: {error}"));
    }
    let open = open_files(&mut sandbox);
    assert!(open < 700, "{open} files are open");
    assert!(sandbox.does("status").contains("ready"), "{}", sandbox.does("status"));
    drop((api, dns));
    sandbox.stop();
}

#[test]
fn connections_that_cannot_be_accepted_are_logged_once_and_accepted_later() {
    if !has_command("prlimit") {
        return skip("prlimit is missing");
    }
    let mut sandbox = Sandbox::empty();
    sandbox.start_after("ulimit -n 1024", &[]);
    let (id, open) = (sandbox.server().id(), open_files(&mut sandbox));
    let limit = |files: usize| {
        let pid = format!("--pid={id}");
        assert!(
            Command::new("prlimit")
                .args([&pid, &format!("--nofile={files}:1024")])
                .status()
                .unwrap()
                .success()
        );
    };
    // No file is left, whatever the server opens and closes meanwhile.
    limit(open.saturating_sub(4));
    let port = sandbox.url().rsplit(':').next().unwrap().parse().unwrap();
    let mut waiting: Vec<_> = (0..3).map(|_| connect(port)).collect();
    let line = sandbox.server().wait_for_line("Connections cannot be accepted", SOON).unwrap();
    assert!(line.contains("Too many open files") && line.contains("listener=\"API\""), "{line}");
    let before = sandbox.server().log().matches("Connections cannot be accepted").count();
    assert_eq!(before, 1);
    limit(1024);
    for stream in &mut waiting {
        write!(stream, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
    }
    assert!(wait_until(SOON, || sandbox.netstead(["status"]).out.contains("ready").then_some(())).is_some());
    sandbox.stop();
}
