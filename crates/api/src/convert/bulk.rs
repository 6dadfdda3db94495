//! Bulk requests: many in one call, in groups that each become one commit.

use std::sync::Arc;

use netstead_client::types::{BulkEntry, BulkInput};
use netstead_ledger::{Command, MOST_ENTRIES};
use netstead_model::{Key, Span};

use super::{
    claim::{requests, target},
    maybe, parse,
};
use crate::{http::body::Many, problem::Failure};

impl Many for BulkInput {
    const LIST: &'static str = "entries";
    /// More of them are sent in several calls.
    const MOST: usize = 10_000;
}

/// One entry as commands: a claim from `each` of several pools is several, never split over two commits.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) commands: Vec<Command>,
    pub(crate) owner: Option<Arc<str>>,
}

/// Entries that become one commit.
pub(crate) type Group = Vec<Entry>;

pub(crate) fn entries(input: BulkInput) -> Result<Vec<Entry>, Failure> {
    if input.entries.is_empty() {
        return Err(Failure::impossible("entries", "there is none"));
    }
    let numbered = input.entries.into_iter().enumerate();
    let entries: Vec<Entry> = numbered
        .map(|(place, input)| entry(input).map_err(|failure| failure.within(&format!("entries[{place}]"))))
        .collect::<Result<_, _>>()?;
    // A commit has one author, so a call has one owner.
    let claims = || {
        entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| matches!(entry.commands.first(), Some(Command::Claim(_))))
    };
    if let Some((_, first)) = claims().next()
        && let Some((place, _)) = claims().find(|(_, other)| other.owner != first.owner)
    {
        let told = "all claims of one call must be for the same owner; send the others in another call";
        return Err(Failure::impossible(format!("entries[{place}].claim.claim.owner"), told));
    }
    Ok(entries)
}

fn entry(input: BulkEntry) -> Result<Entry, Failure> {
    match input {
        BulkEntry::Claim(from) => {
            let asked = requests(&from).map_err(|failure| failure.within("claim"))?;
            if asked.iter().any(|asked| asked.request.wait.is_some()) {
                return Err(Failure::impossible(
                    "claim.claim.wait",
                    "only a single claim can wait, not one of several",
                ));
            }
            let owner = asked.first().and_then(|asked| asked.owner.clone());
            Ok(Entry {
                commands: asked.into_iter().map(|asked| Command::Claim(Box::new(asked.request))).collect(),
                owner,
            })
        }
        BulkEntry::Release(input) => {
            let target = target(&input.pool, &input.key, input.id.as_ref())
                .map_err(|failure| failure.within("release"))?;
            Ok(single(Command::Release(target)))
        }
        BulkEntry::Renew(input) => {
            let within = |failure: Failure| failure.within("renew");
            let named = &input.target;
            let target = target(&named.pool, &named.key, named.id.as_ref())
                .map_err(|failure| failure.within("renew.target"))?;
            let ttl: Option<Span> = maybe("ttl", input.ttl.as_ref()).map_err(within)?;
            Ok(single(Command::Renew { target, ttl }))
        }
        BulkEntry::Move(input) => {
            let within = |failure: Failure| failure.within("move");
            let named = &input.target;
            let target = target(&named.pool, &named.key, named.id.as_ref())
                .map_err(|failure| failure.within("move.target"))?;
            let key: Key = parse("key", &input.key).map_err(within)?;
            let owner: Option<Key> = maybe("owner", input.owner.as_ref()).map_err(within)?;
            Ok(single(Command::Move { target, key, owner: owner.map(|owner| owner.as_str().into()) }))
        }
    }
}

fn single(command: Command) -> Entry {
    Entry { commands: vec![command], owner: None }
}

/// As few groups as the order allows, each of at most 64 commands.
pub(crate) fn groups(entries: Vec<Entry>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut room = 0;
    for entry in entries {
        let size = entry.commands.len();
        if size > room || groups.is_empty() {
            groups.push(Vec::new());
            room = MOST_ENTRIES;
        }
        if let Some(group) = groups.last_mut() {
            group.push(entry);
        }
        room -= size.min(room);
    }
    groups
}

#[cfg(test)]
mod tests {
    use netstead_client::types::{ClaimFrom, TargetInput};

    use super::*;

    fn claim(each: usize) -> BulkEntry {
        let pools = (0..each).map(|number| format!("p{number}")).collect();
        BulkEntry::Claim(ClaimFrom { key: "k".into(), each: pools, ..ClaimFrom::default() })
    }

    fn sizes(entries: Vec<BulkEntry>) -> Vec<usize> {
        let groups = groups(super::entries(BulkInput { entries }).unwrap());
        groups.iter().map(|group| group.iter().map(|entry| entry.commands.len()).sum()).collect()
    }

    #[test]
    fn groups_are_as_full_as_the_order_allows_and_never_split_an_entry() {
        assert_eq!(sizes(vec![claim(1); 64]), [64]);
        assert_eq!(sizes(vec![claim(1); 65]), [64, 1]);
        assert_eq!(sizes(vec![claim(3); 22]), [63, 3]);
        assert_eq!(sizes(vec![claim(40), claim(40), claim(24), claim(1)]), [40, 64, 1]);
    }

    #[test]
    fn errors_name_the_entry() {
        let told = |entries| super::entries(BulkInput { entries }).unwrap_err().problem(None).field.unwrap();
        assert_eq!(told(vec![]), "entries");
        assert_eq!(told(vec![claim(1), claim(65)]), "entries[1].claim.each");
        assert_eq!(told(vec![claim(0)]), "entries[0].claim.any");
        let target = TargetInput { pool: "lan".into(), key: String::new(), id: None };
        assert_eq!(told(vec![claim(1), BulkEntry::Release(target)]), "entries[1].release.key");
    }
}
