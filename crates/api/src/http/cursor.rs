//! Cursors: where a page ends and the next begins. Callers give them back as they got them.

use std::{fmt, time::Duration};

use axum::http::StatusCode;
use netstead_engine::{ChangePosition, Engine};
use netstead_ledger::{Freshness, Ledger};
use netstead_model::Ident;
use tokio::time::timeout;

use crate::problem::Failure;

/// How long the store is asked whether a cursor is of something that happened.
const PATIENCE: Duration = Duration::from_secs(2);

fn wrong(text: &str) -> Failure {
    let shown: String = text.chars().take(80).flat_map(char::escape_debug).collect();
    Failure::unreadable("after", format!("`{shown}` is not a `next` that this list gave"))
}

/// `<first>/<rest>`; the first part never has a `/`.
pub(crate) fn pair<T: std::str::FromStr>(text: &str) -> Result<(Ident, T), Failure> {
    let (first, rest) = text.split_once('/').ok_or_else(|| wrong(text))?;
    Ok((first.parse().map_err(|_| wrong(text))?, rest.parse().map_err(|_| wrong(text))?))
}

/// The one name a list goes on after.
pub(crate) fn single<T: std::str::FromStr>(text: &str) -> Result<T, Failure> {
    text.parse().map_err(|_| wrong(text))
}

/// A place among the events of one ledger: `<ledger id>:<sequence number>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventCursor {
    pub(crate) ledger: u32,
    pub(crate) seq: u64,
}

impl EventCursor {
    pub(crate) fn read(field: &str, text: &str) -> Result<Self, Failure> {
        let parsed = || {
            let (ledger, seq) = text.split_once(':')?;
            let plain =
                ledger.len() == 8 && ledger.bytes().all(|b| b.is_ascii_hexdigit()) && !seq.starts_with('+');
            let ledger = u32::from_str_radix(ledger, 16).ok().filter(|_| plain)?;
            Some(Self { ledger, seq: seq.parse().ok()? })
        };
        let told = "an event cursor looks like `1f0c22ab:17`: the id of the ledger and a sequence number";
        parsed().ok_or_else(|| Failure::unreadable(field, told))
    }

    fn is_of(self, ledger: &Ledger) -> Result<(), Failure> {
        let id = ledger.id();
        if self.ledger == id {
            return Ok(());
        }
        Err(gone(&format!("this cursor is of the ledger {:08x}, and this one is {id:08x}", self.ledger)))
    }

    /// The sequence number, if it is of this ledger and of something that happened.
    pub(crate) async fn of(self, ledger: &Ledger) -> Result<u64, Failure> {
        self.is_of(ledger)?;
        // Another node may know of more than this one: only the store knows that there is none.
        if self.seq > ledger.health().seq
            && let Ok(Ok(newest)) = timeout(PATIENCE, ledger.read(Freshness::Fresh, |_| ())).await
            && self.seq > newest.seq
        {
            let newest = newest.seq;
            return Err(gone(&format!(
                "nothing has happened after {newest}, and this cursor is {}",
                self.seq
            )));
        }
        Ok(self.seq)
    }

    /// The sequence number, if everything after it is still there.
    pub(crate) async fn standing(self, ledger: &Ledger) -> Result<u64, Failure> {
        self.of(ledger).await?;
        let oldest = ledger.oldest_event();
        if self.seq.saturating_add(1) < oldest {
            return Err(gone(&format!("the events after {} are kept from {oldest} on only", self.seq)));
        }
        Ok(self.seq)
    }
}

/// A place in the history of names: `<ledger id>:<event>.<part>.<step>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChangeCursor {
    pub(crate) ledger: u32,
    pub(crate) place: ChangePosition,
}

impl ChangeCursor {
    /// The place, if the cursor is of this ledger and everything after it is still there.
    pub(crate) async fn read(
        text: &str,
        ledger: &Ledger,
        engine: &Engine,
        oldest_first: bool,
    ) -> Result<ChangePosition, Failure> {
        let (of, place) = text.split_once(':').ok_or_else(|| wrong(text))?;
        let place: ChangePosition = place.parse().map_err(|_| wrong(text))?;
        // The rest is as in any cursor of this ledger.
        EventCursor::read("after", &format!("{of}:{}", place.event))?.is_of(ledger)?;
        let oldest = engine.oldest_event().await;
        if oldest_first && place.event.saturating_add(1) < oldest {
            return Err(gone(&format!("what happened after {place} is kept from {oldest} on only")));
        }
        Ok(place)
    }
}

impl fmt::Display for ChangeCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}:{}", self.ledger, self.place)
    }
}

fn gone(reason: &str) -> Failure {
    Failure::new(StatusCode::GONE, "gone", format!("{reason}; start again from a list"))
}

impl fmt::Display for EventCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}:{}", self.ledger, self.seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_cursor_reads_as_it_is_written() {
        let cursor = EventCursor { ledger: 0x1f0c_22ab, seq: 17 };
        assert_eq!(cursor.to_string(), "1f0c22ab:17");
        assert_eq!(EventCursor::read("after", "1f0c22ab:17").unwrap(), cursor);
        for text in ["", "17", "1f0c22ab", "1f0c22ab:", "1f0c22ab:-1", "1f0c22ab:+1", "+f0c22ab:1", "xyz:1"] {
            assert!(EventCursor::read("after", text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_no_cursor_is_refused() {
        assert_eq!(pair::<String>("lan/a/b").unwrap(), ("lan".parse().unwrap(), "a/b".to_owned()));
        assert!(pair::<String>("lan").is_err());
        assert!(single::<Ident>("Not A Name").is_err());
    }
}
