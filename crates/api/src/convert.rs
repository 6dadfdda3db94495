//! Converts between the JSON of the API and the types of the ledger and the engine.

pub(crate) mod address;
pub(crate) mod adopt_and_undo;
pub(crate) mod bulk;
pub(crate) mod claim;
pub(crate) mod dns;
pub(crate) mod event;
pub(crate) mod history;
pub(crate) mod ipam;
pub(crate) mod plan;
pub(crate) mod pool;
pub(crate) mod session;
pub(crate) mod token;

use std::{collections::BTreeMap, fmt::Display, str::FromStr, time::Duration};

use jiff::{Timestamp, Unit};
use netstead_model::{Address, Cidr, Labels, ParseError};

use crate::problem::Failure;

/// Text of a field as what it should be.
pub(crate) fn parse<T: FromStr<Err: Display>>(field: &str, text: &str) -> Result<T, Failure> {
    text.parse().map_err(|error| Failure::unreadable(field, error))
}

pub(crate) fn maybe<T: FromStr<Err: Display>>(
    field: &str,
    text: Option<&impl AsRef<str>>,
) -> Result<Option<T>, Failure> {
    text.map(|text| parse(field, text.as_ref())).transpose()
}

/// The texts of a list; an error names the place: `ranges[1]`.
pub(crate) fn each<T: FromStr<Err: Display>>(field: &str, texts: &[String]) -> Result<Vec<T>, Failure> {
    let parsed = texts.iter().enumerate().map(|(place, text)| parse(&format!("{field}[{place}]"), text));
    parsed.collect()
}

pub(crate) fn labels(field: &str, pairs: BTreeMap<String, String>) -> Result<Labels, Failure> {
    // One by one first, so that an error names the label.
    for (name, value) in &pairs {
        Labels::new([(name.clone(), value.clone())])
            .map_err(|error| Failure::unreadable(format!("{field}.{name}"), error))?;
    }
    Labels::new(pairs).map_err(|error| Failure::impossible(field, error))
}

/// Labels as JSON has them.
pub(crate) fn pairs(labels: &Labels) -> BTreeMap<String, String> {
    labels.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// An address, or a prefix with its length, in any notation.
pub(crate) fn address_or_prefix(text: &str) -> Result<(Address, Option<u8>), ParseError> {
    if text.contains('/') {
        let prefix: Cidr = text.parse()?;
        return Ok((prefix.first(), Some(prefix.len())));
    }
    Ok((text.parse()?, None))
}

/// The time of day at which something that has `left` to go ends. The ledger counts milliseconds, and so does this.
pub(crate) fn ending(now: Timestamp, left: Duration) -> Timestamp {
    let end = now.checked_add(left).unwrap_or(Timestamp::MAX);
    end.round(Unit::Millisecond).unwrap_or(end)
}
