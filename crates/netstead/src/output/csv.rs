//! Comma-separated values as RFC 4180 has them.

use super::{Audience, Row};

pub(super) fn csv<T: Row>(items: &[T]) -> String {
    let (narrow, wide) = T::COLUMNS;
    let head = narrow.iter().chain(wide).map(|&column| match column {
        // To programs these cells say when, not how long.
        "AGE" => "since".to_owned(),
        "ENDS IN" => "until".to_owned(),
        "USED" => "used_percent".to_owned(),
        _ => column.to_lowercase().replace(' ', "_"),
    });
    let mut text = line(head);
    for item in items {
        for cells in std::iter::once(item.cells(Audience::Programs)).chain(item.parts(Audience::Programs)) {
            text += &line(cells);
        }
    }
    text
}

fn line(cells: impl IntoIterator<Item = String>) -> String {
    let cells: Vec<_> = cells.into_iter().map(quoted).collect();
    cells.join(",") + "\r\n"
}

fn quoted(cell: String) -> String {
    if cell.contains(['"', ',', '\r', '\n']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_break_a_line_is_quoted() {
        assert_eq!(
            line(["a".into(), "b,c".into(), "d\"e".into(), String::new()]),
            "a,\"b,c\",\"d\"\"e\",\r\n"
        );
    }
}
