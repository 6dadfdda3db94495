//! [`ClusterCache`]: the leader, the members and the format, as this node knows them.

use std::collections::BTreeMap;

use netstead_store::{Snapshot, StoreError, Write};
use tracing::error;

use super::{
    ClusterError, FORMAT_KEY, LEADER_KEY, Leader, MEMBERS, Member,
    member_records::{decode, format_of, parse_format},
};

/// The prefix of the registry. Only the format is elsewhere.
pub(super) const PREFIX: &[u8] = b"cluster/";
const PAGE: usize = 1000;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ClusterCache {
    pub(crate) leader: Option<Leader>,
    pub(crate) members: BTreeMap<String, Member>,
    /// Raised by the leader, never lowered.
    pub(crate) format: Option<u32>,
}

impl ClusterCache {
    /// Reads everything from a snapshot.
    pub(super) async fn read(snapshot: &dyn Snapshot) -> Result<Self, ClusterError> {
        let mut known = Self::default();
        let mut after: Option<Vec<u8>> = None;
        loop {
            let page = snapshot.range(PREFIX, after.as_deref(), PAGE).await?;
            for entry in &page {
                known.put(&entry.key, &entry.value);
            }
            match page.last() {
                Some(last) if page.len() == PAGE => after = Some(last.key.clone()),
                _ => break,
            }
        }
        known.format = format(snapshot).await?.as_ref().map(format_of).transpose()?;
        Ok(known)
    }

    pub(super) fn apply(&mut self, writes: &[Write]) {
        for write in writes {
            match write {
                Write::Put(key, value) => self.put(key, value),
                Write::Delete(key) if key == LEADER_KEY.as_bytes() => self.leader = None,
                Write::Delete(key) => {
                    if let Some(id) = id_of(key) {
                        self.members.remove(id);
                    }
                }
            }
        }
    }

    /// Another node leads, as the nodes themselves say. Whether that is news.
    pub(super) fn led_elsewhere(&mut self, node: &str, epoch: u64) -> bool {
        let known = self.leader.as_ref().map(|leader| leader.epoch);
        let Some(member) = self.members.get(node).filter(|_| known < Some(epoch)) else { return false };
        self.leader = Some(Leader { epoch, node: node.to_owned(), url: member.url.clone() });
        true
    }

    /// Takes over what was read, save a leader that is older than the one that is known.
    pub(super) fn reload(&mut self, read: Self) {
        let epoch = |leader: &Option<Leader>| leader.as_ref().map(|leader| leader.epoch);
        let newer = self.leader.take().filter(|known| Some(known.epoch) > epoch(&read.leader));
        *self = read;
        self.leader = newer.or(self.leader.take());
    }

    /// Returns whether the format became higher. A read may arrive after a newer value of the watch.
    pub(super) fn raise_format(&mut self, stored: Option<u32>) -> bool {
        let higher = stored > self.format;
        if higher {
            self.format = stored;
        }
        higher
    }

    fn put(&mut self, key: &[u8], value: &[u8]) {
        if key == FORMAT_KEY.as_bytes() {
            self.raise_format(readable(parse_format(key, value)));
        } else if key == LEADER_KEY.as_bytes() {
            let leader: Option<Leader> = readable(decode(key, value));
            // What this node wrote itself may be known before older news of the watch comes.
            let newer =
                |leader: &Leader| self.leader.as_ref().is_none_or(|known| known.epoch <= leader.epoch);
            if let Some(leader) = leader.filter(newer) {
                self.leader = Some(leader);
            }
        } else if let Some(id) = id_of(key)
            && let Some(member) = readable(decode::<Member>(key, value))
        {
            self.members.insert(id.to_owned(), Member { id: id.to_owned(), ..member });
        }
    }
}

async fn format(snapshot: &dyn Snapshot) -> Result<Option<netstead_store::Entry>, StoreError> {
    snapshot.get(FORMAT_KEY.as_bytes()).await
}

fn readable<T>(decoded: Result<T, ClusterError>) -> Option<T> {
    decoded.inspect_err(|error| error!(%error, "What a node reports about itself cannot be read.")).ok()
}

fn id_of(key: &[u8]) -> Option<&str> {
    std::str::from_utf8(key.strip_prefix(MEMBERS.as_bytes())?).ok()
}
