//! `urls`: several servers in one table. Each is a provider of its own, and all of them together are a group.

use netstead_model::Ident;
use netstead_settings::{Entry, Node, Table, Value};

/// The table with one of its servers: `url` instead of `urls`.
pub(super) fn table_of(table: &Table, url: &str) -> Table {
    let mut one = table.clone();
    if let Some(Entry { key, node }) = one.entries.remove("urls") {
        let node = Node { place: node.place, value: Value::Text(url.to_owned()) };
        one.entries.insert("url".to_owned(), Entry { key, node });
    }
    one
}

/// The name of one server of a group: that of the group, and the host. It stays when the order of `urls` changes.
pub(super) fn member_name(group: &str, url: &str) -> Option<Ident> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    let plain = |c: char| if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '-' };
    let host: String = host.chars().map(plain).collect();
    let host = host.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
    format!("{group}-{host}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_by_its_host() {
        let named = |url| member_name("pi", url).unwrap().to_string();
        assert_eq!(named("http://pi1.home.example.com"), "pi-pi1-home-example-com");
        assert_eq!(named("https://10.0.0.2:8443/admin"), "pi-10-0-0-2-8443");
        assert_eq!(named("http://[2001:DB8::1]/"), "pi-2001-db8-1");
    }
}
