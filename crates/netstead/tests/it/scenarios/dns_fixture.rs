//! A sandbox, real DNS servers beside it, and a look at what they hold.

use std::{net::SocketAddr, time::Duration};

use netstead_model::{DnsProvider as _, Name};
use netstead_providers::{
    Secret,
    dns::rfc2136::{Config, Rfc2136},
};
use netstead_testkit::{PowerDns, Primary, PrimaryKind, TsigKey, wait_until};
use tokio::runtime::Runtime;

use crate::sandbox::Sandbox;

pub(super) const FORWARD: &str = "home.test";
pub(super) const REVERSE: &str = "3.0.10.in-addr.arpa";
pub(super) const ZONES: [&str; 2] = [FORWARD, REVERSE];
pub(super) const HOSTS: &str = "[source.office]\ntype = \"hosts\"\npath = \"hosts\"\n";
/// Longer than anything takes on a machine that has other things to do as well.
pub(super) const SOON: Duration = Duration::from_secs(30);

/// A look at what a server holds, past Netstead.
#[derive(Debug)]
pub(crate) struct Server {
    reader: Rfc2136,
    pub(super) runtime: Runtime,
}

/// A zone at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Zone {
    pub(crate) serial: u32,
    /// `www.home.test A 10.0.3.9`, sorted; but for what the server itself needs.
    pub(crate) records: Vec<String>,
}

impl Zone {
    /// Without marks and fences.
    pub(crate) fn plain(&self) -> Vec<&str> {
        self.records.iter().map(String::as_str).filter(|record| !record.contains("_netstead-")).collect()
    }

    /// The marks' names.
    pub(super) fn marks(&self) -> Vec<&str> {
        let ours = |record: &&String| record.contains("_netstead-") && !record.contains("_netstead-fence-");
        self.records.iter().filter(ours).filter_map(|record| record.split(' ').next()).collect()
    }
}

impl Server {
    pub(crate) fn at(address: SocketAddr, key: &TsigKey) -> Self {
        let mut config = Config::new([address.to_string()]);
        config.tsig_name = Some(key.name.clone());
        config.tsig_algorithm.clone_from(&key.algorithm);
        config.tsig_secret = Some(Secret::new(key.secret.clone()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { reader: Rfc2136::new(config).unwrap(), runtime }
    }

    pub(crate) fn zone(&self, zone: &str) -> Zone {
        let name: Name = zone.parse().unwrap();
        let content = self.runtime.block_on(self.reader.read(&name)).unwrap();
        let needed = [format!("{zone} NS"), format!("ns1.{zone} A")];
        let records = content.sets.iter().flat_map(|set| {
            let line = |value| format!("{} {} {value}", set.name, set.kind);
            set.values.iter().map(line).collect::<Vec<_>>()
        });
        let mut records: Vec<String> =
            records.filter(|record| !needed.iter().any(|needed| record.starts_with(needed))).collect();
        records.sort();
        Zone { serial: content.sign.unwrap().serial().unwrap(), records }
    }

    /// Epoch and generation of the newest plan that was applied there, of any owner.
    pub(crate) fn fence(&self, zone: &str) -> Option<(u64, u64)> {
        let content = self.zone(zone);
        let owner = content.marks().first()?.strip_prefix("_netstead-")?.split('.').next()?.to_owned();
        self.runtime.block_on(self.reader.fence(&zone.parse().unwrap(), &owner)).unwrap()
    }

    /// Waits until the zone holds exactly these, beside marks and fences.
    pub(super) fn until(&self, zone: &str, wanted: &[&str]) -> Zone {
        let found = wait_until(SOON, || Some(self.zone(zone)).filter(|zone| zone.plain() == wanted));
        found.unwrap_or_else(|| panic!("wanted {wanted:?}\n   got {:?}", self.zone(zone).plain()))
    }
}

impl From<&PowerDns> for Server {
    fn from(server: &PowerDns) -> Self {
        Self::at(server.address(), server.key())
    }
}

impl<M: PrimaryKind> From<&Primary<M>> for Server {
    fn from(server: &Primary<M>) -> Self {
        Self::at(server.address(), server.key())
    }
}

/// `[dns.NAME]` for a PowerDNS, reached at `url`, with `more` lines.
pub(super) fn powerdns(name: &str, url: &str, more: &str) -> String {
    format!(
        "[dns.{name}]\ntype = \"powerdns\"\nurl = \"{url}\"\napi_key = \"netstead-test\"\ndomains = [\"{FORWARD}\"]\n\
         {more}\n"
    )
}

/// `[dns.NAME]` for DNS UPDATE to `address`, with `more` lines.
pub(super) fn rfc2136(name: &str, address: SocketAddr, key: &TsigKey, more: &str) -> String {
    format!(
        "[dns.{name}]\ntype = \"rfc2136\"\nservers = [\"{address}\"]\ntsig_name = \"{}\"\ntsig_algorithm = \"{}\"\n\
         tsig_secret = \"{}\"\ndomains = [\"{FORWARD}\"]\nzones = [\"{REVERSE}\"]\n{more}\n",
        key.name, key.algorithm, key.secret
    )
}

/// A DNS update on its way, by the opcode in the header, which follows the length.
pub(super) fn is_update(bytes: &[u8]) -> bool {
    bytes.get(4).is_some_and(|flags| flags & 0x78 == 0x28)
}

/// A change on its way to the API of PowerDNS.
pub(super) fn is_patch(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PATCH ")
}

/// A sandbox that is about to start with this configuration.
pub(super) fn sandbox(config: &str) -> Sandbox {
    let sandbox = Sandbox::empty();
    sandbox.write("netstead.toml", config);
    sandbox
}

impl Sandbox {
    /// Replaces a file in the sandbox as an editor does: at once.
    pub(super) fn write(&self, file: &str, text: &str) {
        let place = self.path().join(file);
        let draft = self.path().join(format!(".{file}.new"));
        std::fs::write(&draft, text).unwrap();
        std::fs::rename(draft, place).unwrap();
    }

    /// Waits until this provider has nothing to do.
    pub(super) fn settles(&self, provider: &str) {
        let settled = wait_until(SOON, || {
            let line = self.does("get providers");
            line.lines()
                .any(|line| line.starts_with(&format!("{provider} ")) && line.contains("in sync"))
                .then_some(())
        });
        assert!(
            settled.is_some(),
            "{}{}",
            self.does("get providers -o wide"),
            self.netstead(["plan", provider]).out
        );
    }

    /// The configuration as it is now is in force when this returns.
    pub(super) fn reload(&mut self, config: &str) {
        let sign = "Configuration read again; it is in force.";
        let before = self.server().log().matches(sign).count();
        self.write("netstead.toml", config);
        self.server().signal("HUP").unwrap();
        let taken = wait_until(SOON, || (self.server().log().matches(sign).count() > before).then_some(()));
        assert!(taken.is_some(), "{}", self.server().log());
    }
}
