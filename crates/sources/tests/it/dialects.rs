//! Labels of every dialect and the names they ask for.

mod fuzz;
mod native;
mod proxies;
mod traefik;

use std::{collections::BTreeMap, fmt::Write as _};

use netstead_sources::dialects::{Dialect, NameRequest, Reader, Reading, RequestedContent, WorkloadLabels};

/// Reads these labels of a container called `app`.
pub fn reading(reader: &Reader, labels: &[(&str, &str)]) -> Reading {
    reading_with_environment(reader, labels, &[])
}

pub fn reading_with_environment(
    reader: &Reader,
    labels: &[(&str, &str)],
    environment: &[(&str, &str)],
) -> Reading {
    let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    reader.read(&WorkloadLabels { name: "app", labels: &map(labels), environment: &map(environment) })
}

/// One line per ask and reason, for people.
pub fn lines(reading: &Reading) -> Vec<String> {
    let why = reading.why_not.iter().map(|why| format!("! {why}"));
    reading.requests.iter().map(line).chain(why).collect()
}

fn line(ask: &NameRequest) -> String {
    let mut line = match &ask.content {
        RequestedContent::Points { target, kind } => {
            let kind = kind.map_or(String::new(), |kind| format!(" {kind}"));
            format!("{}{kind} -> {target:?}", ask.name)
        }
        RequestedContent::Records { kind, values } => {
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            format!("{} {kind} {}", ask.name, values.join(" | "))
        }
    };
    for (word, flag) in [("adopt", ask.adopt), ("share", ask.share), ("proxied", ask.proxied)] {
        if let Some(flag) = flag {
            let _ = write!(line, " {word}={flag}");
        }
    }
    if let Some(ttl) = ask.ttl {
        let _ = write!(line, " ttl={ttl}");
    }
    if !ask.providers.is_empty() {
        let _ = write!(line, " to={:?}", ask.providers);
    }
    format!("{line} ({})", ask.reason)
}

/// The lines of these labels in every dialect.
pub fn all(labels: &[(&str, &str)]) -> Vec<String> {
    lines(&reading(&Reader::default(), labels))
}

#[test]
fn a_dialect_that_was_not_chosen_is_not_read() {
    let reader = Reader::new([Dialect::Netstead]);
    let found = reading(&reader, &[("dnsweaver.hostname", "a.test"), ("netstead.hostname", "b.test")]);
    assert_eq!(lines(&found), ["b.test -> Source (netstead.hostname)"]);
}

#[test]
fn dialects_are_named_as_the_configuration_has_them() {
    for dialect in Dialect::ALL {
        assert_eq!(dialect.as_str().parse(), Ok(dialect));
    }
    let error = "docker".parse::<Dialect>().unwrap_err().to_string();
    assert!(error.contains("external-dns"), "{error}");
}
