//! Reading what can be read of a store that is damaged somewhere.

use crate::{Damage, Entry, Key, Snapshot, StoreError};

/// Bytes read at a time, about.
const PAGE_BYTES: usize = 512 << 10;
/// Entries of a page, to begin with and at most.
const FIRST_PAGE: usize = 64;
const LARGEST_PAGE: usize = 4096;

/// A place that cannot be read: whatever lies between two keys with the same prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    pub prefix: Key,
    /// The last key before the gap that can be read; none if the gap begins with the prefix.
    pub after: Option<Key>,
    /// The first key behind the gap that can be read; none if the gap reaches the end.
    pub before: Option<Key>,
    pub reason: String,
}

impl Gap {
    /// The gap as what is remembered of it.
    pub fn damage(&self) -> Damage {
        Damage::new(self.after.as_ref().unwrap_or(&self.prefix), &self.reason)
    }
}

/// Every entry with a prefix that can be read, in order of key, a page at a time.
///
/// There is at most one gap: what lies between two damaged places counts as unreadable, too. Only damage makes a gap;
/// any other error of the store is returned.
#[derive(Debug)]
pub struct ReadablePages<'a> {
    walk: Walk<'a>,
    gap: Option<Gap>,
}

impl<'a> ReadablePages<'a> {
    pub fn new(snapshot: &'a dyn Snapshot, prefix: &'a [u8]) -> Self {
        Self { walk: Walk::new(snapshot, prefix, None), gap: None }
    }

    /// The next page, which is never empty; `None` behind the last.
    pub async fn next(&mut self) -> Result<Option<Vec<Entry>>, StoreError> {
        loop {
            let reason = match self.walk.next().await? {
                Step::Page(page) if page.is_empty() => continue,
                Step::Page(page) => return Ok(Some(page)),
                Step::End => return Ok(None),
                // It was read from the other side a moment ago.
                Step::Damage(reason) if self.gap.is_some() => return Err(StoreError::Damaged { reason }),
                Step::Damage(reason) => reason,
            };
            let Walk { snapshot, prefix, .. } = self.walk;
            let first = first_behind_damage(snapshot, prefix).await?;
            let before = first.as_ref().map(|entry| entry.key.clone());
            let after = self.walk.position.take();
            self.walk = Walk { ended: first.is_none(), ..Walk::new(snapshot, prefix, before.clone()) };
            self.gap = Some(Gap { prefix: prefix.to_vec(), after, before, reason });
            if let Some(first) = first {
                return Ok(Some(vec![first]));
            }
        }
    }

    /// Gap of unreadable entries in the part that was walked so far.
    pub fn gap(&self) -> Option<&Gap> {
        self.gap.as_ref()
    }
}

/// Calls `visit` for every entry with `prefix` that can be read, in order of key, and says where the rest is; see
/// [`ReadablePages`].
pub async fn each_readable<E: From<StoreError>>(
    snapshot: &dyn Snapshot,
    prefix: &[u8],
    mut visit: impl FnMut(&Entry) -> Result<(), E>,
) -> Result<Option<Gap>, E> {
    let mut pages = ReadablePages::new(snapshot, prefix);
    while let Some(page) = pages.next().await? {
        page.iter().try_for_each(&mut visit)?;
    }
    Ok(pages.gap)
}

/// The entry with the lowest key that can be reached from the end of `prefix`.
async fn first_behind_damage(snapshot: &dyn Snapshot, prefix: &[u8]) -> Result<Option<Entry>, StoreError> {
    let mut back = Walk { back: true, ..Walk::new(snapshot, prefix, None) };
    let mut first = None;
    loop {
        match back.next().await? {
            Step::Page(mut page) => first = page.pop().or(first),
            Step::End | Step::Damage(_) => return Ok(first),
        }
    }
}

/// Goes through the keys with a prefix, a page at a time, up to the first that cannot be read.
#[derive(Debug)]
struct Walk<'a> {
    snapshot: &'a dyn Snapshot,
    prefix: &'a [u8],
    /// The last key that was read.
    position: Option<Key>,
    back: bool,
    limit: usize,
    ended: bool,
}

enum Step {
    Page(Vec<Entry>),
    End,
    Damage(String),
}

impl<'a> Walk<'a> {
    fn new(snapshot: &'a dyn Snapshot, prefix: &'a [u8], position: Option<Key>) -> Self {
        Self { snapshot, prefix, position, back: false, limit: FIRST_PAGE, ended: false }
    }

    async fn next(&mut self) -> Result<Step, StoreError> {
        if self.ended {
            return Ok(Step::End);
        }
        let (prefix, position) = (self.prefix, self.position.as_deref());
        let read = if self.back {
            self.snapshot.range_back(prefix, position, self.limit).await
        } else {
            self.snapshot.range(prefix, position, self.limit).await
        };
        let page = match read {
            Ok(page) => page,
            Err(StoreError::Damaged { .. }) if self.limit > 1 => {
                // What comes before the damage can still be had, in smaller pages.
                self.limit /= 2;
                return Ok(Step::Page(Vec::new()));
            }
            Err(StoreError::Damaged { reason }) => return Ok(Step::Damage(reason)),
            Err(error) => return Err(error),
        };
        self.ended = page.len() < self.limit;
        let bytes: usize = page.iter().map(|entry| entry.key.len() + entry.value.len()).sum();
        let larger = (page.len() * PAGE_BYTES / bytes.max(1)).clamp(1, LARGEST_PAGE);
        // After damage was met, pages only become smaller.
        self.limit = if self.limit < FIRST_PAGE { self.limit.min(larger) } else { larger };
        self.position = page.last().map(|last| last.key.clone()).or(self.position.take());
        Ok(Step::Page(page))
    }
}
