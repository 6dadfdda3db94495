//! Data for stdout: tables like `kubectl get`, JSON, YAML, CSV or bare names.

mod csv;
mod rows;
pub(crate) mod style;
mod table;

#[cfg(test)]
mod tests;

use std::io::{self, Write as _};

use anyhow::Context as _;
use jiff::Timestamp;
use serde::Serialize;

pub(crate) use self::{
    rows::budget,
    table::{Printer, plain},
};
use crate::cli::Format;

/// Of lines that people read.
pub(crate) const WIDTH: usize = 80;

/// Something that can stand in a table.
pub(crate) trait Row: Serialize {
    /// The columns of a table, then those that only `wide` and `csv` have.
    const COLUMNS: (&'static [&'static str], &'static [&'static str]);

    /// One cell per column, narrow ones first.
    fn cells(&self, look: Audience) -> Vec<String>;

    /// Rows of its parts, which stand below it.
    fn parts(&self, _look: Audience) -> Vec<Vec<String>> {
        Vec::new()
    }

    /// Its name, for `-o name`.
    fn name(&self) -> String;

    /// The identity by which it is found again.
    fn identity(&self) -> String {
        self.name()
    }
}

/// The reader of a cell.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Audience {
    /// A person, who wants to know how long ago something was. Only wide tables have long cells in full.
    People { now: Timestamp, wide: bool },
    /// A program, which wants to know when it was.
    Programs,
}

impl Audience {
    /// When something began.
    pub(crate) fn since(self, at: Timestamp) -> String {
        match self {
            Self::People { now, .. } => short(now.duration_since(at)),
            Self::Programs => at.to_string(),
        }
    }

    /// When something ends.
    pub(crate) fn until(self, at: Timestamp) -> String {
        match self {
            Self::People { now, .. } => short(at.duration_since(now)),
            Self::Programs => at.to_string(),
        }
    }
}

/// The two largest units, as kubectl says it: `90s`, `5m30s`, `3h10m`, `4d2h`, `400d`.
fn short(length: jiff::SignedDuration) -> String {
    let seconds = length.as_secs().max(0);
    let pair = |large: i64, small: i64, names: [&str; 2]| {
        let (whole, rest) = (seconds / large, seconds % large / small);
        if rest == 0 {
            format!("{whole}{}", names[0])
        } else {
            format!("{whole}{}{rest}{}", names[0], names[1])
        }
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..3600 => pair(60, 1, ["m", "s"]),
        3600..86_400 => pair(3600, 60, ["h", "m"]),
        86_400..864_000 => pair(86_400, 3600, ["d", "h"]),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Writes to stdout. A reader that went away (`| head`) is an error that `main` keeps quiet about.
pub(crate) fn emit(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write to stdout")
}

/// A whole list.
pub(crate) fn list<T: Row>(items: &[T], format: Option<Format>, now: Timestamp) -> anyhow::Result<()> {
    match format.unwrap_or(Format::Table) {
        Format::Json => emit(&json(items)?),
        Format::Yaml => emit(&yaml(items)?),
        Format::Csv => emit(&csv::csv(items)),
        Format::Name => emit(&names(items)),
        format @ (Format::Table | Format::Wide) => emit(&Printer::new(format, now).table(items)),
    }
}

/// One thing: an object in JSON and YAML, a row elsewhere.
pub(crate) fn one<T: Row>(item: &T, format: Format, now: Timestamp) -> anyhow::Result<()> {
    match format {
        Format::Json => emit(&json(item)?),
        Format::Yaml => emit(&yaml(item)?),
        _ => list(std::slice::from_ref(item), Some(format), now),
    }
}

/// Something that has no columns: JSON or YAML.
pub(crate) fn document<T: Serialize + ?Sized>(value: &T, format: Format) -> anyhow::Result<()> {
    match format {
        Format::Yaml => emit(&yaml(value)?),
        _ => emit(&json(value)?),
    }
}

pub(crate) fn names<T: Row>(items: &[T]) -> String {
    items.iter().map(|item| item.name() + "\n").collect()
}

pub(crate) fn json<T: Serialize + ?Sized>(value: &T) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

fn yaml<T: Serialize + ?Sized>(value: &T) -> anyhow::Result<String> {
    // By way of JSON's data model: what is text stays text whatever it looks like.
    let text = serde_saphyr::to_string(&serde_json::to_value(value)?)?;
    Ok(text.trim_end().to_owned() + "\n")
}
