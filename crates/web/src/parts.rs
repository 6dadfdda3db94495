//! Small parts of pages: times, bars, counts, states.

use std::fmt;

use askama::filters::HtmlSafe;
use jiff::Timestamp;
use netstead_client::types::{PoolOutput, Usage};

/// A time as people say it, with the exact one beside it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct When {
    at: Timestamp,
    now: Timestamp,
}

impl When {
    pub(crate) fn new(at: Timestamp, now: Timestamp) -> Self {
        Self { at, now }
    }

    pub(crate) fn at(self) -> Timestamp {
        self.at
    }
}

/// Made of a time only, so nothing in it needs to be escaped.
impl HtmlSafe for When {}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = format!("{:.0}", self.at);
        write!(f, "<time datetime=\"{exact}\" title=\"{exact}\">{}</time>", relative(self.at, self.now))
    }
}

/// `14 s ago`, `3 min ago`, `in 2 h`, `5 days ago`.
pub(crate) fn relative(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(at).as_secs();
    let size = seconds.unsigned_abs();
    let text = match size {
        0..=1 => return "now".to_owned(),
        2..=119 => format!("{size} s"),
        120..=7199 => format!("{} min", size / 60),
        7200..=172_799 => format!("{} h", size / 3600),
        _ => format!("{} days", size / 86_400),
    };
    if seconds < 0 { format!("in {text}") } else { format!("{text} ago") }
}

/// The parts of a pool that are not free, one beside the other.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Bar {
    held: f64,
    resting: f64,
    reserved: f64,
    observed: f64,
}

impl Bar {
    pub(crate) fn new(usage: &Usage) -> Self {
        Self::with_least(usage, 0.5)
    }

    /// For a small bar: what is there at all has `least` percent of the width.
    #[expect(clippy::cast_precision_loss, reason = "a bar is some hundred pixels wide")]
    pub(crate) fn with_least(usage: &Usage, least: f64) -> Self {
        let number = |text: &str| text.parse::<u128>().unwrap_or_default() as f64;
        let size = number(&usage.size).max(1.0);
        // What is there at all is seen.
        let part = |text: &str| match number(text) {
            0.0 => 0.0,
            count => (count / size * 100.0).clamp(least, 100.0),
        };
        Self {
            held: part(&usage.held),
            resting: part(&usage.resting),
            reserved: part(&usage.reserved),
            observed: part(&usage.observed),
        }
    }
}

/// Made of numbers only.
impl HtmlSafe for Bar {}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "<svg class=\"bar\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" aria-hidden=\"true\">",
        )?;
        let mut x = 0.0;
        for (class, width) in [
            ("held", self.held),
            ("reserved", self.reserved),
            ("observed", self.observed),
            ("resting", self.resting),
        ] {
            if width > 0.0 {
                write!(f, "<rect class=\"{class}\" x=\"{x:.2}\" width=\"{width:.2}\" height=\"8\"/>")?;
                x += width;
            }
        }
        f.write_str("</svg>")
    }
}

/// `12 %`, where 0 means empty and 100 full.
pub(crate) fn percent(usage: &Usage) -> String {
    match usage.used_permyriad {
        0 => "0 %".to_owned(),
        1..=99 => "< 1 %".to_owned(),
        9901..=9999 => "> 99 %".to_owned(),
        other => format!("{} %", other / 100),
    }
}

/// A count that may be very large: `254`, `1 048 576`, `2^64`.
pub(crate) fn count(text: &str) -> String {
    let Ok(number) = text.parse::<u128>() else { return text.to_owned() };
    if number >= 1_000_000_000_000 {
        let power = 127 - number.leading_zeros().min(127);
        let exactly = number.is_power_of_two();
        return if exactly { format!("2^{power}") } else { format!("about 2^{power}") };
    }
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// The addresses of a pool, in a few words.
pub(crate) fn extent(pool: &PoolOutput) -> String {
    match (&pool.network, pool.ranges.as_slice()) {
        (Some(network), []) => network.clone(),
        (Some(network), [range]) if range == network => network.clone(),
        (Some(network), [range]) => format!("{network}: {range}"),
        (Some(network), ranges) => format!("{network}: {} ranges", ranges.len()),
        (None, [range]) => range.clone(),
        (None, ranges) => format!("{} ranges", ranges.len()),
    }
}

/// A sentence of the API as parts: text, and commands between backticks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Words(pub(crate) Vec<Word>);

/// A part of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) is_code: bool,
}

impl Words {
    pub(crate) fn new(sentence: &str) -> Self {
        let parts = sentence.split('`').enumerate();
        let words = parts.map(|(place, text)| Word { text: text.to_owned(), is_code: place % 2 == 1 });
        Self(words.filter(|word| !word.text.is_empty()).collect())
    }

    pub(crate) fn each(sentences: &[String]) -> Vec<Self> {
        sentences.iter().map(|sentence| Self::new(sentence)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_as_people_say_them() {
        let now: Timestamp = "2026-11-19T12:00:00Z".parse().unwrap();
        let said = |at: &str| relative(at.parse().unwrap(), now);
        assert_eq!(said("2026-11-19T12:00:00Z"), "now");
        assert_eq!(said("2026-11-19T11:59:46Z"), "14 s ago");
        assert_eq!(said("2026-11-19T11:30:00Z"), "30 min ago");
        assert_eq!(said("2026-11-19T15:00:00Z"), "in 3 h");
        assert_eq!(said("2026-11-10T12:00:00Z"), "9 days ago");
    }

    #[test]
    fn counts_are_read_at_a_glance() {
        assert_eq!(count("254"), "254");
        assert_eq!(count("1048576"), "1\u{202f}048\u{202f}576");
        assert_eq!(count("18446744073709551616"), "2^64");
        assert_eq!(count("18446744073709551617"), "about 2^64");
    }

    #[test]
    fn commands_in_a_sentence_are_told_from_its_words() {
        let words = Words::new("2 changes are parked: `netstead apply 4f`");
        let told: Vec<_> = words.0.iter().map(|word| (word.text.as_str(), word.is_code)).collect();
        assert_eq!(told, [("2 changes are parked: ", false), ("netstead apply 4f", true)]);
    }

    #[test]
    fn a_bar_shows_what_there_is() {
        let usage = Usage { size: "200".into(), held: "50".into(), resting: "0".into(), ..Usage::default() };
        let bar = Bar::new(&usage).to_string();
        assert!(
            bar.contains("<rect class=\"held\" x=\"0.00\" width=\"25.00\" height=\"8\"/></svg>"),
            "{bar}"
        );
    }
}
