//! Tables for people: columns without lines between them.

use comfy_table::{ColumnConstraint, Table, Width, presets};
use jiff::Timestamp;

use super::{Audience, Row};
use crate::cli::Format;

/// Between two columns. Tables of usual things fit 80 columns with it.
const GAP: u16 = 2;

/// Prints tables whose columns stay where they were when more rows come later.
#[derive(Debug)]
pub(crate) struct Printer {
    wide: bool,
    look: Audience,
    widths: Vec<u16>,
}

impl Printer {
    pub(crate) fn new(format: Format, now: Timestamp) -> Self {
        let wide = format == Format::Wide;
        Self { wide, look: Audience::People { now, wide }, widths: Vec::new() }
    }

    /// One like it whose columns are where they must be.
    pub(crate) fn fresh(&self) -> Self {
        Self { wide: self.wide, look: self.look, widths: Vec::new() }
    }

    /// A table with its head, or a sentence if it would be empty.
    pub(crate) fn table<T: Row>(&mut self, items: &[T]) -> String {
        let rows = items.iter().flat_map(|item| self.rows(item)).collect();
        self.render(self.head::<T>(), true, rows)
    }

    /// The same with a word in front of each row: what became of it.
    pub(crate) fn changes<T: Row>(&mut self, items: &[(&'static str, &T)], with_head: bool) -> String {
        // As wide as the widest word that may come.
        let head = [vec!["CHANGE ".to_owned()], self.head::<T>()].concat();
        let rows =
            items.iter().map(|(what, item)| [vec![(*what).to_owned()], self.cells(*item)].concat()).collect();
        self.render(head, with_head, rows)
    }

    /// Rows under a head that is printed already.
    pub(crate) fn more<T: Row>(&mut self, items: &[T]) -> String {
        let rows = items.iter().flat_map(|item| self.rows(item)).collect();
        self.render(self.head::<T>(), false, rows)
    }

    pub(crate) fn at(&mut self, now: Timestamp) {
        self.look = Audience::People { now, wide: self.wide };
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

    /// Rows, below their head if that is asked for, or if a column is wider now than it was.
    fn render(&mut self, head: Vec<String>, with_head: bool, rows: Vec<Vec<String>>) -> String {
        let needed = |place: usize, rows: &[Vec<String>]| {
            let cells = rows.iter().filter_map(|row| row.get(place));
            let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or_default();
            u16::try_from(widest).unwrap_or(u16::MAX).saturating_add(GAP)
        };
        let before = std::mem::take(&mut self.widths);
        let grew = |place: usize| before.get(place).is_some_and(|width| *width < needed(place, &rows));
        let again = (0..head.len()).any(grew);
        let shown: Vec<Vec<String>> =
            std::iter::once(head).filter(|_| with_head || again).chain(rows).collect();
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        for (place, width) in (0..).zip(before.iter().copied().chain(std::iter::repeat(0))) {
            if shown.first().is_none_or(|row| place >= row.len()) {
                break;
            }
            self.widths.push(needed(place, &shown).max(width));
        }
        for row in shown {
            table.add_row(row);
        }
        for (place, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, GAP));
            if let Some(width) = self.widths.get(place) {
                column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(*width)));
            }
        }
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
