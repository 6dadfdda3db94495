//! From pieces to what is printed, and when.

use super::lexer::{Piece, Token, pieces};

/// How many conditions and parentheses may stand inside each other.
const DEEPEST: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    Text(String),
    Print(Term),
    If { arms: Vec<(Term, Vec<Node>)>, otherwise: Vec<Node> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Term {
    Text(String),
    Number(i64),
    Bool(bool),
    Field(Vec<String>),
    Call { function: String, arguments: Vec<Term> },
}

/// How a list of nodes ended.
enum Close {
    Template,
    End,
    Else(Vec<Token>),
}

pub(super) fn parse(text: &str) -> Result<Vec<Node>, String> {
    let mut pieces = pieces(text)?.into_iter();
    match nodes(&mut pieces, 0)? {
        (nodes, Close::Template) => Ok(nodes),
        _ => Err("`end` or `else` without `if`".into()),
    }
}

type Pieces<'a> = std::vec::IntoIter<Piece<'a>>;

fn nodes(pieces: &mut Pieces<'_>, depth: usize) -> Result<(Vec<Node>, Close), String> {
    if depth > DEEPEST {
        return Err(format!("it nests deeper than {DEEPEST}"));
    }
    let mut nodes = Vec::new();
    while let Some(piece) = pieces.next() {
        let tokens = match piece {
            Piece::Outside("") => continue,
            Piece::Outside(text) => {
                nodes.push(Node::Text(text.to_owned()));
                continue;
            }
            Piece::Action(tokens) => tokens,
        };
        match tokens.split_first() {
            None => {}
            Some((Token::Word(word), rest)) if word == "if" => nodes.push(condition(rest, pieces, depth)?),
            Some((Token::Word(word), [])) if word == "end" => return Ok((nodes, Close::End)),
            Some((Token::Word(word), rest)) if word == "else" => {
                return Ok((nodes, Close::Else(rest.to_vec())));
            }
            Some((Token::Word(word), _))
                if matches!(word.as_str(), "range" | "with" | "define" | "template" | "block" | "break") =>
            {
                return Err(format!("`{word}` is not understood here"));
            }
            Some(_) => nodes.push(Node::Print(pipeline(&tokens)?)),
        }
    }
    Ok((nodes, Close::Template))
}

fn condition(first: &[Token], pieces: &mut Pieces<'_>, depth: usize) -> Result<Node, String> {
    let mut arms = Vec::new();
    let mut test = pipeline(first)?;
    loop {
        let (then, end) = nodes(pieces, depth + 1)?;
        arms.push((test, then));
        match end {
            Close::Template => return Err("`if` without `end`".into()),
            Close::End => return Ok(Node::If { arms, otherwise: Vec::new() }),
            Close::Else(rest) => match rest.split_first() {
                None => {
                    let (otherwise, end) = nodes(pieces, depth + 1)?;
                    return match end {
                        Close::End => Ok(Node::If { arms, otherwise }),
                        _ => Err("`else` without `end`".into()),
                    };
                }
                Some((Token::Word(word), rest)) if word == "if" => test = pipeline(rest)?,
                Some(_) => return Err("after `else` comes nothing, or `if`".into()),
            },
        }
    }
}

fn pipeline(tokens: &[Token]) -> Result<Term, String> {
    let mut tokens = Tokens { rest: tokens, depth: 0 };
    let term = tokens.pipeline()?;
    if tokens.rest.is_empty() { Ok(term) } else { Err("`)` without `(`".into()) }
}

struct Tokens<'t> {
    rest: &'t [Token],
    depth: usize,
}

impl Tokens<'_> {
    fn pipeline(&mut self) -> Result<Term, String> {
        let mut term = self.command(None)?;
        for _ in 0..DEEPEST {
            match self.rest.split_first() {
                Some((Token::Pipe, rest)) => self.rest = rest,
                _ => return Ok(term),
            }
            term = self.command(Some(term))?;
        }
        Err(format!("it has more than {DEEPEST} pipes"))
    }

    /// A function with its arguments, or one value; what was piped comes last.
    fn command(&mut self, piped: Option<Term>) -> Result<Term, String> {
        let function = match self.rest.split_first() {
            Some((Token::Word(word), rest)) if !matches!(word.as_str(), "true" | "false") => {
                self.rest = rest;
                Some(word.clone())
            }
            _ => None,
        };
        let mut arguments = Vec::new();
        while let Some(argument) = self.argument()? {
            arguments.push(argument);
        }
        arguments.extend(piped);
        match (function, arguments.len()) {
            (Some(function), _) => Ok(Term::Call { function, arguments }),
            (None, 1) => arguments.pop().ok_or_else(nothing),
            (None, 0) => Err(nothing()),
            (None, _) => Err("two values stand beside each other; begin with a function".into()),
        }
    }

    fn argument(&mut self) -> Result<Option<Term>, String> {
        let Some((first, rest)) = self.rest.split_first() else { return Ok(None) };
        let term = match first {
            Token::Pipe | Token::Close => return Ok(None),
            Token::Text(text) => Term::Text(text.clone()),
            Token::Number(number) => Term::Number(*number),
            Token::Field(path) => Term::Field(path.clone()),
            Token::Word(word) if word == "true" || word == "false" => Term::Bool(word == "true"),
            Token::Word(word) => Term::Call { function: word.clone(), arguments: Vec::new() },
            Token::Open => {
                self.depth += 1;
                if self.depth > DEEPEST {
                    return Err(format!("it nests deeper than {DEEPEST}"));
                }
                self.rest = rest;
                let term = self.pipeline()?;
                self.depth -= 1;
                return match self.rest.split_first() {
                    Some((Token::Close, rest)) => {
                        self.rest = rest;
                        Ok(Some(term))
                    }
                    _ => Err("`(` is never closed".into()),
                };
            }
        };
        self.rest = rest;
        Ok(Some(term))
    }
}

fn nothing() -> String {
    "`{{ }}` says nothing".into()
}
