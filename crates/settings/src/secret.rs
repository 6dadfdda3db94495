//! A secret: written out, in a variable of the environment, in a file, or a credential of systemd.

use std::path::PathBuf;

use serde_json::{Value as Json, json};

use crate::{key::Shape, kind::BuildContext, section::Section, setting::Setting};

/// A part of the reason why a secret cannot be had, if this process lacks the variable that has it.
pub const NOT_SET: &str = " is not set";

/// Secrets are short; what is longer is another file.
const MOST_BYTES: usize = 64 * 1024;

/// The place of a secret. The value is read when something is built, so a file can be replaced.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    Value(String),
    Variable(String),
    File(PathBuf),
    /// A file of this name in `$CREDENTIALS_DIRECTORY`, as systemd's `LoadCredential=` leaves it.
    Credential(String),
}

/// The value of a secret. It has neither `Debug` nor `Serialize`, so it cannot be printed by mistake.
#[derive(Clone, PartialEq, Eq)]
#[allow(missing_debug_implementations, reason = "a secret never prints itself")]
pub struct SecretValue(String);

impl SecretValue {
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself, for the wire only.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl Secret {
    /// A secret that is written out.
    pub fn new(value: impl Into<String>) -> Self {
        Self::Value(value.into())
    }

    /// The value, or why it cannot be had. The reason never has the value in it.
    pub fn reveal(&self, context: &BuildContext) -> Result<SecretValue, String> {
        let value = self.reveal_with(&|name| context.variable(name))?;
        context.note_secret(value.expose());
        Ok(value)
    }

    /// As [`Secret::reveal`], with these variables of the environment.
    pub fn reveal_with(&self, variable: &dyn Fn(&str) -> Option<String>) -> Result<SecretValue, String> {
        let (text, whence) = match self {
            Self::Value(value) => (value.clone(), "the secret".to_owned()),
            Self::Variable(name) => {
                let value = variable(name).ok_or_else(|| format!("the variable {name}{NOT_SET}"))?;
                (value, format!("the variable {name}"))
            }
            Self::File(path) => (read_file(path)?, path.display().to_string()),
            Self::Credential(name) => {
                let directory = variable("CREDENTIALS_DIRECTORY").filter(|value| !value.is_empty());
                let directory = directory.ok_or_else(|| {
                    format!(
                        "the credential {name}: $CREDENTIALS_DIRECTORY{NOT_SET}; systemd's `LoadCredential=` sets it"
                    )
                })?;
                let path = PathBuf::from(directory).join(name);
                (read_file(&path)?, path.display().to_string())
            }
        };
        // Editors and `echo` leave a line end that is no part of the secret.
        let text = text.trim_end_matches(['\r', '\n']);
        if text.is_empty() {
            return Err(format!("{whence} is empty"));
        }
        Ok(SecretValue(text.to_owned()))
    }
}

fn read_file(path: &std::path::Path) -> Result<String, String> {
    use std::io::Read as _;

    let cannot = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    let file = std::fs::File::open(path).map_err(cannot)?;
    let limit = u64::try_from(MOST_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() > MOST_BYTES {
        return Err(format!("{} is longer than a secret can be ({MOST_BYTES} bytes)", path.display()));
    }
    String::from_utf8(bytes).map_err(|_| format!("{} is not text", path.display()))
}

/// Prints the place, never the value.
impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Value(_) => f.write_str("Secret(redacted)"),
            Self::Variable(name) => write!(f, "Secret(variable {name})"),
            Self::File(path) => write!(f, "Secret(file {})", path.display()),
            Self::Credential(name) => write!(f, "Secret(credential {name})"),
        }
    }
}

impl Setting for Secret {
    fn shape() -> Shape {
        Shape::Secret
    }

    fn read(section: &mut Section<'_, '_>, key: &str) -> Option<Self> {
        section.secret(key)
    }

    fn shown(&self) -> Json {
        match self {
            Self::Value(_) => json!("(redacted)"),
            Self::Variable(name) => json!({ "env": name }),
            Self::File(path) => json!({ "file": path.display().to_string() }),
            Self::Credential(name) => json!({ "credential": name }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exposed(secret: &Secret, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
        secret.reveal_with(variable).map(|value| value.expose().to_owned())
    }

    #[test]
    fn a_secret_is_never_shown() {
        assert_eq!(Secret::Value("hunter2".into()).shown(), json!("(redacted)"));
        assert_eq!(format!("{:?}", Secret::Value("hunter2".into())), "Secret(redacted)");
    }

    #[test]
    fn a_line_end_is_no_part_of_a_secret() {
        let variable = |name: &str| (name == "KEY").then(|| "hunter2\n".to_owned());
        assert_eq!(exposed(&Secret::Variable("KEY".into()), &variable).as_deref(), Ok("hunter2"));
        let none = exposed(&Secret::Variable("NO".into()), &variable);
        assert_eq!(none, Err("the variable NO is not set".into()));
        assert_eq!(exposed(&Secret::Value("\n".into()), &variable), Err("the secret is empty".into()));
    }

    #[test]
    fn a_credential_is_a_file_in_the_directory_of_systemd() {
        let directory = std::env::temp_dir().join(format!("netstead-credentials-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("pdns"), "hunter2\n").unwrap();
        let shown = directory.display().to_string();
        let variable = |name: &str| (name == "CREDENTIALS_DIRECTORY").then(|| shown.clone());
        let secret = Secret::Credential("pdns".into());
        assert_eq!(exposed(&secret, &variable).as_deref(), Ok("hunter2"));
        let without = exposed(&secret, &|_| None).unwrap_err();
        assert!(without.contains("$CREDENTIALS_DIRECTORY is not set"), "{without}");
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
