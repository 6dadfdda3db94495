//! dnsmasq itself, on this machine and behind a real sshd.

use std::{fs, sync::Arc, time::Duration};

use netstead_model::{
    DnsProvider, ManualClock, ProviderError, RecordSet, RecordType, SetChange, Unit, UnitOutcome,
};
use netstead_providers::{
    contract::{self, Subject, basics::BINARY_TEXT},
    dns::dnsmasq::{Config, Dnsmasq},
};
use netstead_settings::{Configured as _, Parsed};
use netstead_testkit::{Dnsmasq as Server, Sshd};

use crate::support::{a, change, context, request, set, zone};

fn config(server: &Server) -> Config {
    Config {
        hostsdir: Some(server.hostsdir()),
        conf_dir: Some(server.conf_dir()),
        reload: server.restart_command(),
        ..Config::new()
    }
}

fn through(ssh: &Sshd, config: Config) -> Config {
    Config {
        ssh: Some(Parsed(ssh.url().parse().unwrap())),
        ssh_key: Some(ssh.key_file()),
        ssh_known_hosts: Some(ssh.known_hosts_file()),
        ..config
    }
}

fn provider(config: Config) -> Dnsmasq {
    Dnsmasq::new(config).unwrap().with_reload_pause(Duration::ZERO)
}

async fn write(provider: &Dnsmasq, units: Vec<Unit>) -> Vec<UnitOutcome> {
    let reply = provider.write(&zone(), &request(1, units)).await.unwrap();
    assert_eq!(reply.stopped, None);
    reply.outcomes
}

async fn sets(provider: &Dnsmasq) -> Vec<RecordSet> {
    provider.read(&zone()).await.unwrap().sets
}

fn at_zero(set: RecordSet) -> RecordSet {
    RecordSet { ttl: 0, ..set }
}

#[tokio::test]
async fn dnsmasq_keeps_the_contract_with_either_directory_and_with_both() {
    let Some(server) = Server::start() else { return };
    let both = config(&server);
    let hosts = Config { conf_dir: None, reload: Vec::new(), ..both.clone() };
    let conf = Config { hostsdir: None, ..both.clone() };
    for config in [both, conf, hosts.clone()] {
        let mut subject = Subject::inside(Arc::new(provider(config.clone())), zone());
        subject.impossible = vec![(RecordType::Txt, BINARY_TEXT)];
        if config.conf_dir.is_none() {
            subject.impossible.push((RecordType::A, "192.0.2.9"));
        }
        println!("{}", config.server());
        contract::all(&subject).await;
    }
    assert_eq!(fs::read_dir(server.hostsdir()).unwrap().count(), 0, "nothing is left behind");
    assert_eq!(fs::read_dir(server.conf_dir()).unwrap().count(), 0, "nothing is left behind");
}

#[tokio::test]
async fn dnsmasq_keeps_the_contract_through_ssh() {
    let (Some(server), Some(ssh)) = (Server::start(), Sshd::start(&[])) else { return };
    ssh.make_known().unwrap();
    let config = through(&ssh, Config { conf_dir: None, reload: Vec::new(), ..config(&server) });
    let stranger = Config { ssh_key: Some(ssh.other_key_file()), ..config.clone() };
    let mut subject = Subject::new(Arc::new(provider(config)), Arc::new(provider(stranger)), zone());
    subject.impossible = vec![(RecordType::A, "192.0.2.9")];
    contract::all(&subject).await;
}

