//! The words of a rule.

use std::{borrow::Cow, fmt};

use crate::dialects::diagnostics::excerpt;

/// Why a text cannot be read, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleError {
    /// Counted in characters from 1.
    at: usize,
    problem: String,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at character {}", self.problem, self.at)
    }
}

impl RuleError {
    fn new(text: &str, at: usize, problem: impl Into<String>) -> Self {
        let before = text.get(..at).unwrap_or(text);
        Self { at: before.chars().count() + 1, problem: problem.into() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Word(&'a str),
    Text(Cow<'a, str>),
    Open,
    Close,
    Comma,
    And,
    Or,
    Not,
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => write!(f, "`{}`", excerpt(word)),
            Self::Text(_) => f.write_str("a text"),
            Self::Open => f.write_str("`(`"),
            Self::Close => f.write_str("`)`"),
            Self::Comma => f.write_str("`,`"),
            Self::And => f.write_str("`&&`"),
            Self::Or => f.write_str("`||`"),
            Self::Not => f.write_str("`!`"),
        }
    }
}

/// Goes over the text once.
#[derive(Debug)]
pub(super) struct Lexer<'a> {
    whole: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(whole: &'a str) -> Self {
        Self { whole, at: 0 }
    }

    fn rest(&self) -> &'a str {
        self.whole.get(self.at..).unwrap_or_default()
    }

    pub(super) fn error_at(&self, at: usize, problem: impl Into<String>) -> RuleError {
        RuleError::new(self.whole, at, problem)
    }

    /// The next word and where it begins; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<(usize, Token<'a>)>, RuleError> {
        let rest = self.rest();
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        let start = self.at;
        let Some(first) = trimmed.chars().next() else { return Ok(None) };
        let token = match first {
            '(' => self.consume(1, Token::Open),
            ')' => self.consume(1, Token::Close),
            ',' => self.consume(1, Token::Comma),
            '&' if trimmed.starts_with("&&") => self.consume(2, Token::And),
            '|' if trimmed.starts_with("||") => self.consume(2, Token::Or),
            '!' => self.consume(1, Token::Not),
            '`' => self.raw(trimmed)?,
            '"' => self.quoted(trimmed)?,
            '\'' => {
                return Err(self.error_at(start, "single quotes do not make a text; use backticks"));
            }
            c if c.is_alphabetic() || c == '_' => {
                let end = trimmed.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(trimmed.len());
                self.consume(end, Token::Word(trimmed.get(..end).unwrap_or_default()))
            }
            c => return Err(self.error_at(start, format!("`{}` has no meaning", c.escape_debug()))),
        };
        Ok(Some((start, token)))
    }

    fn consume(&mut self, bytes: usize, token: Token<'a>) -> Token<'a> {
        self.at += bytes;
        token
    }

    /// A text in backticks, where nothing is escaped.
    fn raw(&mut self, text: &'a str) -> Result<Token<'a>, RuleError> {
        let inner = text.get(1..).unwrap_or_default();
        let Some(end) = inner.find('`') else {
            return Err(self.error_at(self.at, "the backtick is never closed"));
        };
        Ok(self.consume(end + 2, Token::Text(inner.get(..end).unwrap_or_default().into())))
    }

    /// A text in double quotes, with the escapes of Go.
    fn quoted(&mut self, text: &'a str) -> Result<Token<'a>, RuleError> {
        let mut out = String::new();
        let mut chars = text.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => return Ok(self.consume(at + 1, Token::Text(out.into()))),
                '\n' => break,
                '\\' => {
                    let unknown =
                        |lexer: &Self| Err(lexer.error_at(lexer.at + at, "the escape is not known"));
                    let Some((_, escaped)) = chars.next() else { break };
                    let digits = match escaped {
                        'x' => 2,
                        'u' => 4,
                        'U' => 8,
                        '"' | '\\' => {
                            out.push(escaped);
                            continue;
                        }
                        'n' | 't' | 'r' | 'a' | 'b' | 'f' | 'v' => {
                            // None of them can stand in a name, and none changes what else is read.
                            out.push(' ');
                            continue;
                        }
                        _ => return unknown(self),
                    };
                    let hex: String = chars.by_ref().take(digits).map(|(_, digit)| digit).collect();
                    match u32::from_str_radix(&hex, 16).ok().and_then(char::from_u32) {
                        Some(c) if hex.len() == digits => out.push(c),
                        _ => return unknown(self),
                    }
                }
                c => out.push(c),
            }
        }
        Err(self.error_at(self.at, "the quote is never closed"))
    }
}
