//! Parts of the sources whose records are kept in the store: those set by hand, and those that a program sends.

use std::collections::BTreeSet;

use jiff::Timestamp;
use netstead_model::{
    Content, Ended, Ident, Key, Name, RecordData, RecordType, Report, View, Wish, Workload,
};
use netstead_plan::Digest;

/// The workloads that a source reported last: one that is missing from the next report was deleted.
#[derive(Debug, Default)]
pub(crate) struct Reported(BTreeSet<Key>);

impl Reported {
    /// A complete report of these workloads, in which those that were deleted since the last one have ended.
    pub(crate) fn report(&mut self, source: &Ident, begun: Timestamp, workloads: Vec<Workload>) -> Report {
        let there: BTreeSet<Key> = workloads.iter().map(|workload| workload.id.clone()).collect();
        let gone = self.0.difference(&there).cloned();
        let ended = gone.map(|id| Ended { id, asked: true }).collect();
        self.0 = there;
        Report::whole(source.clone(), begun, View::Complete, workloads).with_ended(ended)
    }

    pub(crate) fn extend(&mut self, ids: Vec<Key>) {
        self.0.extend(ids);
    }
}

/// The wish for one record set.
pub(crate) fn wish(
    name: &Name,
    kind: RecordType,
    values: Vec<RecordData>,
    ttl: Option<u32>,
    reason: String,
) -> Wish {
    Wish {
        name: name.clone(),
        content: Content::Records { kind, values },
        ttl,
        providers: Vec::new(),
        reason,
        adopt: false,
        share: false,
        main: matches!(kind, RecordType::A | RecordType::Aaaa) && !name.is_wildcard(),
        borrowed: false,
        moves: false,
        proxied: None,
        entrypoints: Vec::new(),
    }
}

/// Name and type; the longest names by their digest.
pub(crate) fn id_of(name: &Name, kind: &str) -> Option<Key> {
    let plain = format!("{name}/{kind}").parse();
    plain.or_else(|_| format!("{}/{kind}", Digest::of([name.as_str()])).parse()).ok()
}
