//! Lengths of time as people write them: `10m`, `1h 30m`, `90s`.

use std::{fmt, str::FromStr, time::Duration};

use jiff::SignedDuration;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::ParseError;

/// A length of time in whole milliseconds, never negative, at most a hundred years.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

const LONGEST_MS: u64 = 100 * 366 * 24 * 3600 * 1000;

impl Span {
    pub const ZERO: Self = Self(0);

    pub const fn from_secs(seconds: u64) -> Self {
        Self::from_millis(seconds.saturating_mul(1000))
    }

    pub const fn from_millis(millis: u64) -> Self {
        Self(if millis > LONGEST_MS { LONGEST_MS } else { millis })
    }

    pub const fn as_millis(self) -> u64 {
        self.0
    }

    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        Self::from_millis(span.0)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = i64::try_from(self.0).unwrap_or(i64::MAX);
        f.pad(&format!("{:#}", SignedDuration::from_millis(millis)))
    }
}

impl FromStr for Span {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = |reason: &str| ParseError::new("length of time", text, None, reason);
        if text.trim() == "0" {
            return Ok(Self::ZERO);
        }
        if text.trim().bytes().all(|b| b.is_ascii_digit()) && !text.trim().is_empty() {
            return Err(wrong("it has no unit: write `90s`, `10m`, `12h` or `7d`"));
        }
        // Days have a fixed length here: 24 hours. A pool's cooldown does not know about summer time.
        let in_hours = days_as_hours(text);
        let parsed: SignedDuration =
            in_hours.parse().map_err(|_| wrong("write it like `90s`, `10m`, `1h 30m` or `7d`"))?;
        if parsed.is_negative() {
            return Err(wrong("it is negative"));
        }
        let millis = u64::try_from(parsed.as_millis()).unwrap_or(u64::MAX);
        if millis > LONGEST_MS {
            return Err(wrong("it is longer than a hundred years"));
        }
        Ok(Self(millis))
    }
}

/// `7d 2h` becomes `168h 2h`'s sum: jiff refuses days in a plain duration because calendars disagree on them.
fn days_as_hours(text: &str) -> String {
    let text = text.trim();
    let Some((days, rest)) = text.split_once('d') else { return text.to_owned() };
    let Ok(days) = days.trim().parse::<u64>() else { return text.to_owned() };
    let rest = rest.trim();
    if rest.is_empty() {
        return format!("{}h", days.saturating_mul(24));
    }
    match rest.split_once('h') {
        Some((hours, rest)) => match hours.trim().parse::<u64>() {
            Ok(hours) => format!("{}h{}", days.saturating_mul(24).saturating_add(hours), rest),
            Err(_) => text.to_owned(),
        },
        None => format!("{}h {rest}", days.saturating_mul(24)),
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_write_lengths_in_many_ways() {
        for (text, seconds) in
            [("10m", 600), ("1h 30m", 5400), ("90s", 90), ("7d", 604_800), ("1d2h", 93_600), ("0", 0)]
        {
            assert_eq!(text.parse(), Ok(Span::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn a_length_prints_as_it_parses() {
        for seconds in [0, 1, 59, 60, 600, 86_400, 1_000_000] {
            let span = Span::from_secs(seconds);
            assert_eq!(span.to_string().parse(), Ok(span), "{span}");
        }
    }

    #[test]
    fn what_is_no_length_is_refused_with_a_hint() {
        for text in ["", "10", "ten minutes ago", "-5m", "300y", "5 bananas", "é"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }
}
