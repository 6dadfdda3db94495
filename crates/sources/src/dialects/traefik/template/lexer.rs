//! The words inside `{{ … }}`.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Word(String),
    /// `.Labels.x` as its parts; `.` alone has none.
    Field(Vec<String>),
    Text(String),
    Number(i64),
    Open,
    Close,
    Pipe,
}

/// A piece of the template: what stands outside of actions, and what inside.
#[derive(Debug)]
pub(super) enum Piece<'a> {
    Outside(&'a str),
    Action(Vec<Token>),
}

/// Cuts a template into pieces. `{{-` and `-}}` take the white space beside them away.
pub(super) fn pieces(template: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut pieces = Vec::new();
    let mut rest = template;
    let mut trim = false;
    loop {
        let (outside, action) = match rest.split_once("{{") {
            Some((outside, action)) => (outside, Some(action)),
            None => (rest, None),
        };
        let outside = if trim { outside.trim_start() } else { outside };
        let Some(mut action) = action else {
            pieces.push(Piece::Outside(outside));
            return Ok(pieces);
        };
        let mut outside = outside;
        if let Some(trimmed) = action.strip_prefix('-') {
            outside = outside.trim_end();
            action = trimmed;
        }
        pieces.push(Piece::Outside(outside));
        let (tokens, end) = tokens(action)?;
        pieces.push(Piece::Action(tokens));
        let after = action.get(end..).unwrap_or_default();
        trim = after.starts_with('-');
        rest = after.strip_prefix('-').unwrap_or(after).strip_prefix("}}").unwrap_or_default();
    }
}

/// The words of an action and where it ends: at `}}` or `-}}`.
fn tokens(text: &str) -> Result<(Vec<Token>, usize), String> {
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let trimmed = rest.trim_start();
        at += rest.len() - trimmed.len();
        if trimmed.starts_with("}}") || trimmed.starts_with("-}}") {
            return Ok((tokens, at));
        }
        let (token, length) = token(trimmed)?;
        tokens.extend(token);
        at += length;
    }
}

fn token(text: &str) -> Result<(Option<Token>, usize), String> {
    let Some(first) = text.chars().next() else { return Err("`{{` is never closed".into()) };
    let word = |text: &str| text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    match first {
        '(' => Ok((Some(Token::Open), 1)),
        ')' => Ok((Some(Token::Close), 1)),
        '|' => Ok((Some(Token::Pipe), 1)),
        '.' => {
            let length =
                text.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '.').unwrap_or(text.len());
            let path = text.get(1..length).unwrap_or_default();
            let parts = path.split('.').filter(|part| !part.is_empty()).map(str::to_owned).collect();
            Ok((Some(Token::Field(parts)), length))
        }
        '`' | '"' => {
            let inner = text.get(1..).unwrap_or_default();
            let end = inner.find(first).ok_or_else(|| "a quote is never closed".to_owned())?;
            let inner = inner.get(..end).unwrap_or_default();
            if first == '"' && inner.contains('\\') {
                return Err("escapes in quotes are not read here; use backticks".into());
            }
            Ok((Some(Token::Text(inner.to_owned())), end + 2))
        }
        '/' if text.starts_with("/*") => {
            let end = text.find("*/").ok_or_else(|| "a comment is never closed".to_owned())?;
            Ok((None, end + 2))
        }
        c if c.is_ascii_digit() || c == '-' => {
            let digits = text
                .get(1..)
                .map_or(0, |rest| rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()));
            let number = text.get(..=digits).unwrap_or_default();
            let value = number.parse().map_err(|_| format!("`{number}` is not a number"))?;
            Ok((Some(Token::Number(value)), number.len()))
        }
        c if c.is_alphabetic() || c == '_' => {
            let length = word(text);
            Ok((Some(Token::Word(text.get(..length).unwrap_or_default().to_owned())), length))
        }
        c => Err(format!("`{}` is not understood here", c.escape_debug())),
    }
}
