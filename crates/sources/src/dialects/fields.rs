//! The fields of one record or router: labels with the same prefix.

use std::{collections::BTreeMap, str::FromStr};

use netstead_model::{Ident, Name, RecordType};

use super::{
    TargetSpec, boolean,
    diagnostics::{Diagnostics, excerpt},
    list,
};

/// The longest time a record may be kept by those who asked for it, of RFC 2181.
const MOST_TTL: u32 = 0x7fff_ffff;

/// A field that is there and cannot be used. It has been noted, and what depends on it must not be guessed.
#[derive(Debug)]
pub(super) struct Unusable;

/// Fields of the labels that begin with `prefix`, each noted when it cannot be read.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    /// With its last dot: `netstead.records.web.`.
    prefix: String,
    values: BTreeMap<&'a str, &'a str>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(prefix: String) -> Self {
        Self { prefix, values: BTreeMap::new() }
    }

    pub(super) fn insert(&mut self, field: &'a str, value: &'a str) {
        self.values.insert(field, value);
    }

    pub(super) fn label(&self, field: &str) -> String {
        excerpt(&format!("{}{field}", self.prefix))
    }

    pub(super) fn has(&self, field: &str) -> bool {
        self.values.contains_key(field)
    }

    /// A field that is not empty.
    pub(super) fn text(&self, field: &str) -> Option<&'a str> {
        self.values.get(field).map(|text| text.trim()).filter(|text| !text.is_empty())
    }

    pub(super) fn note(&self, field: &str, problem: impl std::fmt::Display, notes: &mut Diagnostics) {
        notes.add(format!("{}: {problem}", self.label(field)));
    }

    /// Notes a field that is there and cannot be used.
    pub(super) fn unusable(
        &self,
        field: &str,
        problem: impl std::fmt::Display,
        notes: &mut Diagnostics,
    ) -> Unusable {
        notes.unreadable(format!("{}: {problem}", self.label(field)));
        Unusable
    }

    /// A field of any type that reads itself; none when it is not there.
    pub(super) fn parsed<T: FromStr>(
        &self,
        field: &str,
        notes: &mut Diagnostics,
    ) -> Result<Option<T>, Unusable>
    where
        T::Err: std::fmt::Display,
    {
        let Some(text) = self.text(field) else { return Ok(None) };
        text.parse().map(Some).map_err(|error: T::Err| self.unusable(field, error, notes))
    }

    /// A number; one that cannot be read is noted and [`Unusable`].
    pub(super) fn number(&self, field: &str, notes: &mut Diagnostics) -> Result<Option<u16>, Unusable> {
        let Some(text) = self.text(field) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| {
            self.unusable(field, format!("`{}` is not a number of at most 65535", excerpt(text)), notes)
        })
    }

    /// A time to live; one that cannot be read is noted and left out, as if it were not there.
    pub(super) fn ttl(&self, notes: &mut Diagnostics) -> Option<u32> {
        let text = self.text("ttl")?;
        let ttl = text.parse().ok().filter(|ttl| (1..=MOST_TTL).contains(ttl));
        if ttl.is_none() {
            self.note("ttl", format!("`{}` is not a number of seconds, at least 1", excerpt(text)), notes);
        }
        ttl
    }

    /// Yes or no; what is neither is noted and left out.
    pub(super) fn flag(&self, field: &str, notes: &mut Diagnostics) -> Option<bool> {
        let text = self.text(field)?;
        boolean::read(text).map_err(|error| self.note(field, error, notes)).ok()
    }

    /// The type of record, in any case.
    pub(super) fn kind(&self, notes: &mut Diagnostics) -> Result<Option<RecordType>, Unusable> {
        self.parsed("type", notes)
    }

    pub(super) fn target(&self, notes: &mut Diagnostics) -> Result<Option<TargetSpec>, Unusable> {
        self.parsed("target", notes)
    }

    /// The providers that these fields name together. One bad name makes all unusable: without it the record would go
    /// to more servers than was meant.
    pub(super) fn providers(&self, fields: &[&str], notes: &mut Diagnostics) -> Result<Vec<Ident>, Unusable> {
        let mut providers = Vec::new();
        for field in fields.iter().filter(|field| self.has(field)) {
            let before = providers.len();
            for word in list::words(self.values.get(field).copied().unwrap_or_default()) {
                match word.to_ascii_lowercase().parse::<Ident>() {
                    Ok(provider) if providers.contains(&provider) => {}
                    Ok(provider) => providers.push(provider),
                    Err(error) => return Err(self.unusable(field, error, notes)),
                }
                if providers.len() > MOST_PROVIDERS {
                    return Err(self.unusable(field, format!("more than {MOST_PROVIDERS} providers"), notes));
                }
            }
            if providers.len() == before && before == 0 {
                return Err(self.unusable(field, "it names no provider", notes));
            }
        }
        Ok(providers)
    }

    /// The names in these fields, each with the label it stands in. A field of which a part is no name gives none: half of
    /// what was meant may be another name.
    pub(super) fn names(&self, fields: &[&str], notes: &mut Diagnostics) -> Vec<(Name, String)> {
        let mut names = Vec::new();
        for field in fields {
            let label = self.label(field);
            let text = self.values.get(field).copied().unwrap_or_default();
            if let Some(part) = list::parts(text).find(|part| is_torn(part)) {
                let part = excerpt(part);
                notes.unreadable(format!("{label}: `{part}` has a space in it; write a comma between names"));
                continue;
            }
            let read: Vec<_> = list::words(text).map(|word| (word, word.parse::<Name>())).collect();
            let wrong = read.iter().any(|(_, name)| name.is_err());
            for (word, name) in read {
                match name {
                    Ok(name) if !wrong => names.push((name, label.clone())),
                    Ok(_) => notes.unreadable(format!(
                        "{label}: no record is made for {} while another part of the label is no name",
                        excerpt(word)
                    )),
                    Err(error) => notes.unreadable(format!("{label}: {error}")),
                }
            }
        }
        names
    }

    /// Notes every field that is none of `known`, with the nearest that is.
    pub(super) fn check(&self, known: &[&str], notes: &mut Diagnostics) {
        for field in self.values.keys().filter(|field| !known.contains(field) && !field.starts_with("meta."))
        {
            let short = field.len() <= LONGEST_FIELD;
            let near = known.iter().map(|key| (strsim::damerau_levenshtein(key, field), key));
            let near = if short { near.min().filter(|(far, _)| *far <= 2) } else { None };
            let hint =
                near.map_or(String::new(), |(_, key)| format!("; did you mean `{}{key}`?", self.prefix));
            notes.add(format!("{} is no label of this dialect{hint}", self.label(field)));
        }
    }
}

/// Whether white space tears one name into several: not all of the words are full names.
fn is_torn(part: &str) -> bool {
    let mut words = part.split_whitespace();
    part.contains(char::is_whitespace) && words.any(|word| !word.contains('.'))
}

/// Longer words are not worth comparing with real fields.
const LONGEST_FIELD: usize = 40;
const MOST_PROVIDERS: usize = 32;
