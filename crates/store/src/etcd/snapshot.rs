//! A snapshot: all keys at one revision of etcd.

use std::{ops::Bound, sync::Arc};

use async_trait::async_trait;
use netstead_wire::etcd::{
    KV_RANGE,
    messages::{RangeRequest, RangeResponse, SortOrder},
};
use tonic::Status;

use super::{EtcdShared, entry};
use crate::{Entry, Key, Snapshot, StoreError, key_range};

/// Keys of one answer; with the largest values it still fits into a message.
const PAGE: usize = 256;

#[derive(Debug)]
pub(super) struct EtcdSnapshot {
    pub(super) shared: Arc<EtcdShared>,
    pub(super) revision: i64,
    /// Answers come from one member's own copy.
    pub(super) serializable: bool,
}

impl EtcdSnapshot {
    async fn ask(&self, mut question: RangeRequest) -> Result<RangeResponse, StoreError> {
        question.revision = self.revision;
        question.serializable = self.serializable;
        let answer = self.shared.client.read(KV_RANGE, question).await;
        answer.map_err(|status| {
            if compacted(&status) {
                let reason = "etcd compacted what was being read; begin anew".into();
                return StoreError::Unavailable { reason };
            }
            self.shared.unavailable(&status)
        })
    }

    async fn pages(&self, span: Option<key_range::KeyRange>, limit: usize) -> Result<Vec<Entry>, StoreError> {
        let Some((start, end)) = span else { return Ok(Vec::new()) };
        let (mut start, end) = (self.start(start), self.end(end));
        let mut found: Vec<Entry> = Vec::new();
        while found.len() < limit && start < end {
            // Keys come in their order unless asked otherwise; asked for that very order, etcd reads all there is first.
            let answer = self.ask(page(start, end.clone(), limit - found.len())).await?;
            let Some(last) = answer.kvs.last() else { break };
            start = next_key(last.key.clone());
            found.extend(answer.kvs.into_iter().filter_map(|kv| entry(&self.shared.prefix, kv)));
            if !answer.more {
                break;
            }
        }
        Ok(found)
    }

    /// The last keys first. For that etcd reads everything in the range and sorts it, however little is wanted: so the end of
    /// the range is asked for, and more of it until there is enough.
    async fn pages_back(
        &self,
        span: Option<key_range::KeyRange>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        let Some((start, end)) = span else { return Ok(Vec::new()) };
        let (start, mut end) = (self.start(start), self.end(end));
        let mut found: Vec<Entry> = Vec::new();
        for low in lows(&start, &end) {
            while found.len() < limit && low < end {
                let order = SortOrder::Descend.into();
                let question = page(low.clone(), end.clone(), limit - found.len());
                let answer = self.ask(RangeRequest { sort_order: order, ..question }).await?;
                match answer.kvs.last() {
                    Some(last) if answer.more => end.clone_from(&last.key),
                    _ => end.clone_from(&low),
                }
                found.extend(answer.kvs.into_iter().filter_map(|kv| entry(&self.shared.prefix, kv)));
            }
        }
        Ok(found)
    }

    fn start(&self, bound: Bound<Key>) -> Key {
        match bound {
            Bound::Included(key) => self.shared.full(&key),
            Bound::Excluded(key) => next_key(self.shared.full(&key)),
            Bound::Unbounded => self.shared.prefix.clone(),
        }
    }

    fn end(&self, bound: Bound<Key>) -> Key {
        match bound {
            Bound::Excluded(key) => self.shared.full(&key),
            Bound::Included(key) => next_key(self.shared.full(&key)),
            Bound::Unbounded => self.shared.end.clone(),
        }
    }
}

#[async_trait]
impl Snapshot for EtcdSnapshot {
    async fn get(&self, key: &[u8]) -> Result<Option<Entry>, StoreError> {
        let answer = self.ask(RangeRequest { key: self.shared.full(key), ..RangeRequest::default() }).await?;
        Ok(answer.kvs.into_iter().next().and_then(|kv| entry(&self.shared.prefix, kv)))
    }

    async fn range(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        self.pages(key_range::forward(prefix, after), limit).await
    }

    async fn range_back(
        &self,
        prefix: &[u8],
        before: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        self.pages_back(key_range::backward(prefix, before), limit).await
    }
}

/// The first key after `key`.
fn next_key(mut key: Key) -> Key {
    key.push(0);
    key
}

pub(super) fn compacted(status: &Status) -> bool {
    status.code() == tonic::Code::OutOfRange && status.message().contains("compacted")
}

fn page(key: Key, range_end: Key, limit: usize) -> RangeRequest {
    let limit = i64::try_from(limit.min(PAGE)).unwrap_or(i64::MAX);
    RangeRequest { key, range_end, limit, ..RangeRequest::default() }
}

/// Keys before `end`, each further away from it than the last; the last one is `start`.
///
/// Where keys are numbers written with leading zeros, as those of events are, the first is some tens away, then it grows
/// tenfold or so. For other keys they are as good as any.
fn lows(start: &[u8], end: &[u8]) -> Vec<Key> {
    const LESS: [(usize, u8); 7] = [(2, 1), (2, 4), (3, 1), (3, 4), (4, 1), (5, 1), (6, 1)];
    let less = LESS.iter().filter_map(|(cut, by)| {
        let (kept, _) = end.split_at_checked(end.len().checked_sub(cut - 1)?)?;
        let (byte, front) = kept.split_last()?;
        let mut low = front.to_vec();
        low.push(byte.checked_sub(*by)?);
        (low.as_slice() > start).then_some(low)
    });
    less.chain([start.to_vec()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_range_is_looked_at_first() {
        let text = |key: &Key| String::from_utf8_lossy(key).into_owned();
        let found: Vec<String> = lows(b"/n/event/", b"/n/event/0000000000012345").iter().map(text).collect();
        assert_eq!(
            found,
            [
                "/n/event/000000000001233",
                "/n/event/000000000001230",
                "/n/event/00000000000122",
                "/n/event/0000000000012/",
                "/n/event/0000000000011",
                "/n/event/000000000000",
                "/n/event/0000000000/",
                "/n/event/"
            ]
        );
        assert_eq!(lows(b"/n/", b"/n0"), [b"/n/"]);
        assert_eq!(lows(b"", b"\0"), [b""]);
    }

    #[test]
    fn each_is_before_the_last() {
        for end in ["/n/event/0000000000000000", "/n/event/00", "/n/event/x/y/z", "/n/event/~~~~~~~~"] {
            let found = lows(b"/n/event/", end.as_bytes());
            assert!(found.is_sorted_by(|near, far| near > far), "{found:?}");
            let within = |low: &Key| low.as_slice() < end.as_bytes() && low.starts_with(b"/n/event/");
            assert!(found.iter().all(within), "{found:?}");
        }
    }
}
