//! Progress of long work; shown at a terminal only.

use indicatif::{ProgressBar, ProgressStyle};

#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Of so many.
    pub(crate) fn counted(what: &'static str, all: usize) -> Self {
        // Indicatif draws on stderr, and nothing at all when that is no terminal.
        let bar = ProgressBar::new(u64::try_from(all).unwrap_or(u64::MAX));
        if let Ok(style) = ProgressStyle::with_template("{msg} {pos}/{len} {wide_bar} {eta}") {
            bar.set_style(style);
        }
        Self { bar: bar.with_message(what) }
    }

    /// Progress in bytes, of an unknown total.
    pub(crate) fn bytes(what: &'static str) -> Self {
        let bar = ProgressBar::no_length();
        if let Ok(style) = ProgressStyle::with_template("{msg} {bytes} ({bytes_per_sec})") {
            bar.set_style(style);
        }
        Self { bar: bar.with_message(what) }
    }

    /// Progress in things, of an unknown total.
    pub(crate) fn things(what: &'static str) -> Self {
        let bar = ProgressBar::no_length();
        if let Ok(style) = ProgressStyle::with_template("{msg} {pos} ({per_sec})") {
            bar.set_style(style);
        }
        Self { bar: bar.with_message(what) }
    }

    pub(crate) fn at(&self, done: usize) {
        self.bar.set_position(u64::try_from(done).unwrap_or(u64::MAX));
    }

    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
