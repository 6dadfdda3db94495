//! Pi-hole by its files, with a real dnsmasq that reads them as Pi-hole 5 does, on this machine and behind a real sshd.

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use netstead_model::{DnsProvider as _, ProviderError, RecordType, UnitOutcome};
use netstead_providers::{
    contract::{self, Subject},
    dns::pihole::{Config, PiHoleFiles},
};
use netstead_settings::{Configured as _, Parsed};
use netstead_testkit::{Dnsmasq, Sshd};
use tempfile::TempDir;

use crate::support::{a, change, context, request, set, zone};

/// A resolver with the two files of Pi-hole 5.
pub struct Server {
    pub dnsmasq: Dnsmasq,
    dir: TempDir,
}

impl Server {
    pub fn start() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("custom.list");
        fs::write(&list, "").unwrap();
        let dnsmasq = Dnsmasq::with_options(&format!("addn-hosts={}", list.display()))?;
        Some(Self { dnsmasq, dir })
    }

    pub fn hosts_file(&self) -> PathBuf {
        self.dir.path().join("custom.list")
    }

    fn cname_file(&self) -> PathBuf {
        self.dnsmasq.conf_dir().join("05-pihole-custom-cname.conf")
    }

    pub fn config(&self) -> Config {
        let reload = self.dnsmasq.restart_command();
        Config::of_files(self.hosts_file(), Some(self.cname_file()), reload)
    }

    pub fn through(&self, ssh: &Sshd) -> Config {
        Config {
            ssh: Some(Parsed(ssh.url().parse().unwrap())),
            ssh_key: Some(ssh.key_file()),
            ssh_known_hosts: Some(ssh.known_hosts_file()),
            ..self.config()
        }
    }
}

fn open(config: &Config) -> PiHoleFiles {
    PiHoleFiles::open(config, &context()).unwrap().with_reload_pause(Duration::ZERO)
}

#[tokio::test]
async fn the_files_of_pihole_keep_the_contract() {
    let Some(server) = Server::start() else { return };
    let hosts_only = Config { cname_file: None, ..server.config() };
    for config in [server.config(), hosts_only] {
        contract::all(&Subject::inside(Arc::new(open(&config)), zone())).await;
    }
    assert_eq!(fs::read_to_string(server.hosts_file()).unwrap(), "", "nothing is left behind");
    assert_eq!(fs::read_to_string(server.cname_file()).unwrap(), "", "nothing is left behind");
}

async fn answers(server: &Server, provider: &PiHoleFiles) {
    let hand = "# mine\n192.0.2.9 NAS.example.test nas # in the cellar\nno line of hosts\n";
    fs::write(server.hosts_file(), hand).unwrap();
    fs::write(server.cname_file(), "cname=x.example.test,y.example.test,nas.example.test\n").unwrap();
    provider.may_write(&zone()).await.unwrap();
    let units = vec![
        change(None, Some(a("web.example.test", &["192.0.2.1", "192.0.2.2"]))),
        change(None, Some(set("web.example.test", RecordType::Aaaa, &["2001:db8::1"]))),
        change(None, Some(set("www.example.test", RecordType::Cname, &["web.example.test."]))),
    ];
    let before = server.dnsmasq.starts();
    let reply = provider.write(&zone(), &request(1, units)).await.unwrap();
    assert_eq!(reply, vec![UnitOutcome::Applied; 3].into());
    assert_eq!(server.dnsmasq.starts(), before + 1, "one reload serves all");
    let asked = server.dnsmasq.ask("www.example.test", "A");
    assert_eq!(asked, ["192.0.2.1", "192.0.2.2", "web.example.test."]);
    let all = provider.read(&zone()).await.unwrap().sets;
    assert_eq!(all.iter().map(|set| set.name.as_str()).collect::<Vec<_>>().len(), 4, "{all:?}");
    // Another name of a shared line stays, and so do lines of others.
    let nas = provider.adjust(a("nas.example.test", &["192.0.2.9"]), &provider.capabilities());
    let gone = provider.write(&zone(), &request(2, vec![change(Some(nas), None)])).await.unwrap();
    assert_eq!(gone, vec![UnitOutcome::Applied].into());
    let text = fs::read_to_string(server.hosts_file()).unwrap();
    assert!(
        text.starts_with("# mine\n192.0.2.9 nas # in the cellar\nno line of hosts\n192.0.2.1 web"),
        "{text}"
    );
    let shared = set("x.example.test", RecordType::Cname, &["web.example.test."]);
    let reply = provider.write(&zone(), &request(3, vec![change(None, Some(shared))])).await.unwrap();
    assert!(matches!(reply.outcomes.as_slice(), [UnitOutcome::Rejected { .. }]), "{reply:?}");
}

#[tokio::test]
async fn pihole_answers_with_what_is_written_to_its_files() {
    let Some(server) = Server::start() else { return };
    answers(&server, &open(&server.config())).await;
}

#[tokio::test]
async fn pihole_behind_ssh_answers_with_what_is_written_to_its_files() {
    let (Some(server), Some(ssh)) = (Server::start(), Sshd::start(&[])) else { return };
    ssh.make_known().unwrap();
    answers(&server, &open(&server.through(&ssh))).await;
}

#[tokio::test]
async fn files_with_which_pihole_does_not_start_are_taken_back() {
    let Some(server) = Server::start() else { return };
    fs::write(server.dnsmasq.conf_dir().join("mine.conf"), "cname=taken.example.test,web.example.test\n")
        .unwrap();
    let provider = open(&server.config());
    let taken = set("taken.example.test", RecordType::Cname, &["other.example.test."]);
    let reply = provider.write(&zone(), &request(1, vec![change(None, Some(taken))])).await.unwrap();
    assert!(
        matches!(reply.outcomes.as_slice(), [UnitOutcome::Rejected { reason }]
            if reason.starts_with("Pi-hole does not start with it") && reason.contains("duplicate CNAME")),
        "{reply:?}"
    );
    assert!(!server.cname_file().exists());
    let broken = open(&Config { reload: vec!["false".into()], ..server.config() });
    let host = change(None, Some(a("h.example.test", &["192.0.2.1"])));
    let reply = broken.write(&zone(), &request(2, vec![host])).await.unwrap();
    assert_eq!(reply.outcomes, [UnitOutcome::NotTried]);
    assert!(matches!(reply.stopped, Some(ProviderError::Unreachable { .. })), "{reply:?}");
    assert_eq!(fs::read_to_string(server.hosts_file()).unwrap(), "");
}

#[test]
fn the_api_and_the_files_are_not_mixed() {
    let files = || Config::of_files("/etc/pihole/custom.list", None, vec!["pihole".into()]);
    let api = || Config::new("http://pi.hole", None);
    let path = |text: &str| Some(PathBuf::from(text));
    let cases = [
        (Config { url: None, ..api() }, "url"),
        (Config { url: Some("http://pi.hole".into()), ..files() }, "hosts_file"),
        (Config { reload: Vec::new(), ..files() }, "reload"),
        (Config { hosts_file: path("custom.list"), ..files() }, "hosts_file"),
        (Config { cname_file: path("/etc/pihole/custom.list"), ..files() }, "cname_file"),
        (Config { ssh_key: path("/k"), ..files() }, "ssh_key"),
        (Config { cname_file: path("/x"), ..api() }, "cname_file"),
        (Config { reload: vec!["x".into()], ..api() }, "reload"),
    ];
    for (config, key) in cases {
        assert_eq!(config.check().unwrap_err().key, key);
    }
    assert_eq!(files().check(), Ok(()));
    assert_eq!(files().server(), "/etc/pihole/custom.list");
}
