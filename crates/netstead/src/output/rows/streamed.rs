//! Events of the ledger and of the engine in one list.

use netstead_client::StreamedEvent;

use super::{super::Row, text};
use crate::output::Audience;

impl Row for StreamedEvent {
    const COLUMNS: (&'static [&'static str], &'static [&'static str]) =
        (&["AT", "OF", "WHAT", "WHERE", "SUBJECT", "CHANGE"], &["BY", "REASON"]);

    fn cells(&self, _: Audience) -> Vec<String> {
        match self {
            Self::Ledger(event) => vec![
                format!("{:.0}", event.at),
                "ledger".into(),
                event.what.to_string(),
                text(event.pool.as_ref()),
                text(event.key.as_ref()),
                text(event.address.as_ref()),
                event.by.clone(),
                text(event.reason.as_ref()),
            ],
            Self::Engine(event) => vec![
                format!("{:.0}", event.at),
                "engine".into(),
                event.what.to_string(),
                text(event.provider.as_ref().or(event.source.as_ref())),
                text(event.name.as_ref().or(event.zone.as_ref())),
                event.text.clone(),
                text(event.by.as_ref()),
                text(event.reason.as_ref()),
            ],
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Ledger(event) => format!("ledger/{}", event.seq),
            Self::Engine(event) => format!("engine/{}", event.what),
        }
    }
}
