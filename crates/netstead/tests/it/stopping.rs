use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    process::Command,
    time::Duration,
};

use netstead_testkit::Process;

use crate::house::{House, SOON};

#[test]
fn five_lines_say_where_things_are_and_what_to_type() {
    let mut house = House::with_server();
    let log = house.server().wait_for_line("  next", SOON).map(|_| house.server().log()).unwrap();
    let lines: Vec<_> = log.lines().skip_while(|line| !line.contains("is ready")).take(6).collect();
    assert_eq!(lines.len(), 6, "{log}");
    for (line, part) in
        lines.iter().zip(["Netstead", "data", "http://127.0.0.1:", "dns", "netstead.toml", "netstead --url"])
    {
        assert!(line.contains(part), "`{line}` has no {part}");
    }
    let data = house.data().display().to_string();
    assert!(lines[1].contains(&data) && lines[2].contains("credentials.json"), "{log}");
}

#[test]
fn a_json_log_is_all_json() {
    let mut house = House::empty();
    house.start(&["--log-format", "json"]);
    house.does("pool create lan --range 10.0.3.1");
    house.server().terminate().unwrap();
    house.server().wait(SOON).unwrap();
    for line in house.server().log().lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
}

#[test]
fn a_second_server_on_the_same_data_or_port_is_told_why_not() {
    let house = House::with_server();
    let data = house.data().display().to_string();
    let said = house.netstead(["run", "--listen", "127.0.0.1:0", "--data-dir", &data]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("another netstead") && said.err.contains("hint: "), "{}", said.err);
    let port = house.url().rsplit(':').next().unwrap().to_owned();
    let said = house.netstead(["run", "--listen", &format!("127.0.0.1:{port}"), "--data-dir", "other"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("--listen") && said.err.contains("hint: "), "{}", said.err);
    // It did not replace the token of the one that runs.
    house.does("status");
}

fn ready(url: &str) -> Option<u16> {
    let address = url.strip_prefix("http://").unwrap();
    let mut socket = TcpStream::connect(address).ok()?;
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    write!(socket, "GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    socket.read_to_string(&mut text).ok()?;
    text.split(' ').nth(1)?.parse().ok()
}

#[test]
fn sigterm_lets_running_work_end() {
    let mut house = House::with_server();
    house.does("pool create lan --range 10.0.3.1");
    house.does("claim lan first");
    assert_eq!(ready(&house.url()), Some(200));
    // This one waits; the end of the server answers it instead of cutting it off.
    let mut waiting: Command = house.command();
    waiting.args(["claim", "lan", "second", "--wait", "50s"]);
    let mut waiting = Process::start("claim", &mut waiting).unwrap();
    while !house.does("get claims").contains("second") {
        std::thread::sleep(Duration::from_millis(20));
    }
    house.server().terminate().unwrap();
    let mut seen = Vec::new();
    while let Some(code) = ready(&house.url()) {
        seen.push(code);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(seen.contains(&503), "/readyz said {seen:?}");
    assert_eq!(house.server().wait(SOON).unwrap().code(), Some(0));
    assert_eq!(waiting.wait(SOON).unwrap().code(), Some(1));
    assert!(waiting.log().starts_with("error: "), "{}", waiting.log());
}

#[test]
fn sigint_is_as_good_as_sigterm() {
    let mut house = House::with_server();
    house.server().signal("INT").unwrap();
    assert_eq!(house.server().wait(SOON).unwrap().code(), Some(0));
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let mut house = House::with_server();
    let address = house.url().strip_prefix("http://").unwrap().to_owned();
    // A request that never ends keeps the server waiting for it.
    let mut socket = TcpStream::connect(&address).unwrap();
    let head = format!(
        "PUT /api/v1/pools/lan HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n",
        house.token()
    );
    write!(socket, "{head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{").unwrap();
    std::thread::sleep(Duration::from_millis(200));
    house.server().terminate().unwrap();
    house.server().wait_for_line("Stopping", SOON).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    assert!(house.server().running(), "it gives running work its time");
    house.server().terminate().unwrap();
    assert_eq!(house.server().wait(Duration::from_secs(5)).unwrap().code(), Some(1));
}
