//! A table for people, and the same as JSON.

use std::{path::Path, process::ExitCode};

/// Figures and the targets they are held against.
#[derive(Debug, Default)]
pub struct Report {
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    what: String,
    value: f64,
    unit: &'static str,
    target: Option<(String, bool)>,
}

impl Report {
    pub fn note(&mut self, what: impl Into<String>, value: f64, unit: &'static str) {
        self.push(Row { what: what.into(), value, unit, target: None });
    }

    /// A figure with what it should be; a missed target is shown, not hidden.
    pub fn judge(
        &mut self,
        what: impl Into<String>,
        value: f64,
        unit: &'static str,
        target: &str,
        met: bool,
    ) {
        self.push(Row { what: what.into(), value, unit, target: Some((target.to_owned(), met)) });
    }

    fn push(&mut self, row: Row) {
        let target = row
            .target
            .as_ref()
            .map(|(text, met)| format!("  {text}: {}", if *met { "met" } else { "MISSED" }));
        println!("{:<58} {:>12} {:<10}{}", row.what, human(row.value), row.unit, target.unwrap_or_default());
        self.rows.push(row);
    }

    pub fn finish(self, json: Option<&Path>) -> ExitCode {
        let Some(path) = json else { return ExitCode::SUCCESS };
        let rows: Vec<_> = self
            .rows
            .iter()
            .map(|row| {
                serde_json::json!({
                    "what": row.what, "value": row.value, "unit": row.unit,
                    "target": row.target.as_ref().map(|(text, _)| text),
                    "met": row.target.as_ref().map(|(_, met)| met),
                })
            })
            .collect();
        match std::fs::write(path, serde_json::Value::from(rows).to_string() + "\n") {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {} cannot be written: {error}", path.display());
                ExitCode::FAILURE
            }
        }
    }
}

fn human(value: f64) -> String {
    if value >= 1000.0 {
        let whole = format!("{value:.0}");
        let digits: Vec<char> = whole.chars().rev().collect();
        let groups: Vec<String> = digits.chunks(3).map(|group| group.iter().rev().collect()).collect();
        groups.into_iter().rev().collect::<Vec<_>>().join(" ")
    } else {
        format!("{value:.2}")
    }
}

/// The middle of an odd number of figures.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
