//! All keys at one revision of etcd.

use std::{ops::Bound, sync::Arc};

use async_trait::async_trait;
use tonic::Status;

use super::{
    KV_RANGE, Shared, entry,
    messages::{RangeRequest, RangeResponse, SortOrder},
};
use crate::{Entry, Key, Snapshot, StoreError, span};

/// Keys of one answer; with the largest values it still fits into a message.
const PAGE: usize = 256;

#[derive(Debug)]
pub(super) struct EtcdSnapshot {
    pub(super) shared: Arc<Shared>,
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

    async fn pages(
        &self,
        span: Option<span::Span>,
        order: SortOrder,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        let Some((start, end)) = span else { return Ok(Vec::new()) };
        let mut start = self.start(start);
        let mut end = self.end(end);
        let mut found: Vec<Entry> = Vec::new();
        while found.len() < limit && start < end {
            let wanted = PAGE.min(limit - found.len());
            let answer = self
                .ask(RangeRequest {
                    key: start.clone(),
                    range_end: end.clone(),
                    limit: i64::try_from(wanted).unwrap_or(i64::MAX),
                    sort_order: order.into(),
                    ..RangeRequest::default()
                })
                .await?;
            let Some(last) = answer.kvs.last() else { break };
            match order {
                SortOrder::Descend => end.clone_from(&last.key),
                _ => start = next_key(last.key.clone()),
            }
            found.extend(answer.kvs.into_iter().filter_map(|kv| entry(&self.shared.prefix, kv)));
            if !answer.more {
                break;
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
        self.pages(span::forward(prefix, after), SortOrder::Ascend, limit).await
    }

    async fn range_back(
        &self,
        prefix: &[u8],
        before: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        self.pages(span::backward(prefix, before), SortOrder::Descend, limit).await
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
