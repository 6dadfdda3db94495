//! [`Diagnosis`]: one finding of a source about itself, for `netstead doctor`.

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grade {
    Fine,
    /// It may be meant so.
    Note,
    /// A person must act.
    Problem,
}

/// One thing that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    pub grade: Grade,
    /// One sentence.
    pub text: String,
    /// The next step.
    pub hint: Option<String>,
}

impl Diagnosis {
    pub fn fine(text: impl Into<String>) -> Self {
        Self { grade: Grade::Fine, text: text.into(), hint: None }
    }

    pub fn note(text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { grade: Grade::Note, text: text.into(), hint: Some(hint.into()) }
    }

    pub fn problem(text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { grade: Grade::Problem, text: text.into(), hint: Some(hint.into()) }
    }
}
