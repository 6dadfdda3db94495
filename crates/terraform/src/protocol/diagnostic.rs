//! [`Diagnostic`]: what a person reads, with the attribute it is about.

use super::messages::{self, AttributePath, PathStep, Selector};

/// One step into a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Attribute(String),
    Key(String),
    Index(usize),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    pub warning: bool,
    pub summary: String,
    pub detail: String,
    pub path: Vec<Step>,
}

impl Diagnostic {
    pub fn error(summary: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { warning: false, summary: summary.into(), detail: detail.into(), path: Vec::new() }
    }

    pub fn warning(summary: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { warning: true, ..Self::error(summary, detail) }
    }

    #[must_use]
    pub fn at(mut self, attribute: &str) -> Self {
        self.path = vec![Step::Attribute(attribute.to_owned())];
        self
    }

    #[must_use]
    pub fn step(mut self, step: Step) -> Self {
        self.path.push(step);
        self
    }
}

impl From<Diagnostic> for messages::Diagnostic {
    fn from(diagnostic: Diagnostic) -> Self {
        let Diagnostic { warning, summary, detail, path } = diagnostic;
        let attribute = (!path.is_empty()).then(|| path_of(path));
        Self { severity: if warning { 2 } else { 1 }, summary, detail, attribute }
    }
}

pub(super) fn path_of(path: Vec<Step>) -> AttributePath {
    let step = |step| match step {
        Step::Attribute(name) => Selector::Attribute(name),
        Step::Key(key) => Selector::Key(key),
        Step::Index(index) => Selector::Index(i64::try_from(index).unwrap_or(i64::MAX)),
    };
    AttributePath { steps: path.into_iter().map(|one| PathStep { selector: Some(step(one)) }).collect() }
}
