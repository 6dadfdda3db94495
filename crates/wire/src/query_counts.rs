//! [`QueryCounts`]: how many DNS queries were answered, by transport and response code.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

/// Names of the response codes that are counted on their own, by number; all others are `other`.
const CODES: [(u16, &str); 8] = [
    (0, "NOERROR"),
    (1, "FORMERR"),
    (2, "SERVFAIL"),
    (3, "NXDOMAIN"),
    (4, "NOTIMP"),
    (5, "REFUSED"),
    (9, "NOTAUTH"),
    (16, "BADVERS"),
];

/// Counts the answers of a nameserver. Cheap to clone; clones count together.
#[derive(Debug, Clone, Default)]
pub struct QueryCounts(Arc<Mutex<Vec<(&'static str, QueryCounter)>>>);

/// Counter of one thread, so that threads do not wait for each other's cache lines.
#[derive(Debug, Clone, Default)]
pub struct QueryCounter(Arc<Padded>);

#[derive(Debug, Default)]
#[repr(align(128))]
struct Padded([AtomicU64; CODES.len() + 1]);

impl QueryCounts {
    /// A new counter for a thread that answers over `transport`.
    pub fn counter(&self, transport: &'static str) -> QueryCounter {
        let counter = QueryCounter::default();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((transport, counter.clone()));
        counter
    }

    /// Transport, response code and number of answers. One line of a counter each; the same transport may come twice.
    pub fn all(&self) -> Vec<(&'static str, &'static str, u64)> {
        let counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let names = || CODES.iter().map(|(_, name)| *name).chain(["other"]);
        let of_one = |(transport, counter): &(&'static str, QueryCounter)| {
            let numbers = counter.0.0.iter().map(|number| number.load(Ordering::Relaxed));
            let (transport, named) = (*transport, names().zip(numbers));
            named.map(move |(name, number)| (transport, name, number)).collect::<Vec<_>>()
        };
        counters.iter().flat_map(of_one).collect()
    }
}

impl QueryCounter {
    /// Counts one answer.
    pub fn count(&self, code: u16) {
        let place = CODES.iter().position(|(known, _)| *known == code).unwrap_or(CODES.len());
        if let Some(number) = self.0.0.get(place) {
            number.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted_by_transport_and_code() {
        let counts = QueryCounts::default();
        let (udp, tcp) = (counts.counter("udp"), counts.counter("tcp"));
        for code in [0, 0, 3, 77] {
            udp.count(code);
        }
        tcp.count(5);
        let mut seen = counts.all();
        seen.retain(|(_, _, number)| *number > 0);
        let wanted =
            [("udp", "NOERROR", 2), ("udp", "NXDOMAIN", 1), ("udp", "other", 1), ("tcp", "REFUSED", 1)];
        assert_eq!(seen, wanted);
    }
}
