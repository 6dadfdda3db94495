//! Findings of the doctor: what is wrong, and what to do about it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::FindingState;

/// Findings of all checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DoctorOutput {
    pub findings: Vec<FindingOutput>,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FindingOutput {
    pub state: FindingState,
    /// The subject: `store`, `source.office`, `dns.lan`, …
    pub about: String,
    /// One sentence.
    pub text: String,
    /// The next step for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl FindingOutput {
    pub fn ok(about: impl Into<String>, text: impl Into<String>) -> Self {
        Self { state: FindingState::Ok, about: about.into(), text: text.into(), hint: None }
    }

    pub fn note(about: impl Into<String>, text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { state: FindingState::Note, hint: Some(hint.into()), ..Self::ok(about, text) }
    }

    pub fn problem(about: impl Into<String>, text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { state: FindingState::Problem, hint: Some(hint.into()), ..Self::ok(about, text) }
    }
}
