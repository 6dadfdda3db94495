//! The real external-dns and dnsweaver, built by `cargo xtask test --peers`.

use std::{
    io::{self, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::PathBuf,
    process::Command,
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use crate::{process::Process, tools::tool};

/// The versions that `cargo xtask test --peers` builds.
const EXTERNAL_DNS: &str = "external-dns-0.21.0";
const DNSWEAVER: &str = "dnsweaver-1.6.0";

/// The types of a list of endpoints as Go's `gob` writes them: name, targets, type and time to live.
const GOB_TYPES: &[u8] = b"\x0d\xff\x83\x02\x01\x02\xff\x84\x00\x01\xff\x80\x00\x00\
K\x7f\x03\x01\x01\x08Endpoint\x01\xff\x80\x00\x01\x04\x01\x07DNSName\x01\x0c\x00\x01\x07Targets\x01\xff\x82\x00\
\x01\x0aRecordType\x01\x0c\x00\x01\x09RecordTTL\x01\x04\x00\x00\x00\
\x16\xff\x81\x02\x01\x01\x08[]string\x01\xff\x82\x00\x01\x0c\x00\x00";

/// An endpoint as a source of external-dns finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FedEndpoint {
    pub name: String,
    pub kind: String,
    pub targets: Vec<String>,
    pub ttl: u32,
}

/// A server from which external-dns reads its endpoints (`--source=connector`). It lasts as long as the process.
#[derive(Debug)]
pub struct EndpointFeed {
    address: SocketAddr,
    endpoints: Arc<Mutex<Vec<FedEndpoint>>>,
}

impl EndpointFeed {
    /// Starts one without endpoints.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let endpoints: Arc<Mutex<Vec<FedEndpoint>>> = Arc::default();
        let fed = Arc::clone(&endpoints);
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let bytes = gob(&fed.lock().unwrap_or_else(PoisonError::into_inner));
                let _ = stream.write_all(&bytes);
            }
        });
        Ok(Self { address, endpoints })
    }

    /// From now on these are its endpoints: name, type, target.
    pub fn set(&self, endpoints: &[(&str, &str, &str)]) {
        let endpoint = |(name, kind, target): &(&str, &str, &str)| FedEndpoint {
            name: (*name).to_owned(),
            kind: (*kind).to_owned(),
            targets: vec![(*target).to_owned()],
            ttl: 60,
        };
        *self.endpoints.lock().unwrap_or_else(PoisonError::into_inner) =
            endpoints.iter().map(endpoint).collect();
    }
}

/// Numbers below 128 are one byte; others are their bytes after the negated count of them.
fn unsigned(number: usize, out: &mut Vec<u8>) {
    let bytes = number.to_be_bytes();
    match u8::try_from(number) {
        Ok(small) if small < 128 => out.push(small),
        _ => {
            let rest: Vec<u8> = bytes.into_iter().skip_while(|byte| *byte == 0).collect();
            out.push(u8::try_from(256 - rest.len()).unwrap_or(u8::MAX));
            out.extend(rest);
        }
    }
}

fn text(text: &str, out: &mut Vec<u8>) {
    unsigned(text.len(), out);
    out.extend(text.as_bytes());
}

fn gob(endpoints: &[FedEndpoint]) -> Vec<u8> {
    let mut value = vec![0xff, 0x84, 0];
    unsigned(endpoints.len(), &mut value);
    for endpoint in endpoints {
        // Each field after its distance from the last one, and 0 at the end.
        value.push(1);
        text(&endpoint.name, &mut value);
        value.push(1);
        unsigned(endpoint.targets.len(), &mut value);
        endpoint.targets.iter().for_each(|target| text(target, &mut value));
        value.push(1);
        text(&endpoint.kind, &mut value);
        if endpoint.ttl > 0 {
            value.push(1);
            unsigned(usize::try_from(endpoint.ttl).unwrap_or_default() << 1, &mut value);
        }
        value.push(0);
    }
    let mut all = GOB_TYPES.to_vec();
    unsigned(value.len(), &mut all);
    all.extend(value);
    all
}

/// The real external-dns.
#[derive(Debug)]
pub struct RealExternalDns {
    program: PathBuf,
}

impl RealExternalDns {
    /// None where it was not built.
    pub fn find() -> Option<Self> {
        tool(EXTERNAL_DNS, "external-dns").map(|program| Self { program })
    }

    /// A command that starts it, still without a source and a provider.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["--metrics-address=127.0.0.1:0"]).env("NO_PROXY", "127.0.0.1");
        command
    }

    /// Synchronises once with the webhook provider at `url`. What it logs, and whether it ended well.
    pub fn once(&self, feed: &EndpointFeed, url: &str, more: &[&str]) -> io::Result<(bool, String)> {
        let output = Command::new(&self.program)
            .args(["--once", "--log-level=debug", "--metrics-address=127.0.0.1:0"])
            .args(["--source=connector", &format!("--connector-source-server={}", feed.address)])
            .args(["--provider=webhook", "--registry=txt"])
            .args(more)
            .env("EXTERNAL_DNS_WEBHOOK_PROVIDER_URL", url)
            .env("NO_PROXY", "127.0.0.1")
            .output()?;
        let log = [output.stdout, output.stderr].concat();
        Ok((output.status.success(), String::from_utf8_lossy(&log).into_owned()))
    }
}

/// The program of the real dnsweaver; none where it was not built.
pub fn real_dnsweaver() -> Option<PathBuf> {
    tool(DNSWEAVER, "dnsweaver")
}

/// Starts the real dnsweaver with these variables and no others of its own.
pub fn start_dnsweaver(variables: &[(&str, String)]) -> io::Result<Process> {
    let program = real_dnsweaver().ok_or_else(|| io::Error::other("dnsweaver was not built"))?;
    let mut command = Command::new(program);
    command.envs(variables.iter().map(|(name, value)| (*name, value.as_str())));
    Process::start("dnsweaver", &mut command)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Go 1.26 writes it.
    #[test]
    fn endpoints_are_encoded_as_go_does() {
        let endpoint = |name: &str, kind: &str, targets: &[&str], ttl| FedEndpoint {
            name: name.into(),
            kind: kind.into(),
            targets: targets.iter().map(ToString::to_string).collect(),
            ttl,
        };
        let all = [
            endpoint("www.apps.test", "A", &["192.0.2.1", "192.0.2.2"], 60),
            endpoint("x.apps.test", "CNAME", &["www.apps.test"], 0),
        ];
        let value =
            b"T\xff\x84\x00\x02\x01\x0dwww.apps.test\x01\x02\x09192.0.2.1\x09192.0.2.2\x01\x01A\x01x\x00\
\x01\x0bx.apps.test\x01\x01\x0dwww.apps.test\x01\x05CNAME\x00";
        assert_eq!(gob(&all), [GOB_TYPES, value].concat());
        assert_eq!(gob(&[]), [GOB_TYPES, b"\x04\xff\x84\x00\x00"].concat());
    }
}
