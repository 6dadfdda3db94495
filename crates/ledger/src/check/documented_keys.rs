//! The keys that `docs/reference/store.md` lists.

use crate::record;

/// Every key there may be, as `docs/reference/store.md` writes it: a test compares the two. `<…>` stands for one part
/// of a key; at its end, for all that follows.
pub const KEYS: [&str; 45] = [
    "meta/epoch",
    "meta/format",
    "meta/restoring",
    "meta/sealed",
    "ledger/head",
    "ledger/pool/<name>",
    "ledger/addr/<vrf>/<space>/<number>[-<length>]",
    "ledger/reserved/<pool>/<number>",
    "ledger/seen/<vrf>/<space>/<number>/<source>",
    "ledger/wait/<sequence>",
    "ledger/event/<sequence>",
    "access/token/<id>",
    "access/session/<id>",
    "access/link/<id>",
    "cluster/leader",
    "cluster/member/<node>",
    "cluster/roll",
    "dns/zone/<zone>",
    "dns/set/<zone>/<name>/<TYPE>",
    "usage/recent/<pool>",
    "usage/days/<pool>",
    "usage/changes",
    "engine/owner",
    "engine/time",
    "engine/head/<writer>",
    "engine/source/<name>",
    "engine/workload/<source>/<id>",
    "engine/provider/<name>",
    "engine/owned/<provider>/<name>",
    "engine/guard/<provider>",
    "engine/plan/<provider>/<generation>/<part>",
    "engine/history/<number>",
    "engine/lately/<provider>/<name>",
    "engine/doubt/<provider>/<zone>",
    "engine/ipam/provider/<name>",
    "engine/ipam/guard/<provider>",
    "engine/ipam/plan/<provider>/<generation>/<part>",
    "engine/ipam/owned/<provider>/<object>",
    "engine/pause/<scope>",
    "engine/ignored/<provider>/<name>",
    "engine/told",
    "engine/target/<provider>",
    "engine/target/source/<source>/<place>",
    "engine/manual/<name>/<TYPE>",
    "engine/pushed/<source>/<name>/<TYPE>",
];

/// Whether the page has this key, and neither the ledger nor the store itself writes it.
pub(super) fn is_of_another_room(key: &str) -> bool {
    let others = KEYS.iter().filter(|form| !form.starts_with(record::PREFIX) && !form.starts_with("meta/"));
    others.into_iter().any(|form| fits(key, form))
}

fn fits(key: &str, form: &str) -> bool {
    let (part, rest) = form.split_once('/').map_or((form, None), |(part, rest)| (part, Some(rest)));
    let free = part.starts_with('<');
    match rest {
        None if free => !key.is_empty(),
        None => key == part,
        Some(rest) => key
            .split_once('/')
            .is_some_and(|(first, key)| (first == part || free && !first.is_empty()) && fits(key, rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_all_parts_of_its_form() {
        let known = ["cluster/roll", "dns/set/example.com/www.example.com/A", "engine/pause/provider/lan"];
        let unknown = [
            "cluster/roll/1",
            "cluster/rol",
            "cluster/",
            "cluster/member/",
            "dns/set/example.com/A",
            "dns/set//www.example.com/A",
            "engine",
            "engine/nonsense",
            "ledger/head",
            "meta/epoch",
        ];
        let found: Vec<&str> =
            known.into_iter().chain(unknown).filter(|key| is_of_another_room(key)).collect();
        assert_eq!(found, known);
    }
}
