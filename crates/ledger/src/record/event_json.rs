//! Events as they are stored, put together from JSON that is there already: every claim is in its slot and in its event,
//! and turning it into text is a good part of what a claim costs.

use std::sync::Arc;

use jiff::Timestamp;
use netstead_model::{Event, EventKind, Subject};
use serde::Serialize;

use super::FORMAT;

/// The claim in a stored slot that is held, as JSON.
pub(crate) fn claim_in_slot(value: &[u8]) -> Option<&[u8]> {
    value.strip_prefix(br#"1{"held":"#)?.strip_suffix(b"}")
}

/// Adds an event to a list that [`event_group`] closes. `claim` is what it is about afterwards, if that is JSON already.
pub(crate) fn append_event(list: &mut Vec<u8>, event: &Event, claim: Option<&[u8]>) {
    if !list.is_empty() {
        list.push(b',');
    }
    let Some(claim) = claim else {
        let _ = serde_json::to_writer(list, event);
        return;
    };
    let Event { seq, at, by, request, what, reason, before, after: _ } = event;
    let start = EventStart { seq: *seq, at, by, request, what, reason, before };
    let _ = serde_json::to_writer(&mut *list, &start);
    // The event goes on where this part of it ends.
    list.pop();
    list.extend_from_slice(br#","after":{"claim":"#);
    list.extend_from_slice(claim);
    list.extend_from_slice(b"}}");
}

/// An [`Event`] without its end, `after`.
#[derive(Serialize)]
struct EventStart<'a> {
    seq: u64,
    at: &'a Timestamp,
    by: &'a Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: &'a Option<Arc<str>>,
    what: &'a EventKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: &'a Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: &'a Option<Subject>,
}

/// An [`EventGroup`] of events that are JSON already.
pub(crate) fn event_group(events: &[u8]) -> Vec<u8> {
    [&[FORMAT], br#"{"events":["#.as_slice(), events, b"]}"].concat()
}

#[cfg(test)]
mod tests {
    use netstead_model::Claim;

    use super::*;
    use crate::record::{EventGroup, Slot, decode, encode};

    fn claim(key: &str) -> Arc<Claim> {
        let at = Timestamp::from_second(1_000_000_000).unwrap();
        let json = serde_json::json!({
            "id": "000000aa-7", "pool": "lan", "key": key, "owner": "ann \"the\" owner", "address": "10.0.0.7",
            "since": at, "fixed": true, "ttl": "1h", "details": { "hostnames": ["web.example.com"] },
        });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn an_event_put_together_is_the_same_as_one_written_at_once() {
        let (claim, former) = (claim("web"), claim("db"));
        let slot = encode(&Slot::Held(claim.clone()));
        let json = claim_in_slot(&slot);
        assert!(json.is_some());
        let event = |request: Option<&str>, reason: Option<&str>, before: Option<&Arc<Claim>>| Event {
            seq: 7,
            at: claim.since,
            by: "ann".into(),
            request: request.map(Arc::from),
            what: EventKind::Moved,
            reason: reason.map(Arc::from),
            before: before.cloned().map(Subject::Claim),
            after: Some(Subject::Claim(claim.clone())),
        };
        let events = [
            event(None, None, None),
            event(Some("r-1"), None, None),
            event(None, Some("because"), Some(&former)),
            event(Some("r-2"), Some("a \"reason\""), Some(&former)),
        ];
        let (mut quick, mut plain) = (Vec::new(), Vec::new());
        for event in &events {
            append_event(&mut quick, event, json);
            append_event(&mut plain, event, None);
        }
        assert_eq!(String::from_utf8(quick.clone()).unwrap(), String::from_utf8(plain).unwrap());
        let group: EventGroup = decode(b"ledger/event/7", &event_group(&quick)).unwrap();
        assert_eq!(group.events, events.map(Arc::new));
    }

    #[test]
    fn only_a_slot_that_is_held_has_a_claim() {
        assert_eq!(claim_in_slot(br#"1{"rested":{"claim":"000000aa-7"}}"#), None);
        assert_eq!(claim_in_slot(b""), None);
    }
}
