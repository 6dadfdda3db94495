//! The guides of DNS servers are typed as they stand: the server's own lines, the table, and the commands that show that it works.
//! Only places are others: addresses, files with secrets, directories.

mod servers;

use std::net::SocketAddr;

use netstead_testkit::{
    AdGuardHome, AdGuardVersion, Dnsmasq, DnsweaverReceiver, FakeAdGuard, FakeCloudflare, FakePiHole,
    FakeTechnitium, FakeWebhookProvider, WebhookHabits, WebhookReceiver, wait_until,
};

use crate::{
    guide_reader::Reader,
    sandbox::{CommandOutput, SOON},
    scenarios::dnsweaver_moves::ask,
};

/// Its zones in the guides.
const ZONES: [&str; 2] = ["home.example.com", "3.0.10.in-addr.arpa"];

impl Reader {
    /// Starts Netstead with the table and a host `web` in its first domain, types the commands of "See that it works", and
    /// waits until the server holds the host.
    fn works_with(&mut self, table: &str) {
        let part =
            |from: &str, to: char| table.split(from).nth(1).and_then(|rest| rest.split(to).next()).unwrap();
        let (provider, domain) = (part("[dns.", ']').to_owned(), part("domains = [\"", '"').to_owned());
        let hosts = self.file("hosts", &format!("10.0.3.9 web.{domain}\n"));
        self.file(
            "netstead.toml",
            &format!("{table}\n[source.office]\ntype = \"hosts\"\npath = \"{hosts}\"\n"),
        );
        self.sandbox.does("config check");
        self.sandbox.start(&[]);
        let held = || self.sandbox.netstead(["get", "records", "--provider", &provider]).out;
        // Before the hosts are read there is nothing to change, so the record comes first.
        let stands = |line: &str| line.starts_with(&format!("web.{domain}")) && line.contains(" ok ");
        let settled = || {
            let there = held().lines().any(stands);
            (there && self.sandbox.netstead(["plan", &provider]).code == 0).then_some(())
        };
        let plan = || self.sandbox.netstead(["plan", &provider]).out;
        assert!(wait_until(SOON, settled).is_some(), "{}{}", plan(), held());
        let commands = self.text.split("See that it works").nth(1).unwrap();
        let commands = commands.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        assert!(commands.contains("netstead doctor"), "{commands}");
        for command in commands.lines() {
            let CommandOutput { code, out, err } = self.types(command);
            let what = format!("`{command}` says {code}:\n{out}{err}");
            if command.contains("doctor") {
                let own: Vec<&str> =
                    out.lines().filter(|line| line.contains(&format!("dns.{provider}"))).collect();
                let well = |line: &&str| line.starts_with("ok") || line.starts_with("note");
                assert!(!own.is_empty() && own.iter().all(well), "{what}");
            } else {
                assert_eq!(code, 0, "{what}");
            }
            if command.contains("get records") {
                assert!(out.contains(&format!("web.{domain}")), "{what}");
            }
        }
    }
}

/// The address that the server answers with for `web` in the home zone.
fn answers(server: SocketAddr) {
    let asked = || (ask(server, "web.home.example.com", "A") == "10.0.3.9\n").then_some(());
    assert!(wait_until(SOON, asked).is_some(), "{server} does not answer");
}

#[test]
fn the_guide_of_adguard_home_works_as_typed() {
    let Some(server) = AdGuardHome::start() else { return };
    let mut reader = Reader::of("adguard.md");
    let password = reader.file("password", server.password());
    let here = [
        ("http://192.0.2.53:3000", server.url()),
        ("\"admin\"", format!("\"{}\"", server.user())),
        ("/run/secrets/adguard", password),
    ];
    let table = reader.block("toml", 0, &here.each_ref().map(|(there, here)| (*there, here.as_str())));
    reader.works_with(&table);
    answers(server.address());
}

