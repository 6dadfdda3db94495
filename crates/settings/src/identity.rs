//! Which server a table means.

use std::collections::BTreeSet;

use url::Url;

/// The places of a server in one spelling. Two tables mean the same server if their sets meet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    places: BTreeSet<String>,
    hosts: BTreeSet<String>,
}

impl Identity {
    /// A server that only this process has.
    pub fn own(name: &str) -> Self {
        Self { places: BTreeSet::from([name.to_owned()]), hosts: BTreeSet::new() }
    }

    /// A server behind a URL; `part` tells several in one server apart.
    #[must_use]
    pub fn and_url(mut self, url: &str, part: &str) -> Self {
        let Ok(parsed) = Url::parse(url) else {
            self.places.insert(format!("{}#{part}", url.trim_end_matches('/').to_lowercase()));
            return self;
        };
        let host = parsed.host_str().unwrap_or_default().trim_end_matches('.').to_lowercase();
        // `http://ns1` and `http://ns1:80` are one place.
        let port = parsed.port_or_known_default().unwrap_or_default();
        let path = parsed.path().trim_end_matches('/');
        self.places.insert(format!("{}://{host}:{port}{path}#{part}", parsed.scheme()));
        self.hosts.insert(host);
        self
    }

    /// A server at `host`, `host:port` or `[address]:port`.
    #[must_use]
    pub fn and_host(mut self, text: &str, usual_port: u16) -> Self {
        let text = text.trim_end_matches('.').to_lowercase();
        let bracketed = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let (host, port) = match bracketed {
            Some((host, rest)) => {
                (host.to_owned(), rest.strip_prefix(':').and_then(|port| port.parse().ok()))
            }
            None => match text.rsplit_once(':') {
                // More than one `:` is an address of IPv6 without a port.
                Some((host, port)) if !host.contains(':') => (host.to_owned(), port.parse().ok()),
                _ => (text.clone(), None),
            },
        };
        self.places.insert(format!("{host}:{}", port.unwrap_or(usual_port)));
        self.hosts.insert(host);
        self
    }

    /// A file or directory of this machine, or a socket.
    #[must_use]
    pub fn and_path(mut self, path: &std::path::Path) -> Self {
        self.places.insert(format!("file:{}", path.display()));
        self
    }

    /// Whether both mean one server.
    pub fn meets(&self, other: &Self) -> bool {
        self.places.intersection(&other.places).next().is_some()
    }

    /// A host that both name, perhaps with other ports: one machine, maybe one server spoken to in two ways.
    pub fn common_host<'a>(&'a self, other: &'a Self) -> Option<&'a str> {
        self.hosts.intersection(&other.hosts).next().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_server_has_many_spellings() {
        let at = |url: &str| Identity::default().and_url(url, "localhost");
        for same in ["http://ns1", "http://NS1:80", "http://ns1:80/", "http://ns1."] {
            assert!(at("http://ns1").meets(&at(same)), "{same}");
        }
        for other in ["https://ns1", "http://ns1:81", "http://ns2"] {
            assert!(!at("http://ns1").meets(&at(other)), "{other}");
        }
        let host = |text: &str| Identity::default().and_host(text, 53);
        for (one, same) in [("ns1", "NS1:53"), ("[fd00::1]:53", "fd00::1"), ("ns1.", "ns1")] {
            assert!(host(one).meets(&host(same)), "{one} {same}");
        }
        assert!(!host("ns1:5353").meets(&host("ns1")));
        assert_eq!(at("http://ns1:8081").common_host(&host("ns1")), Some("ns1"));
    }
}
