//! A secret: written out, in a variable of the environment, or in a file.

use std::{fmt, path::PathBuf};

use anyhow::{Context as _, bail};
use netstead_wire::files;
use serde::{Serialize, Serializer, ser::SerializeMap as _};

/// Where a secret is to be had. It is never printed, and read only when it is needed, so a file can be replaced.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Secret {
    Value(String),
    Variable(String),
    File(PathBuf),
}

impl Secret {
    pub(crate) fn reveal(&self, variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<String> {
        let (text, whence) = match self {
            Self::Value(value) => (value.clone(), "the secret".to_owned()),
            Self::Variable(name) => {
                let value = variable(name).with_context(|| format!("the variable {name} is not set"))?;
                (value, format!("the variable {name}"))
            }
            Self::File(path) => {
                let whence = path.display().to_string();
                let read = files::read_text(path, files::MOST_OF_SECRET);
                (read.with_context(|| format!("cannot read {whence}"))?, whence)
            }
        };
        // Editors and `echo` leave a line end that nobody means.
        let text = text.trim_end_matches(['\r', '\n']);
        if text.is_empty() {
            bail!("{whence} is empty");
        }
        Ok(text.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(_) => f.write_str("Secret(redacted)"),
            Self::Variable(name) => write!(f, "Secret(variable {name})"),
            Self::File(path) => write!(f, "Secret(file {})", path.display()),
        }
    }
}

/// Where it is, never what.
impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (place, value) = match self {
            Self::Value(_) => return serializer.serialize_str("(redacted)"),
            Self::Variable(name) => ("env", name.clone()),
            Self::File(path) => ("file", path.display().to_string()),
        };
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(place, &value)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_printed() {
        assert_eq!(format!("{:?}", Secret::Value("hunter2".into())), "Secret(redacted)");
    }

    #[test]
    fn a_line_end_is_no_part_of_a_secret() {
        let variable = |name: &str| (name == "KEY").then(|| "hunter2\n".to_owned());
        assert_eq!(Secret::Variable("KEY".into()).reveal(variable).unwrap(), "hunter2");
        assert!(Secret::Variable("NO".into()).reveal(variable).is_err());
        assert!(Secret::Value("\n".into()).reveal(variable).is_err());
    }
}
