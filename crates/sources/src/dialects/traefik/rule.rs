//! Which hosts a router answers for: the rule grammar of Traefik 2 and 3.
//!
//! A rule is a small expression: matchers with text arguments, `&&`, `||`, `!` and parentheses. Its meaning is worked
//! out while it is read, so that time and memory stay in line with its length, and how deep it may nest is limited.

mod host_set;
mod lexer;
mod parser;
mod pattern;

use std::collections::BTreeSet;

pub(crate) use self::lexer::RuleError;
use self::parser::Parser;

/// The hosts of a rule.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Rule {
    /// The hosts it names, in lower case, that can ever match.
    pub(super) hosts: BTreeSet<String>,
    /// It may match hosts that it does not name.
    pub(super) open: bool,
    /// Why a part of it gave no host.
    pub(super) notes: Vec<String>,
}

/// Reads a rule.
pub(super) fn read(text: &str) -> Result<Rule, RuleError> {
    Parser::new(text)?.rule()
}
