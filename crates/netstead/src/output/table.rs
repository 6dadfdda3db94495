//! Tables for people: columns without lines between them.

use comfy_table::{ColumnConstraint, Table, Width, presets};
use jiff::Timestamp;

use super::{Audience, Row};
use crate::cli::Format;

/// Prints tables whose columns stay where they were when more rows come later.
#[derive(Debug)]
pub(crate) struct Printer {
    wide: bool,
    look: Audience,
    widths: Vec<u16>,
}

impl Printer {
    pub(crate) fn new(format: Format, now: Timestamp) -> Self {
        Self { wide: format == Format::Wide, look: Audience::People { now }, widths: Vec::new() }
    }

    /// One like it whose columns are where they must be.
    pub(crate) fn fresh(&self) -> Self {
        Self { wide: self.wide, look: self.look, widths: Vec::new() }
    }

    /// A table with its head, or a sentence if it would be empty.
    pub(crate) fn table<T: Row>(&mut self, items: &[T]) -> String {
        let head = self.head::<T>();
        let rows = items.iter().flat_map(|item| self.rows(item)).collect();
        self.render(Some(head), rows)
    }

    /// The same with a word in front of each row: what became of it.
    pub(crate) fn changes<T: Row>(&mut self, items: &[(&'static str, &T)], with_head: bool) -> String {
        let head = with_head.then(|| [vec!["CHANGE".to_owned()], self.head::<T>()].concat());
        let rows =
            items.iter().map(|(what, item)| [vec![(*what).to_owned()], self.cells(*item)].concat()).collect();
        self.render(head, rows)
    }

    /// Rows under a head that is printed already.
    pub(crate) fn more<T: Row>(&mut self, items: &[T]) -> String {
        let rows = items.iter().flat_map(|item| self.rows(item)).collect();
        self.render(None, rows)
    }

    pub(crate) fn at(&mut self, now: Timestamp) {
        self.look = Audience::People { now };
    }

    fn head<T: Row>(&self) -> Vec<String> {
        let (narrow, wide) = T::COLUMNS;
        narrow.iter().chain(wide.iter().filter(|_| self.wide)).map(|&column| column.to_owned()).collect()
    }

    /// The row of an item, and those of its parts.
    fn rows<T: Row>(&self, item: &T) -> Vec<Vec<String>> {
        let parts = item.parts(self.look).into_iter().map(|cells| self.shown::<T>(cells));
        std::iter::once(self.cells(item)).chain(parts).collect()
    }

    fn cells<T: Row>(&self, item: &T) -> Vec<String> {
        self.shown::<T>(item.cells(self.look))
    }

    fn shown<T: Row>(&self, mut cells: Vec<String>) -> Vec<String> {
        if !self.wide {
            cells.truncate(T::COLUMNS.0.len());
        }
        cells.into_iter().map(|cell| if cell.is_empty() { "-".to_owned() } else { plain(&cell) }).collect()
    }

    fn render(&mut self, head: Option<Vec<String>>, rows: Vec<Vec<String>>) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        if let Some(head) = head {
            table.add_row(head);
        }
        for row in rows {
            table.add_row(row);
        }
        for (place, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, 3));
            if let Some(width) = self.widths.get(place) {
                column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(*width)));
            }
        }
        let widths = table.column_max_content_widths().into_iter().map(|width| width.saturating_add(3));
        let before = std::mem::take(&mut self.widths).into_iter().chain(std::iter::repeat(0));
        self.widths = widths.zip(before).map(|(now, before)| now.max(before)).collect();
        let mut text: String = table.lines().map(|line| line.trim_end().to_owned() + "\n").collect();
        if text.trim().is_empty() {
            text.clear();
        }
        text
    }
}

/// `text` without anything that could move a cursor or start a new line.
pub(crate) fn plain(text: &str) -> String {
    if text.chars().any(char::is_control) {
        text.chars().flat_map(escaped).collect()
    } else {
        text.to_owned()
    }
}

fn escaped(c: char) -> impl Iterator<Item = char> {
    let control = c.is_control();
    (!control).then_some(c).into_iter().chain(control.then(|| c.escape_default()).into_iter().flatten())
}
