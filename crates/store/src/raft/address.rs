//! Addresses of nodes, as people write them.

use std::net::Ipv6Addr;

use super::PORT;

/// `host:port` of the node that is meant by an address, or by the URL of its API; `None` if it is neither.
///
/// A port may be left out where it is the usual one. Of a URL with `http` or `https` only the host counts: its port is that
/// of the API, at which no node listens to another.
pub fn node_address(text: &str) -> Option<String> {
    let text = text.trim();
    let (scheme, rest) = text.split_once("://").unwrap_or(("raft", text));
    let (rest, of_the_api) = match scheme {
        "raft" => (rest.trim_end_matches('/'), false),
        "http" | "https" => (rest.split(['/', '?', '#']).next().unwrap_or_default(), true),
        _ => return None,
    };
    let (host, port) = split(rest)?;
    let port = if of_the_api { PORT } else { port.unwrap_or(PORT) };
    Some(format!("{host}:{port}"))
}

/// Whether this is the URL of an API, so that the port which is asked may surprise.
pub(super) fn is_url_of_an_api(text: &str) -> bool {
    let text = text.trim();
    text.starts_with("http://") || text.starts_with("https://")
}

/// The host, as it stands before a port, and the port if there is one.
fn split(text: &str) -> Option<(String, Option<u16>)> {
    if let Ok(bare) = text.parse::<Ipv6Addr>() {
        return Some((format!("[{bare}]"), None));
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !text.ends_with(']') => {
            (host, Some(port.parse::<u16>().ok().filter(|port| *port > 0)?))
        }
        _ => (text, None),
    };
    let inside = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match inside {
        Some(inside) => inside.split('%').next().is_some_and(|address| address.parse::<Ipv6Addr>().is_ok()),
        None => !host.is_empty() && host.chars().all(|c| c.is_alphanumeric() || "-._".contains(c)),
    };
    is_host.then(|| (host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_added_where_there_is_none() {
        for (given, wanted) in [
            ("10.0.0.1", "10.0.0.1:5302"),
            ("10.0.0.1:7000", "10.0.0.1:7000"),
            ("node2.example.net", "node2.example.net:5302"),
            ("raft://node2", "node2:5302"),
            ("raft://node2:7000/", "node2:7000"),
            ("[::1]:7000", "[::1]:7000"),
            ("[::1]", "[::1]:5302"),
            ("[fe80::1%2]:7000", "[fe80::1%2]:7000"),
            ("fd00::1", "[fd00::1]:5302"),
            (" node2\n", "node2:5302"),
        ] {
            assert_eq!(node_address(given).as_deref(), Some(wanted), "{given}");
            assert!(!is_url_of_an_api(given), "{given}");
        }
    }

    /// The port of the API would never answer as a node does.
    #[test]
    fn of_a_url_of_the_api_only_the_host_counts() {
        for (given, wanted) in [
            ("http://10.0.0.1:5301", "10.0.0.1:5302"),
            ("http://10.0.0.1:5301/", "10.0.0.1:5302"),
            ("https://ns1.example.net", "ns1.example.net:5302"),
            ("https://ns1.example.net:8443/api/v1?x=1", "ns1.example.net:5302"),
            ("http://[fd00::1]:5301", "[fd00::1]:5302"),
        ] {
            assert_eq!(node_address(given).as_deref(), Some(wanted), "{given}");
            assert!(is_url_of_an_api(given), "{given}");
        }
    }

    #[test]
    fn what_is_no_address_is_not_made_into_one() {
        for given in [
            "",
            ":5302",
            "http://",
            "ftp://10.0.0.1",
            "10.0.0.1:",
            "10.0.0.1:0",
            "10.0.0.1:70000",
            "10.0.0.1:x",
            "10.0.0.1,10.0.0.2",
            "10.0.0.1 10.0.0.2",
            "http://user:word@10.0.0.1:5301",
            "raft://node2/path",
            "[::1",
            "[node2]:5302",
        ] {
            assert_eq!(node_address(given), None, "{given}");
        }
    }
}
