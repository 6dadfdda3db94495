//! Names that point to an address which moves.

use std::{
    fmt::Write as _,
    io::{Read as _, Write as _},
    net::TcpListener,
    sync::{Arc, Mutex},
};

use crate::{resolve, sandbox::Sandbox};

/// Says what it is told to, or nothing at all.
#[derive(Clone)]
struct Endpoint(Arc<Mutex<Option<&'static str>>>, String);

impl Endpoint {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let endpoint = Self(Arc::new(Mutex::new(None)), url);
        let says = Arc::clone(&endpoint.0);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 1024]);
                let body = *says.lock().unwrap();
                if let Some(body) = body {
                    let length = body.len();
                    let _ = write!(
                        stream,
                        "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                    );
                }
            }
        });
        endpoint
    }

    fn says(&self, text: Option<&'static str>) {
        *self.0.lock().unwrap() = text;
    }
}

#[test]
fn names_follow_the_public_address_and_keep_it_while_nobody_says_it() {
    let endpoint = Endpoint::start();
    let config = format!(
        "[source.office]\ntype = \"hosts\"\npath = \"hosts\"\n[dns.own]\ntype = \"builtin\"\n\
         domains = [\"office.test\"]\ntarget = \"public\"\ntarget_endpoints = [\"{}\"]\ntarget_interval = \"1s\"\n",
        endpoint.1
    );
    // More than the breaker lets pass one by one.
    let hosts = (1..=15).fold(String::new(), |mut text, number| {
        let _ = writeln!(text, "10.0.7.{number} host-{number}.office.test");
        text
    });
    let mut sandbox = Sandbox::empty();
    std::fs::write(sandbox.path().join("netstead.toml"), config).unwrap();
    std::fs::write(sandbox.path().join("hosts"), hosts).unwrap();
    sandbox.start(&[]);
    let dns = sandbox.dns();
    let asked = || resolve::a(dns, "host-9.office.test");
    // Not known yet: nothing is written, and the reason is told.
    sandbox.netstead(["apply"]);
    let said = sandbox.does("status");
    assert!(said.contains("the target `public` cannot be reached"), "{said}");
    assert!(asked().values.is_empty());

    endpoint.says(Some("203.0.113.7\n"));
    resolve::until(&["203.0.113.7"], asked);
    endpoint.says(Some("203.0.113.8"));
    resolve::until(&["203.0.113.8"], asked);
    resolve::until(&["203.0.113.8"], || resolve::a(dns, "host-15.office.test"));
    sandbox.does("apply");
    assert_eq!(sandbox.does("plan"), "own: nothing to change\n");

    endpoint.says(None);
    sandbox.stop();
    sandbox.start(&[]);
    sandbox.does("apply");
    assert_eq!(asked().values, ["203.0.113.8"]);
    assert_eq!(sandbox.does("plan"), "own: nothing to change\n");
}

#[test]
fn names_may_point_to_an_interface() {
    let config = "[dns.own]\ntype = \"builtin\"\ndomains = [\"home.test\"]\nrecord_type = \"A\"\ntarget = \"interface:lo\"\n";
    let mut sandbox = Sandbox::empty();
    std::fs::write(sandbox.path().join("netstead.toml"), config).unwrap();
    sandbox.start(&[]);
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.200 --domain home.test");
    sandbox.does("claim lan web-1");
    resolve::until(&["127.0.0.1"], || resolve::a(sandbox.dns(), "web-1.home.test"));
}

#[test]
fn names_of_a_source_follow_the_public_address_all_at_once() {
    let endpoint = Endpoint::start();
    let config = format!(
        "[source.files]\ntype = \"traefik\"\npaths = [\"web.yml\"]\ntarget = \"public\"\ntarget_endpoints = [\"{}\"]\n\
         target_interval = \"1s\"\n[dns.own]\ntype = \"builtin\"\ndomains = [\"office.test\"]\n",
        endpoint.1
    );
    // More than the breaker lets pass one by one.
    let file = (1..=15).fold(String::from("http:\n  routers:\n"), |mut text, number| {
        let _ = writeln!(text, "    r{number}: {{ rule: 'Host(`host-{number}.office.test`)' }}");
        text
    });
    let mut sandbox = Sandbox::empty();
    std::fs::write(sandbox.path().join("netstead.toml"), config).unwrap();
    std::fs::write(sandbox.path().join("web.yml"), file).unwrap();
    sandbox.start(&[]);
    let dns = sandbox.dns();
    let asked = |number: u8| resolve::a(dns, &format!("host-{number}.office.test"));
    sandbox.does("apply");
    assert!(asked(9).values.is_empty());
    let said = sandbox.does("explain host-9.office.test");
    assert!(said.contains("its own address is not known"), "{said}");
    for address in ["203.0.113.7", "203.0.113.8"] {
        endpoint.says(Some(address));
        for number in [1, 9, 15] {
            resolve::until(&[address], || asked(number));
        }
    }
    endpoint.says(None);
    sandbox.stop();
    sandbox.start(&[]);
    sandbox.does("apply");
    assert_eq!(asked(9).values, ["203.0.113.8"], "the last good one stays through a restart");
    assert_eq!(sandbox.does("plan"), "own: nothing to change\n");
}