#[test]
fn the_guide_of_two_adguard_homes_works_as_typed() {
    let servers = [(); 2].map(|()| FakeAdGuard::start(AdGuardVersion::V0_107_79));
    let urls = servers.each_ref().map(|server| server.http().url());
    let mut reader = Reader::of("adguard.md");
    let password = reader.file("password", "netstead-test");
    let table = reader.block(
        "toml",
        1,
        &[
            ("http://192.0.2.53:3000", urls[0].as_str()),
            ("http://192.0.2.54:3000", urls[1].as_str()),
            ("\"admin\"", "\"netstead\""),
            ("/run/secrets/adguard", &password),
        ],
    );
    reader.works_with(&table);
    let web = [("web.home.example.com".to_owned(), "10.0.3.9".to_owned(), true)];
    for server in &servers {
        let held = wait_until(SOON, || (server.rewrites() == web).then_some(()));
        assert!(held.is_some(), "{:?}", server.rewrites());
    }
    let shown = reader.sandbox.does("get providers -o name");
    let port = |url: &str| url.rsplit(':').next().unwrap().to_owned();
    let mut names = urls.each_ref().map(|url| format!("adguard-127-0-0-1-{}", port(url)));
    names.sort();
    let shown: Vec<&str> = shown.lines().filter(|name| name.starts_with("adguard")).collect();
    assert_eq!(shown, names);
}

#[test]
fn the_guide_of_the_own_nameserver_works_as_typed() {
    let mut reader = Reader::of("builtin.md");
    reader.sandbox.start(&[]);
    let port = reader.sandbox.dns().to_string();
    let typed = reader.block("sh", 0, &[("netstead run\n", ""), ("5300", &port)]);
    let typed = typed.replace("\ndig", "\nnetstead apply >&2\ndig");
    let done = reader.types(&typed);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    assert!(done.out.trim_end().ends_with("10.0.3.50"), "{}", done.out);
    reader.sandbox.stop();
    // The sandbox says by a flag where the nameserver listens: the port of the guide is for root.
    let own = reader.block("toml", 0, &[]);
    let transfers = reader.block("toml", 1, &[("[nameserver]\n", ""), ("192.0.2.53:53", "127.0.0.1:9")]);
    reader.file("netstead.toml", &own.replace("[dns.own]", &format!("{transfers}\n[dns.own]")));
    reader.sandbox.does("config check");
    reader.sandbox.start(&[]);
    reader.sandbox.does("record set web.home.example.com A 10.0.3.9");
    reader.sandbox.does("apply");
    answers(([127, 0, 0, 1], reader.sandbox.dns()).into());
    let zone = reader.sandbox.does("export --zonefile --provider own");
    assert!(zone.contains("web"), "{zone}");
}

#[test]
fn the_guide_of_cloudflare_works_as_typed() {
    let server = FakeCloudflare::start(&["example.com"]);
    let mut reader = Reader::of("cloudflare.md");
    let token = reader.file("token", server.token());
    // The only place of Cloudflare that the table need not name.
    let place = format!("type = \"cloudflare\"\nurl = \"{}\"", server.url());
    let table =
        reader.block("toml", 0, &[("/run/secrets/cloudflare", &token), ("type = \"cloudflare\"", &place)]);
    reader.works_with(&table);
    let records = server.records("example.com");
    assert!(records.iter().any(|record| record["name"] == "web.example.com"), "{records:?}");
}

