//! Problems of the configuration, each with its place.

use std::{
    cell::OnceCell,
    collections::HashSet,
    fmt::{self, Display},
    ops::Range,
    path::{Path, PathBuf},
    str::FromStr,
};

use crate::text_index::TextIndex;

/// Where a value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueOrigin {
    /// These bytes of the file.
    File(Range<usize>),
    /// This variable of the environment.
    Variable(String),
    /// A default, or a value that the program made.
    Nowhere,
}

/// So many problems are listed: no person reads more, and a text of nothing but mistakes would have a million.
const MOST: usize = 1000;

/// One thing that is wrong, for people.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Problem {
    /// `netstead.toml:3:1`, or the name of a variable.
    pub at: String,
    pub message: String,
    pub hint: Option<String>,
    order: usize,
}

impl Problem {
    /// A problem that shows after the reading, at a place that was noted then.
    pub fn new(at: impl Into<String>, message: impl Into<String>) -> Self {
        Self { at: at.into(), message: message.into(), hint: None, order: usize::MAX }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.message)
    }
}

/// All problems of one reading.
#[derive(Debug)]
pub struct Problems {
    path: PathBuf,
    text: String,
    /// Made with the first place that is asked for: most files have no problem.
    index: OnceCell<TextIndex>,
    found: Vec<Problem>,
    /// The same as `found`, to list each problem once.
    listed: HashSet<Problem>,
    /// The number that was found after [`MOST`].
    unlisted: usize,
    /// Nothing is wrong, and a person should know all the same.
    warnings: Vec<Problem>,
}

impl Problems {
    pub fn new(path: &Path, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            index: OnceCell::new(),
            found: Vec::new(),
            listed: HashSet::new(),
            unlisted: 0,
            warnings: Vec::new(),
        }
    }

    /// The directory of the file: paths in it are relative to it.
    pub fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// The name that a table is keyed by, if it can be one.
    pub fn name<T: FromStr<Err: Display>>(
        &mut self,
        place: &ValueOrigin,
        name: &str,
        hint: Option<&str>,
    ) -> Option<T> {
        name.parse().map_err(|error: T::Err| self.add(place, error.to_string(), hint.map(Into::into))).ok()
    }

    pub fn add(&mut self, place: &ValueOrigin, message: impl Into<String>, hint: Option<String>) {
        if self.is_full() {
            self.unlisted += 1;
            return;
        }
        let problem = self.problem(place, message.into(), hint);
        if self.listed.insert(problem.clone()) {
            self.found.push(problem);
        }
    }

    /// Whether problems that are found from now on are only counted.
    pub fn is_full(&self) -> bool {
        self.found.len() >= MOST
    }

    /// Notes what is allowed and probably not meant.
    pub fn warn(&mut self, place: &ValueOrigin, message: impl Into<String>, hint: Option<String>) {
        if self.warnings.len() >= MOST {
            return;
        }
        let problem = self.problem(place, message.into(), hint);
        if !self.warnings.contains(&problem) {
            self.warnings.push(problem);
        }
    }

    fn problem(&self, place: &ValueOrigin, message: String, hint: Option<String>) -> Problem {
        let order = match place {
            ValueOrigin::File(bytes) => bytes.start,
            ValueOrigin::Variable(_) | ValueOrigin::Nowhere => usize::MAX,
        };
        Problem { at: self.at(place), message, hint, order }
    }

    /// A place for people: `netstead.toml:3:1`, or the name of a variable.
    pub fn at(&self, place: &ValueOrigin) -> String {
        match place {
            ValueOrigin::File(bytes) => {
                let index = self.index.get_or_init(|| TextIndex::new(&self.text));
                let (line, column) = index.position(bytes.start);
                format!("{}:{line}:{column}", self.path.display())
            }
            ValueOrigin::Variable(name) => name.clone(),
            ValueOrigin::Nowhere => self.path.display().to_string(),
        }
    }

    pub fn any(&self) -> bool {
        !self.found.is_empty()
    }

    /// Gives `value` and the warnings if nothing is wrong, else everything that is, in the order of the file.
    pub fn none_or<T>(mut self, value: T) -> Result<(T, Vec<Problem>), Vec<Problem>> {
        self.found.sort_by_key(|problem| problem.order);
        if self.unlisted > 0 {
            let more = Problem::new(self.path.display().to_string(), "there are more problems than these");
            self.found.push(Problem { hint: Some("correct these first".to_owned()), ..more });
        }
        self.warnings.sort_by_key(|problem| problem.order);
        if self.found.is_empty() { Ok((value, self.warnings)) } else { Err(self.found) }
    }
}

/// The hint for a name that is not known: the nearest that is, or all of them.
pub fn nearest(name: &str, known: &[&str]) -> String {
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
