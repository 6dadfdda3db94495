//! Building the index out of what the store holds, around what cannot be read.

use std::sync::Arc;

use netstead_store::{Damage, Snapshot, StoreError, each_readable};

use super::{Building, Built, EventIndex, Inner};
use crate::{
    events::unread::UnreadEvents,
    record::{self, EVENT, EventGroup, event_seq},
};

impl EventIndex {
    /// Reads the events of `snapshot` up to number `last`, none of which is added beside. What cannot be read is left out,
    /// remembered here and returned.
    pub async fn build(
        &self,
        Building(number): Building,
        snapshot: &dyn Snapshot,
        last: u64,
    ) -> Result<Option<Damage>, StoreError> {
        let (mut stored, mut unread) = (Inner::default(), UnreadEvents::default());
        let (mut known, mut open, mut malformed) = (0, None, None);
        let gap = each_readable(snapshot, EVENT.as_bytes(), |entry| {
            let first = event_seq(&entry.key);
            if let Some(begin) = open.take() {
                unread.add(begin, first);
            }
            match record::decode::<EventGroup>(&entry.key, &entry.value) {
                Ok(group) => {
                    group.events.iter().filter(|event| event.seq <= last).for_each(|event| stored.add(event));
                    known = group.events.last().map_or(known, |event| event.seq);
                }
                Err(error) => {
                    open = Some(first.unwrap_or(known));
                    malformed.get_or_insert(Damage::new(&entry.key, error.to_string()));
                }
            }
            Ok::<(), StoreError>(())
        });
        let gap = gap.await?;
        if let Some(begin) = open {
            unread.add(begin, None);
        }
        if let Some(gap) = &gap {
            let begin = first_unread(snapshot, gap.after.as_deref()).await?;
            unread.add(begin, gap.before.as_deref().and_then(event_seq));
        }
        let damage = gap.map(|gap| gap.damage()).or(malformed);
        unread.reason = damage.as_ref().map(|damage| damage.reason.clone()).unwrap_or_default();
        let mut inner = self.lock();
        if inner.begun == number {
            inner.merge_stored(stored);
            self.built.send_replace(Built::But(Arc::new(unread)));
        }
        Ok(damage)
    }
}

/// The number after the last event of the group under `after`.
async fn first_unread(snapshot: &dyn Snapshot, after: Option<&[u8]>) -> Result<u64, StoreError> {
    let Some(key) = after else { return Ok(0) };
    let group = snapshot.get(key).await?;
    let group = group.and_then(|entry| record::decode::<EventGroup>(&entry.key, &entry.value).ok());
    let last = group.and_then(|group| group.events.last().map(|event| event.seq)).or(event_seq(key));
    Ok(last.map_or(0, |last| last.saturating_add(1)))
}