#[test]
fn the_guide_of_dnsmasq_works_as_typed() {
    // Here, and through ssh as on a router.
    for through_ssh in [false, true] {
        let Some(server) = Dnsmasq::start() else { return };
        let (hosts, conf) =
            (server.hostsdir().display().to_string(), server.conf_dir().display().to_string());
        let restart = servers::in_toml(&server.restart_command());
        let mut reader = Reader::of("dnsmasq.md");
        let lines = reader.block("ini", 0, &[("/etc/dnsmasq.hosts.d", &hosts), ("/etc/dnsmasq.d", &conf)]);
        let own = std::fs::read_to_string(server.conf_dir().parent().unwrap().join("dnsmasq.conf")).unwrap();
        assert!(lines.lines().all(|line| own.lines().any(|own| own == line)), "{lines} is not in\n{own}");
        let table = if through_ssh {
            let Some(ssh) = servers::known_sshd() else { return };
            let table = reader.block(
                "toml",
                1,
                &[
                    ("/tmp/hosts.d", &hosts),
                    ("/etc/dnsmasq.d", &conf),
                    (r#"["/etc/init.d/dnsmasq", "restart"]"#, &restart),
                    ("ssh://root@192.168.1.1", &ssh.url()),
                    ("/etc/netstead/router_key", &ssh.key_file().display().to_string()),
                    ("/etc/netstead/router_known_hosts", &ssh.known_hosts_file().display().to_string()),
                ],
            );
            // The commands of the guide name the table of its first half.
            reader.text = reader.text.replace("netstead plan dnsmasq", "netstead plan router");
            reader.works_with(&table);
            drop(ssh);
            answers(server.address());
            continue;
        } else {
            reader.block(
                "toml",
                0,
                &[
                    ("/etc/dnsmasq.hosts.d", &hosts),
                    ("/etc/dnsmasq.d", &conf),
                    (r#"["systemctl", "restart", "dnsmasq"]"#, &restart),
                ],
            )
        };
        reader.works_with(&table);
        answers(server.address());
    }
}

#[test]
fn the_guide_of_webhook_providers_works_as_typed() {
    let filter = serde_json::json!({ "include": ["example.com"] });
    let server = FakeWebhookProvider::start(WebhookHabits { filter, ..WebhookHabits::default() });
    let mut reader = Reader::of("external-dns.md");
    let password = reader.file("password", server.password());
    let (login, url) = (format!("-u {}:{}", server.user(), server.password()), server.http().url());
    let look =
        reader.block("sh", 0, &[("curl -i", &format!("curl -i {login}")), ("http://localhost:8888", &url)]);
    let said = reader.types(&look).out;
    assert!(said.contains("content-type: application/external.dns.webhook+json;version=1"), "{said}");
    let table = reader.block(
        "toml",
        2,
        &[
            ("https://hook.example.com/ionos", &url),
            ("\"netstead\"", &format!("\"{}\"", server.user())),
            ("/run/secrets/hook", &password),
        ],
    );
    reader.works_with(&table);
    assert!(server.endpoints().iter().any(|endpoint| endpoint["dnsName"] == "web.example.com"));
}

#[test]
fn the_guide_of_pihole_works_as_typed() {
    for version in [6, 5] {
        let server = FakePiHole::start(version);
        let mut reader = Reader::of("pihole.md");
        let password = reader.file("password", server.password());
        let table = reader.block(
            "toml",
            0,
            &[("http://192.0.2.53", &server.http().url()), ("/run/secrets/pihole", &password)],
        );
        reader.works_with(&table);
    }
}

#[test]
fn the_guide_of_pihole_without_its_api_works_as_typed() {
    for through_ssh in [false, true] {
        let mut reader = Reader::of("pihole.md");
        let list = reader.file("custom.list", "");
        let Some(server) = Dnsmasq::with_options(&format!("addn-hosts={list}")) else { return };
        let aliases = server.conf_dir().join("05-pihole-custom-cname.conf").display().to_string();
        let restart = servers::in_toml(&server.restart_command());
        let files = [
            ("/etc/pihole/custom.list", list.as_str()),
            ("/etc/dnsmasq.d/05-pihole-custom-cname.conf", &aliases),
            (r#"["pihole", "restartdns"]"#, &restart),
        ];
        if !through_ssh {
            let table = reader.block("toml", 1, &files);
            reader.works_with(&table);
            answers(server.address());
            continue;
        }
        let Some(ssh) = servers::known_sshd() else { return };
        let (key, known) =
            (ssh.key_file().display().to_string(), ssh.known_hosts_file().display().to_string());
        let url = ssh.url();
        let places = [
            ("ssh://root@192.0.2.53", url.as_str()),
            ("/etc/netstead/pihole_key", &key),
            ("/etc/netstead/pihole_known_hosts", &known),
        ];
        let table = reader.block("toml", 2, &[files, places].concat());
        reader.works_with(&table);
        answers(server.address());
    }
}

#[test]
fn the_guide_of_technitium_works_as_typed() {
    let server = FakeTechnitium::start(&ZONES);
    let mut reader = Reader::of("technitium.md");
    let token = reader.file("token", server.token());
    let table = reader.block(
        "toml",
        0,
        &[("http://192.0.2.53:5380", &server.http().url()), ("/run/secrets/technitium", &token)],
    );
    reader.works_with(&table);
    let records = server.records(ZONES[0]).iter().map(ToString::to_string).collect::<String>();
    assert!(records.contains("web.home.example.com") && records.contains("HTTPS"), "{records}");
}

#[test]
fn the_guide_of_webhooks_works_as_typed() {
    let mut reader = Reader::of("webhook.md");
    let file = reader.file("hook.secret", "");
    let made = reader.types(&reader.block("sh", 0, &[("/etc/netstead/hook.secret", &file)]));
    assert_eq!(made.code, 0, "{}", made.err);
    let secret = std::fs::read_to_string(&file).unwrap();
    assert_eq!(secret.trim().len(), 64);
    let receiver = WebhookReceiver::start(secret.trim(), &ZONES);
    let table = reader.block(
        "toml",
        0,
        &[("https://hook.example.com/dns", &receiver.url()), ("/etc/netstead/hook.secret", &file)],
    );
    reader.works_with(&table);

    let receiver = DnsweaverReceiver::start("authorization", "Bearer hunter2");
    let mut reader = Reader::of("webhook.md");
    reader.sandbox.set("HOOK_TOKEN", "Bearer hunter2");
    let table = reader.block("toml", 1, &[("https://hook.example.com", &receiver.url())]);
    reader.works_with(&table);
    let records = receiver.records();
    assert!(records.iter().any(|record| record["hostname"] == "web.home.example.com"), "{records:?}");
}

#[test]
fn the_guide_of_powerdns_works_as_typed() {
    let mut reader = Reader::of("powerdns.md");
    let Some(server) = servers::powerdns(&reader) else { return };
    let key = reader.file("key", "choose-a-long-one");
    let table = reader.block(
        "toml",
        0,
        &[("http://192.0.2.53:8081", &format!("http://{}", server.api)), ("/run/secrets/pdns", &key)],
    );
    reader.works_with(&table);
    answers(server.address);
    assert_eq!(ask(server.address, "9.3.0.10.in-addr.arpa", "PTR"), "web.home.example.com.\n");
}

#[test]
fn the_guide_of_bind_works_as_typed() {
    let mut reader = Reader::of("rfc2136.md");
    let Some((server, secret)) = servers::bind(&reader) else { return };
    updates_work(&mut reader, server.address, &secret);
}

#[test]
fn the_guide_of_knot_works_as_typed() {
    let mut reader = Reader::of("rfc2136.md");
    let Some((server, secret)) = servers::knot(&reader) else { return };
    updates_work(&mut reader, server.address, &secret);
}

fn updates_work(reader: &mut Reader, server: SocketAddr, secret: &str) {
    let secret = reader.file("tsig", secret);
    let table =
        reader.block("toml", 0, &[("ns1.example.com", &server.to_string()), ("/run/secrets/tsig", &secret)]);
    reader.works_with(&table);
    answers(server);
    assert_eq!(ask(server, "9.3.0.10.in-addr.arpa", "PTR"), "web.home.example.com.\n");
}
