//! Sentences in lines of limited width.

/// `text` in lines of at most `width` columns, each after `indent` spaces. What stands between backticks is a command to
/// copy and stays in one piece; so does a word, however long.
pub fn wrap(text: &str, indent: usize, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for piece in pieces(text) {
        let long = indent + line.chars().count() + 1 + piece.chars().count() > width;
        if long && !line.is_empty() {
            lines.push(format!("{:indent$}{line}", ""));
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(piece);
    }
    lines.push(format!("{:indent$}{line}", ""));
    lines
}

/// The parts between which a line may end.
fn pieces(text: &str) -> Vec<&str> {
    let mut quoted = false;
    text.split(|c: char| {
        quoted ^= c == '`';
        c == ' ' && !quoted
    })
    .filter(|piece| !piece.is_empty())
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_between_words_but_never_within_a_command() {
        let text = "Look at it with `netstead plan lan --config pr.toml`, then decide what is to be done.";
        let lines = wrap(text, 2, 40);
        assert_eq!(
            lines,
            [
                "  Look at it with",
                "  `netstead plan lan --config pr.toml`,",
                "  then decide what is to be done.",
            ]
        );
        assert_eq!(wrap("", 2, 40), ["  "]);
        assert_eq!(wrap(&"x".repeat(50), 0, 40), ["x".repeat(50)]);
    }
}
