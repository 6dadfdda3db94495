//! Damage of the store, in words: which part it is, and how to go on.

use netstead_store::{Damage, Entry, Gap, Snapshot, Store, StoreError, each_readable};

use crate::{check::KEYS, record::EVENT};

/// Prefixes of keys that record the past and decide nothing: if a piece is missing, everything else is still valid.
const HISTORY: [&str; 3] = [EVENT, "engine/plan/", "engine/history/"];

/// Whether what has this key is history, which a backup may leave out.
pub fn is_history(key: &str) -> bool {
    HISTORY.iter().any(|prefix| key.starts_with(prefix))
}

/// Name of the damaged part, for people.
pub fn part_name(damage: &Damage) -> &'static str {
    let names = [
        (EVENT, "events"),
        ("ledger/", "pools and claims"),
        ("access/", "tokens"),
        ("cluster/", "the list of nodes"),
        ("dns/", "zones of the built-in nameserver"),
        ("engine/plan/", "plans that were applied"),
        ("engine/history/", "the history of names"),
        ("engine/", "the state of names"),
    ];
    let found = names.iter().find(|(prefix, _)| damage.key.starts_with(prefix));
    found.map_or("stored data", |(_, name)| name)
}

/// One sentence without its full stop: what is damaged, and what is wrong there.
pub fn describe(damage: &Damage) -> String {
    format!("{} cannot be read in full: {}", part_name(damage), damage.reason)
}

/// As [`describe`], with the keys between which it is.
pub(crate) fn describe_gap(gap: &Gap) -> String {
    let name = |key: &Option<Vec<u8>>, or: &str| match key {
        Some(key) => format!("`{}`", String::from_utf8_lossy(key)),
        None => or.to_owned(),
    };
    let (after, before) = (name(&gap.after, "the first"), name(&gap.before, "the last"));
    format!("{} between {after} and {before} ({})", part_name(&gap.damage()), gap.reason)
}

/// How to go on from `damage` of `store`: the commands that help.
pub fn advice(store: &dyn Store, damage: &[Damage]) -> &'static str {
    if store.membership().is_some() {
        return "other nodes have the same data: stop this one, move its directory away, and start it again to join as a new \
                node";
    }
    if store.damage().is_none() {
        return "`netstead store check` lists what is damaged; restore a backup with `netstead store restore`";
    }
    if damage.iter().all(|damage| is_history(&damage.key)) {
        return "stop the server, write all that can be read with `netstead store backup --local --leave-out-damaged FILE`, \
                and restore FILE into an empty directory with `netstead store restore`";
    }
    "stop the server and restore the newest whole backup into an empty directory with `netstead store restore`; \
     `backups` in the data directory has one of each day"
}

/// Reads every documented key that can be read, in order, and returns where there is damage: at most one gap for each
/// form of key.
pub(crate) async fn each_part<E: From<StoreError>>(
    snapshot: &dyn Snapshot,
    mut visit: impl FnMut(&Entry) -> Result<(), E>,
) -> Result<Vec<Gap>, E> {
    let mut gaps = Vec::new();
    for prefix in prefixes() {
        gaps.extend(each_readable(snapshot, prefix.as_bytes(), &mut visit).await?);
    }
    Ok(gaps)
}

/// Looks at every documented key for damage.
pub async fn find(snapshot: &dyn Snapshot) -> Result<Vec<Damage>, StoreError> {
    let gaps = each_part(snapshot, |_| Ok::<(), StoreError>(())).await?;
    Ok(gaps.iter().map(Gap::damage).collect())
}

/// Prefixes of the documented keys, in order; none is the beginning of another.
pub(crate) fn prefixes() -> Vec<&'static str> {
    let mut all: Vec<&str> =
        KEYS.iter().map(|form| form.split_once('<').map_or(*form, |(begin, _)| begin)).collect();
    all.sort_unstable();
    all.dedup_by(|later, earlier| later.starts_with(*earlier));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_documented_key_is_in_exactly_one_part() {
        for form in KEYS {
            let parts = prefixes().into_iter().filter(|prefix| form.starts_with(prefix)).count();
            assert_eq!(parts, 1, "{form}");
        }
    }

    #[test]
    fn a_damaged_part_has_a_name() {
        let described = |key: &str| describe(&Damage::new(key.as_bytes(), "a block is bad"));
        assert_eq!(described("ledger/event/1"), "events cannot be read in full: a block is bad");
        assert_eq!(described("ledger/head"), "pools and claims cannot be read in full: a block is bad");
        assert_eq!(described(""), "stored data cannot be read in full: a block is bad");
    }
}
