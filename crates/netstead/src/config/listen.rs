//! Where a server listens: an address or a name, and a port.

use std::{fmt, net::Ipv6Addr, str::FromStr};

use serde::{Serialize, Serializer};

/// `127.0.0.1:5301`, `[::]:5301` or `ipam.example.net:5301`; port 0 takes a free one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listen(String);

impl Default for Listen {
    fn default() -> Self {
        Self("127.0.0.1:5301".into())
    }
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            |reason: &str| format!("`{text}` cannot be listened on: {reason}, as in `127.0.0.1:5301`");
        let (host, port) = text.rsplit_once(':').ok_or_else(|| wrong("write an address and a port"))?;
        if port.parse::<u16>().is_err() || port.starts_with('+') {
            return Err(wrong("the port is a number up to 65535"));
        }
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let plain = |host: &str| {
            !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_".contains(&b))
        };
        match bracketed {
            Some(host) if host.parse::<Ipv6Addr>().is_ok() => Ok(Self(text.to_owned())),
            Some(_) => Err(wrong("the text in brackets is no IPv6 address")),
            None if host.contains(':') => Err(wrong("write an IPv6 address in brackets: `[::1]:5301`")),
            None if plain(host) => Ok(Self(text.to_owned())),
            None => Err(wrong("write an address and a port")),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Listen {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_has_a_host_and_a_port() {
        for text in ["127.0.0.1:5301", "[::]:0", "ipam.example.net:5301", "localhost:1"] {
            assert_eq!(text.parse::<Listen>().map(|listen| listen.to_string()).as_deref(), Ok(text));
        }
        for text in
            ["", "5301", ":5301", "127.0.0.1", "::1:5301", "[x]:1", "h:99999", "h:-1", "a b:1", "http://h:1"]
        {
            assert!(text.parse::<Listen>().is_err(), "{text}");
        }
    }
}
