//! `docs/reference/netstead.toml` has every key of the code with what `configuration.md` says about it; this compares the
//! two, and with `UPDATE_DOCS=1` writes the file.

use std::{fmt::Write as _, path::Path};

use super::*;

const PAGE: &str = include_str!("../../../../../docs/reference/configuration.md");

/// What the page says of a key: its meaning and its default.
fn row<'a>(table: &'a str, key: &str) -> Option<(&'a str, &'a str)> {
    table.lines().find_map(|line| {
        let mut cells = line.strip_prefix("| ")?.trim_end_matches(" |").split(" | ");
        let keys = cells.next()?;
        let named = keys.split(", ").any(|one| one == format!("`{key}`"));
        named.then(|| Some((cells.next()?, cells.next()?)))?
    })
}

/// The default as TOML has it, if it is a single value.
fn literal(default: &str) -> Option<String> {
    let value = default.strip_prefix('`')?.strip_suffix('`').filter(|value| !value.contains('`'))?;
    let bare =
        value == "true" || value == "false" || value.parse::<i64>().is_ok() || value.starts_with(['[', '{']);
    Some(if bare { value.to_owned() } else { format!("\"{value}\"") })
}

fn wrapped(text: &mut String, words: &str) {
    let mut line = String::from("#");
    for word in words.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > 100 {
            let _ = writeln!(text, "{line}");
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(text, "{line}");
}

fn file() -> String {
    let mut text = String::from(
        "# Every key that netstead.toml may have. A key stands here with its default, or with nothing where it has none.\n\
         # Made from the code and configuration.md by `UPDATE_DOCS=1 cargo test -p netstead reference`.\n",
    );
    for (section, keys) in SECTIONS.iter().chain(&NAMED) {
        let (_, rest) = PAGE.split_once(&format!("### `[{section}")).unwrap();
        let table = rest.split("\n#").next().unwrap();
        let header = rest.split('`').next().unwrap();
        let _ = write!(text, "\n#[{section}{header}\n");
        for key in *keys {
            let (meaning, default) =
                row(table, key).unwrap_or_else(|| panic!("[{section}] {key} has no row in configuration.md"));
            text.push('\n');
            wrapped(&mut text, meaning);
            let value = literal(default);
            if value.is_none() && default != "–" {
                wrapped(&mut text, &format!("Default: {default}"));
            }
            let value = value.map(|value| format!(" {value}")).unwrap_or_default();
            let _ = writeln!(text, "#{key} ={value}");
        }
    }
    text
}

#[test]
fn the_reference_file_has_every_key_with_what_the_page_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/netstead.toml");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, file()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == file(),
        "docs/reference/netstead.toml is old: UPDATE_DOCS=1 cargo test -p netstead reference"
    );
    assert!(read(Some((Path::new("netstead.toml"), &written)), [], &[]).is_ok());
}
