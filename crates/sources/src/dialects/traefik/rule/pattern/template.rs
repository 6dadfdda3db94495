//! The host templates of Traefik 2: `{name:[a-c]}.example.com`.

/// The regular expression that a template means; none when it is no template.
///
/// A brace that is followed by a letter begins a variable; in a regular expression a number follows it.
pub(super) fn to_regex(text: &str) -> Option<Result<String, String>> {
    let variable = |rest: &str| rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    text.split('{').skip(1).any(variable).then(|| convert(text))
}

fn convert(text: &str) -> Result<String, String> {
    let mut out = String::from("^");
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        out.push_str(&regex_syntax::escape(rest.get(..open).unwrap_or_default()));
        let inner = rest.get(open + 1..).unwrap_or_default();
        let Some(close) = closing(inner) else { return Err("a brace is never closed".into()) };
        let variable = inner.get(..close).unwrap_or_default();
        match variable.split_once(':') {
            Some((_, "")) => return Err("a variable has an empty pattern".into()),
            Some((_, pattern)) => {
                out.push_str("(?:");
                out.push_str(pattern);
                out.push(')');
            }
            // A variable without a pattern stands for one label.
            None => out.push_str("[^.]+"),
        }
        rest = inner.get(close + 1..).unwrap_or_default();
    }
    out.push_str(&regex_syntax::escape(rest));
    out.push('$');
    Ok(out)
}

/// Where the brace that is open already is closed.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1_usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}