fn of_each_type() -> Vec<(&'static str, RecordType, Vec<&'static str>)> {
    vec![
        ("web.example.test", RecordType::A, vec!["192.0.2.1", "192.0.2.2"]),
        ("web.example.test", RecordType::Aaaa, vec!["2001:db8::1"]),
        ("alias.example.test", RecordType::Cname, vec!["web.example.test."]),
        ("_http._tcp.example.test", RecordType::Srv, vec!["1 2 443 web.example.test."]),
        ("text.example.test", RecordType::Txt, vec![r#""it's \"quoted\", # \\ and" "more""#]),
        ("ptr.example.test", RecordType::Ptr, vec!["web.example.test."]),
    ]
}

async fn check_every_type(server: &Server, provider: &Dnsmasq) {
    let sets: Vec<RecordSet> =
        of_each_type().into_iter().map(|(at, kind, values)| set(at, kind, &values)).collect();
    let star = a("*.wild.example.test", &["192.0.2.9"]);
    let units: Vec<Unit> = sets.iter().chain([&star]).map(|set| change(None, Some(set.clone()))).collect();
    let before = server.starts();
    let done = write(provider, units).await;
    assert_eq!(done, vec![UnitOutcome::Applied; 7]);
    assert_eq!(server.starts(), before + 1, "one restart serves all");
    for (at, kind, values) in of_each_type() {
        assert_eq!(server.ask_until(at, kind.as_str(), &values), values, "{at} {kind}");
    }
    assert_eq!(server.ask("any.wild.example.test", "A"), ["192.0.2.9"]);
    assert_eq!(server.ask("wild.example.test", "A"), [""; 0]);
    assert_eq!(server.ask("alias.example.test", "A"), ["192.0.2.1", "192.0.2.2", "web.example.test."]);

    // An address changes, comes and goes without a restart.
    let old = Some(at_zero(a("web.example.test", &["192.0.2.1", "192.0.2.2"])));
    let new = a("web.example.test", &["192.0.2.3"]);
    let other = Some(a("new.example.test", &["192.0.2.4"]));
    assert_eq!(
        write(provider, vec![change(old, Some(new.clone())), change(None, other.clone())]).await,
        [UnitOutcome::Applied, UnitOutcome::Applied]
    );
    assert_eq!(server.ask_until("web.example.test", "A", &["192.0.2.3"]), ["192.0.2.3"]);
    assert_eq!(server.ask_until("new.example.test", "A", &["192.0.2.4"]), ["192.0.2.4"]);
    write(provider, vec![change(other, None)]).await;
    assert_eq!(server.ask_until("new.example.test", "A", &[]), [""; 0]);
    assert_eq!(server.starts(), before + 1);

    // An address becomes an alias.
    let to_alias = |from: RecordSet, to: RecordSet| Unit {
        name: from.name.clone(),
        changes: vec![
            SetChange { before: None, after: Some(to) },
            SetChange { before: Some(from), after: None },
        ],
    };
    let six = set("web.example.test", RecordType::Aaaa, &["2001:db8::1"]);
    write(provider, vec![change(Some(six), None)]).await;
    write(provider, vec![change(None, Some(a("host.example.test", &["192.0.2.6"])))]).await;
    let target = set("web.example.test", RecordType::Cname, &["host.example.test."]);
    assert_eq!(write(provider, vec![to_alias(new, target.clone())]).await, [UnitOutcome::Applied]);
    let both = ["192.0.2.6", "host.example.test."];
    assert_eq!(server.ask_until("web.example.test", "A", &both), both);
    assert_eq!(
        write(provider, vec![to_alias(target, a("web.example.test", &["192.0.2.5"]))]).await,
        [UnitOutcome::Applied]
    );
    assert_eq!(server.ask_until("web.example.test", "A", &["192.0.2.5"]), ["192.0.2.5"]);
}

#[tokio::test]
async fn dnsmasq_answers_with_what_is_written() {
    let Some(server) = Server::start() else { return };
    check_every_type(&server, &provider(config(&server))).await;
}

#[tokio::test]
async fn dnsmasq_behind_ssh_answers_with_what_is_written() {
    let (Some(server), Some(ssh)) = (Server::start(), Sshd::start(&[])) else { return };
    ssh.make_known().unwrap();
    let provider = provider(through(&ssh, config(&server)));
    provider.may_write(&zone()).await.unwrap();
    check_every_type(&server, &provider).await;
}

#[tokio::test]
async fn files_of_others_are_known_and_never_changed() {
    let Some(server) = Server::start() else { return };
    let (hosts, conf) = (server.hostsdir().join("mine"), server.conf_dir().join("mine.conf"));
    let (hosts_text, conf_text) = (
        "192.0.2.7 nas.example.test shared.example.test\n",
        "cname=www.example.test,nas.example.test\nmx-host=example.test,nas.example.test,10\ndomain-needed\n",
    );
    fs::write(&hosts, hosts_text).unwrap();
    fs::write(&conf, conf_text).unwrap();
    let provider = provider(config(&server));
    let there = [
        at_zero(a("nas.example.test", &["192.0.2.7"])),
        at_zero(a("shared.example.test", &["192.0.2.7"])),
        at_zero(set("www.example.test", RecordType::Cname, &["nas.example.test."])),
    ];
    assert_eq!(sets(&provider).await, there);
    let alias = set("www.example.test", RecordType::Cname, &["other.example.test."]);
    let apex = set("example.test", RecordType::Cname, &["other.example.test."]);
    let both = a("shared.example.test", &["192.0.2.7", "192.0.2.8"]);
    let done = write(
        &provider,
        vec![
            change(Some(there[0].clone()), None),
            change(Some(there[1].clone()), Some(both.clone())),
            change(Some(there[2].clone()), Some(alias)),
            change(None, Some(apex)),
        ],
    )
    .await;
    let not_ours = |what: &str, file: &str| UnitOutcome::Rejected {
        reason: format!("{what} is in `{file}`, which Netstead does not change; remove it there"),
    };
    assert_eq!(
        done,
        [
            not_ours("A 192.0.2.7 of `nas.example.test`", "mine"),
            UnitOutcome::Applied,
            not_ours("CNAME nas.example.test. of `www.example.test`", "mine.conf"),
            UnitOutcome::Rejected {
                reason: "a CNAME cannot stand at `example.test` beside other records".into()
            },
        ]
    );
    let own = fs::read_to_string(server.hostsdir().join("netstead.hosts")).unwrap();
    assert!(own.ends_with(".\n192.0.2.8\tshared.example.test\n"), "{own}");
    assert_eq!(sets(&provider).await[1], at_zero(both));
    assert_eq!(fs::read_to_string(hosts).unwrap(), hosts_text);
    assert_eq!(fs::read_to_string(conf).unwrap(), conf_text);
}

#[tokio::test]
async fn values_adopted_from_dnsweaver_leave_its_file_when_they_change() {
    let Some(server) = Server::start() else { return };
    let file = server.conf_dir().join("dnsweaver.conf");
    let text = "# Managed by dnsweaver\naddress=/app.example.test/192.0.2.1\ncname=www.example.test,app.example.test\n";
    fs::write(&file, text).unwrap();
    let provider = provider(config(&server));
    let app = at_zero(a("app.example.test", &["192.0.2.1"]));
    let www = at_zero(set("www.example.test", RecordType::Cname, &["app.example.test."]));
    assert_eq!(sets(&provider).await, [app.clone(), www.clone()]);
    assert_eq!(write(&provider, vec![change(None, Some(app.clone()))]).await, [UnitOutcome::Applied]);
    assert_eq!(fs::read_to_string(&file).unwrap(), text, "what is wanted already stays where it is");

    let moved = a("app.example.test", &["192.0.2.2"]);
    assert_eq!(write(&provider, vec![change(Some(app), Some(moved))]).await, [UnitOutcome::Applied]);
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        "# Managed by dnsweaver\ncname=www.example.test,app.example.test\n"
    );
    assert_eq!(server.ask_until("app.example.test", "A", &["192.0.2.2"]), ["192.0.2.2"]);
    assert_eq!(write(&provider, vec![change(Some(www), None)]).await, [UnitOutcome::Applied]);
    assert!(!file.exists(), "a file without records is removed");
    assert_eq!(server.ask("www.example.test", "CNAME"), [""; 0]);
}

#[tokio::test]
async fn files_with_which_dnsmasq_does_not_start_are_taken_back() {
    // What stands outside of the directory cannot be seen.
    let Some(server) = Server::with_options("cname=taken.example.test,web.example.test") else { return };
    let provider = provider(config(&server));
    let good = set("good.example.test", RecordType::Cname, &["web.example.test."]);
    write(&provider, vec![change(None, Some(good.clone()))]).await;
    let file = server.conf_dir().join("netstead.conf");
    let before = fs::read_to_string(&file).unwrap();
    let taken = || change(None, Some(set("taken.example.test", RecordType::Cname, &["other.example.test."])));
    let text = || change(None, Some(set("t.example.test", RecordType::Txt, &["\"x\""])));
    let host = change(None, Some(a("h.example.test", &["192.0.2.1"])));

    let done = write(&provider, vec![taken(), host]).await;
    assert!(
        matches!(&done[0], UnitOutcome::Rejected { reason } if reason.contains("duplicate CNAME")),
        "{done:?}"
    );
    assert_eq!(done[1], UnitOutcome::Applied, "addresses do not wait for the configuration");
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    assert_eq!(server.ask("good.example.test", "CNAME"), ["web.example.test."]);

    let starts = server.starts();
    assert_eq!(write(&provider, vec![taken()]).await, done[..1], "the same is not tried again");
    assert_eq!(server.starts(), starts);

    let reply = provider.write(&zone(), &request(2, vec![taken(), text()])).await.unwrap();
    assert_eq!(reply.outcomes, [UnitOutcome::NotTried, UnitOutcome::NotTried]);
    assert!(matches!(reply.stopped, Some(ProviderError::Unreachable { .. })), "{reply:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    assert_eq!(write(&provider, vec![text()]).await, [UnitOutcome::Applied]);

    let looping = change(None, Some(set("web.example.test", RecordType::Cname, &["good.example.test."])));
    let reason = "`web.example.test` would be an alias of itself, by way of `good.example.test`".to_owned();
    assert_eq!(write(&provider, vec![looping]).await, [UnitOutcome::Rejected { reason }]);
}

#[tokio::test]
async fn a_reload_that_fails_leaves_the_old_files() {
    let Some(server) = Server::start() else { return };
    let provider = provider(Config { reload: vec!["false".into()], ..config(&server) });
    let alias = set("www.example.test", RecordType::Cname, &["web.example.test."]);
    let reply = provider.write(&zone(), &request(1, vec![change(None, Some(alias))])).await.unwrap();
    assert_eq!(reply.outcomes, [UnitOutcome::NotTried]);
    let error = reply.stopped.unwrap().to_string();
    assert!(error.contains("`reload` fails, and the old files are back: `false` ends with"), "{error}");
    assert!(!server.conf_dir().join("netstead.conf").exists());
    let error = provider.zones(&[zone()]).await.unwrap_err().to_string();
    assert!(error.contains("`reload` fails"), "dnsmasq may be down, and that is said: {error}");
}

#[tokio::test]
async fn a_restart_that_a_crash_prevented_is_made_up_for() {
    let Some(server) = Server::start() else { return };
    // A node died after it replaced the file.
    fs::write(server.conf_dir().join("netstead.conf"), "txt-record=t.example.test,\"x\"\n").unwrap();
    fs::write(server.conf_dir().join(".netstead.pending"), "").unwrap();
    assert_eq!(server.ask("t.example.test", "TXT"), [""; 0]);
    let provider = provider(config(&server));
    provider.prepare().await.unwrap();
    assert_eq!(server.ask("t.example.test", "TXT"), ["\"x\""]);
    let starts = server.starts();
    provider.prepare().await.unwrap();
    assert_eq!(server.starts(), starts, "a second time changes nothing");
}

#[tokio::test]
async fn an_unknown_host_key_and_a_revoked_key_are_refused_and_tried_once_a_minute() {
    let (Some(server), Some(ssh)) = (Server::start(), Sshd::start(&[])) else { return };
    let clock = ManualClock::default();
    let open =
        || Dnsmasq::open(through(&ssh, config(&server)), &context().with_clock(clock.shared())).unwrap();
    let provider = open();
    let stranger = provider.read(&zone()).await.unwrap_err();
    assert!(
        matches!(&stranger, ProviderError::Denied { reason, .. } if reason.contains("Host key verification failed")),
        "{stranger}"
    );
    ssh.make_known().unwrap();
    assert_eq!(provider.read(&zone()).await.unwrap_err(), stranger, "it is too early to try again");
    clock.advance(Duration::from_secs(65));
    assert_eq!(provider.read(&zone()).await.unwrap().sets, []);

    ssh.forbid().unwrap();
    let unit = || change(None, Some(a("web.example.test", &["192.0.2.1"])));
    let denied = provider.write(&zone(), &request(1, vec![unit()])).await.unwrap_err();
    assert!(
        matches!(&denied, ProviderError::Denied { reason, .. } if reason.contains("Permission denied")),
        "{denied}"
    );
    let logins = ssh.log().lines().count();
    assert!(provider.zones(&[zone()]).await.is_err());
    assert_eq!(ssh.log().lines().count(), logins, "no second login within the minute");
    ssh.allow().unwrap();
    clock.advance(Duration::from_secs(65));
    let reply = provider.write(&zone(), &request(2, vec![unit()])).await.unwrap();
    assert_eq!(reply.outcomes, [UnitOutcome::Applied]);
    assert_eq!(server.ask_until("web.example.test", "A", &["192.0.2.1"]), ["192.0.2.1"]);
}

#[tokio::test]
async fn directories_and_machines_that_are_missing_are_named() {
    let Some(server) = Server::start() else { return };
    let missing = server.hostsdir().join("missing");
    let gone = Config { hostsdir: Some(missing.clone()), conf_dir: None, ..Config::new() };
    let here = provider(gone.clone());
    let error = here.read(&zone()).await.unwrap_err().to_string();
    assert!(error.contains(&format!("{}: No such file", missing.display())), "{error}");
    assert!(matches!(here.may_write(&zone()).await, Err(ProviderError::Denied { .. })));
    let ssh = Some(Parsed("ssh://127.0.0.1:1".parse().unwrap()));
    let there = provider(Config { ssh, ..gone });
    let error = there.read(&zone()).await.unwrap_err();
    assert!(matches!(error, ProviderError::Unreachable { .. }), "{error}");
    let wanted = request(1, vec![change(None, Some(a("w.example.test", &["192.0.2.1"])))]);
    let error = there.write(&zone(), &wanted).await.unwrap_err();
    assert!(matches!(error, ProviderError::Unreachable { .. }), "{error}");
}

#[test]
fn settings_that_do_not_fit_together_are_refused() {
    let path = |text: &str| Some(text.into());
    let cases = [
        (Config::new(), "hostsdir"),
        (Config { conf_dir: path("/d"), ..Config::new() }, "reload"),
        (Config { hostsdir: path("/d"), reload: vec!["x".into()], ..Config::new() }, "reload"),
        (
            Config { hostsdir: path("/d"), conf_dir: path("/d"), reload: vec!["x".into()], ..Config::new() },
            "conf_dir",
        ),
        (Config { hostsdir: path("/d"), ssh_key: path("/k"), ..Config::new() }, "ssh_key"),
        (Config { hostsdir: path("/d"), dnsweaver_file: "../x".into(), ..Config::new() }, "dnsweaver_file"),
    ];
    for (config, key) in cases {
        assert_eq!(Dnsmasq::new(config).unwrap_err().key, key);
    }
    let of = |ssh: &str| {
        let ssh = Some(Parsed(ssh.parse().unwrap()));
        Config { hostsdir: path("/etc/hosts.d"), ssh, ..Config::new() }
    };
    assert!(of("ssh://root@router").identity().meets(&of("ssh://admin@router").identity()));
    assert!(!of("ssh://router").identity().meets(&of("ssh://other").identity()));
    assert_eq!(of("ssh://root@router").server(), "ssh://root@router:/etc/hosts.d");
}
