//! How the run went: a row per step, and the count as the last line.

use std::{fmt, time::Duration};

use super::counts::Counts;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    Failed,
}

#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) outcome: Outcome,
    pub(crate) time: Duration,
    pub(crate) counts: Counts,
}

#[derive(Debug, Default)]
pub(crate) struct Summary {
    pub(crate) rows: Vec<Row>,
}

impl Summary {
    pub(crate) fn passed(&self) -> bool {
        self.rows.iter().all(|row| row.outcome != Outcome::Failed)
    }

    /// A step that failed without a failed test to show for it (a format, a build) counts as one, so the last
    /// line never looks better than the run was.
    fn failed(&self) -> u64 {
        let failed = |row: &Row| row.counts.failed.max(u64::from(row.outcome == Outcome::Failed));
        self.rows.iter().map(failed).sum()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Row { counts, .. } in &self.rows {
            let slowest = counts.slowest.to_string();
            if !slowest.is_empty() {
                writeln!(f, "the slowest tests:\n{slowest}")?;
            }
        }
        for Row { name, outcome, time, counts } in &self.rows {
            for reason in &counts.reasons {
                writeln!(f, "skipped: {reason}")?;
            }
            let outcome = match outcome {
                Outcome::Passed => "ok",
                Outcome::Failed => "FAILED",
            };
            writeln!(f, "{name:<8}{:>8.1} s  {outcome}", time.as_secs_f64())?;
        }
        let passed: u64 = self.rows.iter().map(|row| row.counts.passed).sum();
        let skipped: u64 = self.rows.iter().map(|row| row.counts.skipped).sum();
        write!(f, "\n{passed} passed, {} failed", self.failed())?;
        if skipped > 0 {
            write!(f, ", {skipped} skipped")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, outcome: Outcome, counts: Counts) -> Row {
        Row { name: name.to_owned(), outcome, time: Duration::from_millis(1540), counts }
    }

    #[test]
    fn the_last_line_counts() {
        let mut counts = Counts {
            passed: 12,
            skipped: 1,
            reasons: vec!["full_disk: no root".into()],
            ..Counts::default()
        };
        counts.slowest.add("test full_disk ... ok <2.500s>");
        let rows = vec![
            row("fmt", Outcome::Passed, Counts::default()),
            row("test", Outcome::Passed, counts),
            row("deny", Outcome::Passed, Counts::default()),
        ];
        let summary = Summary { rows };
        assert!(summary.passed());
        assert_eq!(
            summary.to_string(),
            "the slowest tests:\n     2.5 s  full_disk\n\n\
             fmt          1.5 s  ok\n\
             skipped: full_disk: no root\n\
             test         1.5 s  ok\n\
             deny         1.5 s  ok\n\
             \n\
             12 passed, 0 failed, 1 skipped"
        );
    }

    #[test]
    fn a_failed_check_shows_in_the_count() {
        let three = Counts { passed: 1, failed: 3, ..Counts::default() };
        let rows = vec![row("fmt", Outcome::Failed, Counts::default()), row("test", Outcome::Failed, three)];
        let summary = Summary { rows };
        assert!(!summary.passed());
        assert!(summary.to_string().ends_with("\n1 passed, 4 failed"));
    }
}
