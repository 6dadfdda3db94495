use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    process::Command,
    time::Duration,
};

use netstead_testkit::Process;

use crate::sandbox::{SOON, Sandbox};

#[test]
fn five_lines_say_where_things_are_and_what_to_type() {
    let mut sandbox = Sandbox::with_server();
    let log = sandbox.server().wait_for_line("  next", SOON).map(|_| sandbox.server().log()).unwrap();
    let (web, lines): (Vec<&str>, Vec<&str>) = log
        .lines()
        .skip_while(|line| !line.contains("is ready"))
        .take(if cfg!(feature = "web") { 7 } else { 6 })
        .partition(|line| line.starts_with("  web "));
    assert_eq!(web.len(), usize::from(cfg!(feature = "web")), "{log}");
    assert_eq!(lines.len(), 6, "{log}");
    for (line, part) in
        lines.iter().zip(["Netstead", "data", "http://127.0.0.1:", "dns", "netstead.toml", "netstead --url"])
    {
        assert!(line.contains(part), "`{line}` has no {part}");
    }
    let data = sandbox.data().display().to_string();
    assert!(lines[1].contains(&data) && lines[2].contains("credentials.json"), "{log}");
}

#[test]
fn a_json_log_is_all_json() {
    let mut sandbox = Sandbox::empty();
    sandbox.start(&["--log-format", "json"]);
    sandbox.does("pool create lan --range 10.0.3.1");
    sandbox.server().terminate().unwrap();
    sandbox.server().wait(SOON).unwrap();
    for line in sandbox.server().log().lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
}

#[test]
fn a_second_server_on_the_same_data_or_port_is_told_why_not() {
    let sandbox = Sandbox::with_server();
    let data = sandbox.data().display().to_string();
    let said = sandbox.netstead(["run", "--listen", "127.0.0.1:0", "--data-dir", &data]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("another netstead") && said.err.contains("hint: "), "{}", said.err);
    let port = sandbox.url().rsplit(':').next().unwrap().to_owned();
    let said = sandbox.netstead(["run", "--listen", &format!("127.0.0.1:{port}"), "--data-dir", "other"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("--listen") && said.err.contains("hint: "), "{}", said.err);
    // It did not replace the token of the one that runs.
    sandbox.does("status");
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
    let mut sandbox = Sandbox::with_server();
    sandbox.does("pool create lan --range 10.0.3.1");
    sandbox.does("claim lan first");
    assert_eq!(ready(&sandbox.url()), Some(200));
    // This one waits; the end of the server answers it instead of cutting it off.
    let mut waiting: Command = sandbox.command();
    waiting.args(["claim", "lan", "second", "--wait", "50s"]);
    let mut waiting = Process::start("claim", &mut waiting).unwrap();
    while !sandbox.does("get claims").contains("second") {
        std::thread::sleep(Duration::from_millis(20));
    }
    sandbox.server().terminate().unwrap();
    let mut seen = Vec::new();
    while let Some(code) = ready(&sandbox.url()) {
        seen.push(code);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(seen.contains(&503), "/readyz said {seen:?}");
    assert_eq!(sandbox.server().wait(SOON).unwrap().code(), Some(0));
    assert_eq!(waiting.wait(SOON).unwrap().code(), Some(1));
    assert!(waiting.log().starts_with("error: "), "{}", waiting.log());
}

#[test]
fn sigint_is_as_good_as_sigterm() {
    let mut sandbox = Sandbox::with_server();
    sandbox.server().signal("INT").unwrap();
    assert_eq!(sandbox.server().wait(SOON).unwrap().code(), Some(0));
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let mut sandbox = Sandbox::with_server();
    let address = sandbox.url().strip_prefix("http://").unwrap().to_owned();
    // A request that never ends keeps the server waiting for it.
    let mut socket = TcpStream::connect(&address).unwrap();
    let head = format!(
        "PUT /api/v1/pools/lan HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n",
        sandbox.token()
    );
    write!(socket, "{head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{").unwrap();
    std::thread::sleep(Duration::from_millis(200));
    sandbox.server().terminate().unwrap();
    sandbox.server().wait_for_line("Stopping", SOON).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    assert!(sandbox.server().running(), "it gives running work its time");
    sandbox.server().terminate().unwrap();
    assert_eq!(sandbox.server().wait(Duration::from_secs(5)).unwrap().code(), Some(1));
}
