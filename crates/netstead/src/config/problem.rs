//! What is wrong with the configuration, and where.

use std::{
    collections::HashSet,
    fmt::{self, Display},
    ops::Range,
    path::{Path, PathBuf},
    str::FromStr,
};

use super::text_index::TextIndex;

/// Where a value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ValueOrigin {
    /// These bytes of the file.
    File(Range<usize>),
    /// This variable of the environment.
    Variable(String),
}

/// So many problems are told one by one: nobody reads more, and a text of nothing but mistakes would have a million.
const MOST: usize = 1000;

/// One thing that is wrong, for people.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Problem {
    /// `netstead.toml:3:1`, or the name of a variable.
    pub(crate) at: String,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    order: usize,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.message)
    }
}

/// All problems of one reading.
#[derive(Debug)]
pub(super) struct Problems {
    path: PathBuf,
    text: String,
    /// Made with the first problem: most files have none.
    index: Option<TextIndex>,
    found: Vec<Problem>,
    /// The same as `found`, to know what was told already.
    told: HashSet<Problem>,
    /// How many were found after [`MOST`].
    untold: usize,
    /// The text comes from somebody else: files that it names are not looked at.
    pub(super) foreign: bool,
}

impl Problems {
    pub(super) fn new(path: &Path, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            index: None,
            found: Vec::new(),
            told: HashSet::new(),
            untold: 0,
            foreign: false,
        }
    }

    /// The name that a table is keyed by, if it can be one.
    pub(super) fn name<T: FromStr<Err: Display>>(
        &mut self,
        place: &ValueOrigin,
        name: &str,
        hint: Option<&str>,
    ) -> Option<T> {
        name.parse().map_err(|error: T::Err| self.add(place, error.to_string(), hint.map(Into::into))).ok()
    }

    pub(super) fn add(&mut self, place: &ValueOrigin, message: impl Into<String>, hint: Option<String>) {
        if self.is_full() {
            self.untold += 1;
            return;
        }
        let (at, order) = match place {
            ValueOrigin::File(bytes) => {
                let index = self.index.get_or_insert_with(|| TextIndex::new(&self.text));
                let (line, column) = index.position(bytes.start);
                (format!("{}:{line}:{column}", self.path.display()), bytes.start)
            }
            ValueOrigin::Variable(name) => (name.clone(), usize::MAX),
        };
        let problem = Problem { at, message: message.into(), hint, order };
        if self.told.insert(problem.clone()) {
            self.found.push(problem);
        }
    }

    /// Whether what is found from now on is only counted.
    pub(super) fn is_full(&self) -> bool {
        self.found.len() >= MOST
    }

    pub(super) fn any(&self) -> bool {
        !self.found.is_empty()
    }

    /// `value` if nothing is wrong, else everything that is, in the order of the file.
    pub(super) fn none_or<T>(mut self, value: T) -> Result<T, Vec<Problem>> {
        if self.found.is_empty() {
            return Ok(value);
        }
        self.found.sort_by_key(|problem| problem.order);
        if self.untold > 0 {
            let message = "there are more problems than these".to_owned();
            let (at, order) = (self.path.display().to_string(), usize::MAX);
            self.found.push(Problem { at, message, hint: Some("correct these first".to_owned()), order });
        }
        Err(self.found)
    }
}

/// The hint for a name that is not known: the nearest that is, or all of them.
pub(super) fn nearest(name: &str, known: &[&str]) -> String {
    let likeness = |known: &&&str| strsim::jaro_winkler(&name.to_lowercase(), &known.to_lowercase());
    let best = known.iter().max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
    match best {
        Some(best) if likeness(&best) > 0.75 => format!("did you mean `{best}`?"),
        _ => {
            let known: Vec<_> = known.iter().map(|known| format!("`{known}`")).collect();
            format!("known are {}", known.join(", "))
        }
    }
}
