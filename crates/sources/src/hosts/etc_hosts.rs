//! The style of `/etc/hosts`: an address, a name, further names.

use std::collections::BTreeMap;

use netstead_model::{Address, Content as Values, Kind, Name, Wish};

use super::{Content, Host};
use crate::settled_file::HALF_WRITTEN;

/// Reads what can be read. A line that cannot be understood makes the whole doubtful, never shorter without saying so.
/// Unless the text is `whole`, a last line without an end is left out: half a name is another name.
pub(super) fn read(text: &str, whole: bool) -> Content {
    let mut content = Content::default();
    let mut by_name: BTreeMap<Name, (Vec<Address>, usize, bool)> = BTreeMap::new();
    let text = match text.rfind('\n') {
        _ if whole => text,
        end => {
            content.doubts.push(HALF_WRITTEN.into());
            end.and_then(|end| text.get(..=end)).unwrap_or_default()
        }
    };
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { continue };
        let address = match first.parse::<Address>() {
            Ok(address) if address.kind() != Kind::Mac => address,
            Ok(_) => {
                content.doubts.push(format!("line {}: `{first}` is a MAC address", number + 1));
                continue;
            }
            Err(error) => {
                content.doubts.push(format!("line {}: {error}", number + 1));
                continue;
            }
        };
        if address.to_ip().is_some_and(|ip| ip.is_loopback() || ip.is_multicast() || ip.is_unspecified()) {
            continue;
        }
        let mut any = false;
        for (place, word) in words.enumerate() {
            any = true;
            match Name::host(word) {
                Ok(name) => {
                    let entry = by_name.entry(name).or_insert((Vec::new(), number + 1, false));
                    entry.2 |= place == 0;
                    if !entry.0.contains(&address) {
                        entry.0.push(address);
                    }
                }
                Err(error) => content.doubts.push(format!("line {}: {error}", number + 1)),
            }
        }
        if !any {
            content.doubts.push(format!("line {}: {address} has no name", number + 1));
        }
    }
    content.hosts = by_name
        .into_iter()
        .map(|(name, (addresses, line, main))| Host {
            name: name.to_string(),
            wishes: vec![Wish {
                name,
                content: Values::Addresses(addresses),
                ttl: None,
                providers: Vec::new(),
                reason: format!("line {line}"),
                adopt: false,
                share: false,
                main,
                borrowed: false,
                moves: false,
                proxied: None,
                entrypoints: Vec::new(),
            }],
        })
        .collect();
    content
}
