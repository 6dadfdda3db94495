//! [`SettingsError`]: what is wrong with the settings of a provider, found before anything is sent.

/// A sentence for the person who wrote the settings; it names the key and never a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct SettingsError {
    /// The key of the provider's table, for example `url`.
    pub key: &'static str,
    pub problem: String,
}

impl SettingsError {
    pub(crate) fn new(key: &'static str, problem: impl Into<String>) -> Self {
        Self { key, problem: problem.into() }
    }
}
