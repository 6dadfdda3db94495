//! How long a busy server asks to wait.

use std::time::Duration;

use jiff::{Timestamp, fmt::rfc2822::DateTimeParser};
use reqwest::header::{HeaderMap, RETRY_AFTER};

/// The longest wait that a server can ask for; it may say a year, and this is taken instead.
pub const LONGEST_RETRY_AFTER: Duration = Duration::from_mins(15);

/// The header `Retry-After`: seconds, or a date.
pub(super) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    static DATES: DateTimeParser = DateTimeParser::new();

    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
        text.parse().map_or(LONGEST_RETRY_AFTER, Duration::from_secs)
    } else {
        let until = DATES.parse_timestamp(text).ok()?;
        // A date that has passed asks for no wait.
        Duration::try_from(until.duration_since(now)).unwrap_or_default()
    };
    Some(wait.min(LONGEST_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_read_and_capped() {
        let now: Timestamp = "2026-11-18T04:00:00Z".parse().unwrap();
        for (text, wait) in [
            ("7", Some(7)),
            ("0", Some(0)),
            ("31536000", Some(900)),
            ("99999999999999999999999999", Some(900)),
            ("Wed, 18 Nov 2026 04:00:30 GMT", Some(30)),
            ("Wed, 18 Nov 2026 03:00:00 GMT", Some(0)),
            ("Thu, 18 Nov 2027 04:00:00 GMT", Some(900)),
            ("soon", None),
            ("-1", None),
            ("", None),
        ] {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]);
            assert_eq!(retry_after(&headers, now), wait.map(Duration::from_secs), "{text}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}
