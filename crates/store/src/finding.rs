//! [`StoreFinding`]: what a store reports to `netstead doctor`.

/// One thing that a person who asks whether all is well should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreFinding {
    pub grade: StoreFindingGrade,
    /// One sentence.
    pub text: String,
    /// The next step for a person.
    pub hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreFindingGrade {
    Fine,
    /// It may be meant so.
    Note,
    /// A person must act.
    Problem,
}

impl StoreFinding {
    pub fn fine(text: impl Into<String>) -> Self {
        Self { grade: StoreFindingGrade::Fine, text: text.into(), hint: None }
    }

    pub fn note(text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { grade: StoreFindingGrade::Note, text: text.into(), hint: Some(hint.into()) }
    }

    pub fn problem(text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { grade: StoreFindingGrade::Problem, text: text.into(), hint: Some(hint.into()) }
    }
}
