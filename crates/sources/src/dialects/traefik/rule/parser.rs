//! The grammar of a rule: or of and of not of matcher.

use std::{borrow::Cow, collections::BTreeSet};

use super::{
    Rule,
    host_set::{HostCondition, HostSet},
    lexer::{Lexer, RuleError, Token},
    pattern::{self, Expanded},
};
use crate::dialects::diagnostics::excerpt;

/// How many parentheses and negations may stand inside each other.
const DEEPEST: usize = 100;
/// The most hosts that the patterns of one rule are expanded to.
const MOST_EXPANDED: usize = 4096;
/// The most notes one rule leaves.
const MOST_NOTES: usize = 20;

#[derive(Debug)]
pub(super) struct Parser<'a> {
    lexer: Lexer<'a>,
    next: Option<(usize, Token<'a>)>,
    end: usize,
    depth: usize,
    /// An odd number of negations stands around this place.
    negated: bool,
    /// Hosts that are named where they are wanted, not where they are ruled out.
    named: BTreeSet<String>,
    expanded: usize,
    notes: Vec<String>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Result<Self, RuleError> {
        let mut lexer = Lexer::new(text);
        let next = lexer.next()?;
        let (named, notes) = (BTreeSet::new(), Vec::new());
        Ok(Self { lexer, next, end: text.len(), depth: 0, negated: false, named, expanded: 0, notes })
    }

    pub(super) fn rule(mut self) -> Result<Rule, RuleError> {
        if self.next.is_none() {
            return Err(self.lexer.error_at(0, "the rule is empty"));
        }
        let meaning = self.either()?;
        if let Some((at, token)) = &self.next {
            return Err(self.lexer.error_at(*at, format!("{token} does not belong there")));
        }
        let hosts = self.named.into_iter().filter(|host| meaning.can.contains(host)).collect();
        Ok(Rule { hosts, open: matches!(meaning.can, HostSet::AllBut(_)), notes: self.notes })
    }

    fn either(&mut self) -> Result<HostCondition, RuleError> {
        let mut meaning = self.both()?;
        while self.eat(&Token::Or)? {
            meaning = meaning.or(self.both()?);
        }
        Ok(meaning)
    }

    fn both(&mut self) -> Result<HostCondition, RuleError> {
        let mut meaning = self.one()?;
        while self.eat(&Token::And)? {
            meaning = meaning.and(self.one()?);
        }
        Ok(meaning)
    }

    fn one(&mut self) -> Result<HostCondition, RuleError> {
        match self.next_token()? {
            Some((at, Token::Not)) => self.deeper(at, |parser| {
                parser.negated = !parser.negated;
                let meaning = parser.one()?.not();
                parser.negated = !parser.negated;
                Ok(meaning)
            }),
            Some((at, Token::Open)) => self.deeper(at, |parser| {
                let meaning = parser.either()?;
                parser.expect(&Token::Close)?;
                Ok(meaning)
            }),
            Some((_, Token::Word(matcher))) => {
                let arguments = self.arguments()?;
                Ok(self.matcher(matcher, &arguments))
            }
            Some((at, token)) => Err(self.lexer.error_at(at, format!("a matcher was expected, not {token}"))),
            None => Err(self.lexer.error_at(self.end, "a matcher was expected, not the end")),
        }
    }

    fn deeper<T>(
        &mut self,
        at: usize,
        read: impl FnOnce(&mut Self) -> Result<T, RuleError>,
    ) -> Result<T, RuleError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.lexer.error_at(at, format!("it nests deeper than {DEEPEST}")));
        }
        let read = read(self);
        self.depth -= 1;
        read
    }

    fn arguments(&mut self) -> Result<Vec<Cow<'a, str>>, RuleError> {
        self.expect(&Token::Open)?;
        let mut arguments = Vec::new();
        loop {
            match self.next_token()? {
                Some((_, Token::Text(text))) => arguments.push(text),
                // Go allows a comma after the last argument.
                Some((_, Token::Close)) => return Ok(arguments),
                Some((at, token)) => {
                    return Err(self.lexer.error_at(at, format!("a text was expected, not {token}")));
                }
                None => return Err(self.lexer.error_at(self.end, "a text was expected, not the end")),
            }
            if !self.eat(&Token::Comma)? {
                self.expect(&Token::Close)?;
                return Ok(arguments);
            }
        }
    }

    fn matcher(&mut self, matcher: &str, arguments: &[Cow<'_, str>]) -> HostCondition {
        let is = |name: &str| matcher.eq_ignore_ascii_case(name);
        if is("HostSNI") && arguments.iter().any(|argument| argument == "*") {
            self.note(|| "HostSNI(`*`) names no host".into());
            return HostCondition::open();
        }
        if is("Host") || is("HostHeader") || is("HostSNI") {
            return self.exactly(arguments.iter().map(|argument| argument.trim().to_lowercase()).collect());
        }
        if is("HostRegexp") || is("HostSNIRegexp") {
            let each = arguments.iter().map(|argument| self.pattern(matcher, argument));
            return each.fold(HostCondition::exactly(BTreeSet::new()), HostCondition::or);
        }
        HostCondition::open()
    }

    fn pattern(&mut self, matcher: &str, argument: &str) -> HostCondition {
        let why = match pattern::expand(argument) {
            Expanded::Hosts(hosts) if self.expanded + hosts.len() <= MOST_EXPANDED => {
                self.expanded += hosts.len();
                return self.exactly(hosts);
            }
            Expanded::Hosts(_) => format!("the patterns of the rule match more than {MOST_EXPANDED} hosts"),
            Expanded::Endless(why) => why,
        };
        if !self.negated {
            self.note(|| format!("{matcher}(`{}`) gives no name: {why}", excerpt(argument)));
        }
        HostCondition::open()
    }

    fn exactly(&mut self, hosts: BTreeSet<String>) -> HostCondition {
        if !self.negated {
            self.named.extend(hosts.iter().cloned());
        }
        HostCondition::exactly(hosts)
    }

    fn note(&mut self, note: impl FnOnce() -> String) {
        if self.notes.len() < MOST_NOTES {
            self.notes.push(note());
        }
    }

    fn next_token(&mut self) -> Result<Option<(usize, Token<'a>)>, RuleError> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.next, next))
    }

    fn eat(&mut self, wanted: &Token<'_>) -> Result<bool, RuleError> {
        let found = self.next.as_ref().is_some_and(|(_, token)| token == wanted);
        if found {
            self.next_token()?;
        }
        Ok(found)
    }

    fn expect(&mut self, wanted: &Token<'_>) -> Result<(), RuleError> {
        match self.next_token()? {
            Some((_, token)) if token == *wanted => Ok(()),
            Some((at, token)) => Err(self.lexer.error_at(at, format!("{wanted} was expected, not {token}"))),
            None => Err(self.lexer.error_at(self.end, format!("{wanted} was expected, not the end"))),
        }
    }
}
