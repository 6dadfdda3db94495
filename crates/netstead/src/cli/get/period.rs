//! Points in time, as people write them.

use std::str::FromStr;

use clap::Args;
use jiff::{Timestamp, civil, tz::TimeZone};
use netstead_model::{Clock, Span};

/// From when to when.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Period {
    /// From here on: a time, a date, or how long ago (`2h`, `7d`)
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<Moment>,
    /// Up to here: a time, a date, or how long ago
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<Moment>,
}

/// A point in time as people say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    At(Timestamp),
    Ago(Span),
}

impl Moment {
    pub(crate) fn resolve(self, clock: &dyn Clock) -> Timestamp {
        match self {
            Self::At(timestamp) => timestamp,
            Self::Ago(span) => {
                clock.wall().checked_sub(std::time::Duration::from(span)).unwrap_or(Timestamp::UNIX_EPOCH)
            }
        }
    }
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(timestamp) = text.parse() {
            return Ok(Self::At(timestamp));
        }
        // Without a zone it is the reader's own.
        if let Ok(local) = text.parse::<civil::DateTime>() {
            return local
                .to_zoned(TimeZone::system())
                .map(|zoned| Self::At(zoned.timestamp()))
                .map_err(|e| e.to_string());
        }
        text.parse().map(Self::Ago).map_err(|_| {
            "write a time (`2026-11-01T12:00:00Z`), a date (`2026-11-01`) or how long ago (`2h`, `7d`)"
                .to_owned()
        })
    }
}
