//! Hosts with a port, as people write them.

use std::fmt;

/// Splits `HOST`, `HOST:PORT`, `[ADDRESS]` or `[ADDRESS]:PORT`, perhaps with a slash at the end.
pub fn split_host_port(text: &str) -> Option<(String, Option<u16>)> {
    let text = text.strip_suffix('/').unwrap_or(text);
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']')?;
            (host, after.strip_prefix(':').or_else(|| after.is_empty().then_some(""))?)
        }
        None => text.split_once(':').unwrap_or((text, "")),
    };
    let odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '/' | '@' | '?' | '#');
    if host.is_empty() || host.contains(odd) {
        return None;
    }
    let port = if port.is_empty() { None } else { Some(port.parse().ok().filter(|port| *port != 0)?) };
    Some((host.to_owned(), port))
}

/// Writes what [`split_host_port`] reads.
pub fn write_host_port(f: &mut fmt::Formatter<'_>, host: &str, port: Option<u16>) -> fmt::Result {
    if host.contains(':') { write!(f, "[{host}]") } else { f.write_str(host) }?;
    port.map_or(Ok(()), |port| write!(f, ":{port}"))
}
