//! Counts tests by what they print.

use super::slowest::Slowest;

/// The sum over all test binaries.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
    /// Why tests skipped themselves.
    pub(crate) reasons: Vec<String>,
    pub(crate) slowest: Slowest,
}

impl Counts {
    /// Adds a line such as `test result: ok. 17 passed; 0 failed; 1 ignored; …`, or the time of one test.
    pub(crate) fn add(&mut self, line: &str) {
        self.slowest.add(line);
        let Some((_, counts)) = line.strip_prefix("test result: ").and_then(|rest| rest.split_once(". "))
        else {
            return;
        };
        for part in counts.split("; ") {
            let Some((number, what)) = part.split_once(' ') else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            match what.trim_end() {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.skipped += number,
                _ => {}
            }
        }
    }

    /// Takes in tests that returned early, which so far count as passed.
    pub(crate) fn skip(&mut self, reasons: impl Iterator<Item = String>) {
        for reason in reasons {
            self.passed = self.passed.saturating_sub(1);
            self.skipped += 1;
            self.reasons.push(reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_all_binaries_add_up() {
        let mut counts = Counts::default();
        for line in [
            "running 3 tests\n",
            "test a ... ok\n",
            "test result: ok. 17 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.13s\n",
            "test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s\n",
            "test result: of what?\n",
        ] {
            counts.add(line);
        }
        counts.skip(["no root".to_owned()].into_iter());
        let reasons = vec!["no root".to_owned()];
        let slowest = Slowest::default();
        assert_eq!(counts, Counts { passed: 18, failed: 3, skipped: 2, reasons, slowest });
    }
}
