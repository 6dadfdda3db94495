//! Patterns for file names: `*.yml`.

use std::{fmt, str::FromStr};

use netstead_model::ParseError;

/// A pattern for the name of a file: `*` stands for any characters, `?` for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePattern(Vec<char>);

impl FilePattern {
    /// Those that Traefik reads.
    pub fn usual() -> Vec<Self> {
        ["*.yml", "*.yaml", "*.toml"].map(|text| Self(text.chars().collect())).into()
    }

    /// Takes time in line with the product of both lengths at most, and a name is short.
    pub(super) fn matches(&self, name: &str) -> bool {
        // Which beginnings of the pattern fit what was read of the name so far.
        let mut fits = vec![false; self.0.len() + 1];
        let skip_stars = |fits: &mut Vec<bool>| {
            for (place, c) in self.0.iter().enumerate() {
                if *c == '*' && fits.get(place) == Some(&true) {
                    fits.iter_mut().skip(place + 1).take(1).for_each(|fit| *fit = true);
                }
            }
        };
        fits.iter_mut().take(1).for_each(|fit| *fit = true);
        skip_stars(&mut fits);
        for c in name.chars() {
            let mut next = vec![false; fits.len()];
            for (place, wanted) in
                self.0.iter().enumerate().filter(|(place, _)| fits.get(*place) == Some(&true))
            {
                let to = match wanted {
                    '*' => place,
                    '?' => place + 1,
                    wanted if *wanted == c => place + 1,
                    _ => continue,
                };
                next.iter_mut().skip(to).take(1).for_each(|fit| *fit = true);
            }
            skip_stars(&mut next);
            fits = next;
        }
        fits.last() == Some(&true)
    }
}

impl netstead_settings::TextShape for FilePattern {}

impl FromStr for FilePattern {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = |reason: &str| Err(ParseError::new("file pattern", text, None, reason));
        match text {
            "" => wrong("it is empty"),
            text if text.contains('/') => wrong("it is for the name of a file, without directories"),
            text if text.len() > 255 => wrong("no file has so long a name"),
            text => Ok(Self(text.chars().collect())),
        }
    }
}

impl fmt::Display for FilePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|c| write!(f, "{c}"))
    }
}

impl serde::Serialize for FilePattern {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_characters_and_question_marks_for_one() {
        for (pattern, name, matches) in [
            ("*.yml", "a.yml", true),
            ("*.yml", ".yml", true),
            ("*.yml", "a.yaml", false),
            ("*.yml", "a.yml~", false),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXcYbZ", false),
            ("r?.toml", "r1.toml", true),
            ("r?.toml", "r.toml", false),
            ("*", "", true),
            ("**", "x", true),
            ("x", "", false),
        ] {
            assert_eq!(pattern.parse::<FilePattern>().unwrap().matches(name), matches, "{pattern} {name}");
        }
    }
}
