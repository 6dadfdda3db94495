//! Host patterns: regular expressions of Traefik 3 and templates of Traefik 2, expanded when they mean few hosts.

mod expand;
mod template;

use std::collections::BTreeSet;

/// The longest pattern that is looked at.
const LONGEST: usize = 1024;

/// The hosts that a pattern can match.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Expanded {
    /// These hosts and no other, in lower case.
    Hosts(BTreeSet<String>),
    /// More than can be listed, or it cannot be read: why.
    Endless(String),
}

/// The hosts that a pattern matches, if they are few.
pub(super) fn expand(pattern: &str) -> Expanded {
    if pattern.len() > LONGEST {
        return Expanded::Endless(format!("it is longer than {LONGEST} bytes"));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if !pattern.is_empty() && pattern.chars().all(plain) {
        // A host as it stands to Traefik 2. To Traefik 3 it is a pattern that matches this host, too.
        return Expanded::Hosts([pattern.to_lowercase()].into());
    }
    let expression = match template::to_regex(pattern) {
        Some(Ok(expression)) => expression,
        Some(Err(why)) => return Expanded::Endless(why),
        None => pattern.to_owned(),
    };
    match expand::hosts(&expression) {
        Ok(hosts) => Expanded::Hosts(hosts),
        Err(why) => Expanded::Endless(why),
    }
}
