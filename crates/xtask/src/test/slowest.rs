//! The tests that took longest, by what they print with `--report-time`.

use std::{fmt, time::Duration};

/// So many tests are shown.
const SHOWN: usize = 20;

/// How long each test took.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Slowest {
    tests: Vec<(Duration, String)>,
}

impl Slowest {
    /// Adds a line such as `test a::b ... ok <1.234s>`; any other is passed over.
    pub(crate) fn add(&mut self, line: &str) {
        if let Some((name, rest)) = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... "))
            && let Some((_, time)) = rest.trim_end().rsplit_once('<')
            && let Some(Ok(seconds)) = time.strip_suffix("s>").map(str::parse)
            && let Ok(time) = Duration::try_from_secs_f64(seconds)
        {
            self.tests.push((time, name.to_owned()));
        }
    }
}

impl fmt::Display for Slowest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tests: Vec<_> = self.tests.iter().collect();
        tests.sort_by(|one, other| other.cmp(one));
        for (time, name) in tests.into_iter().take(SHOWN) {
            writeln!(f, "{:>8.1} s  {name}", time.as_secs_f64())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_come_first_and_no_more_than_twenty() {
        let mut slowest = Slowest::default();
        for line in [
            "running 3 tests\n",
            "test quick ... ok <0.001s>\n",
            "test no::time ... ok\n",
            "test a::slow_one ... FAILED <61.250s>\n",
            "test later ... ignored, takes <long>\n",
            "test result: ok. 17 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.13s\n",
            "test a::slow_one has been running for over 60 seconds\n",
        ] {
            slowest.add(line);
        }
        assert_eq!(slowest.to_string(), "    61.2 s  a::slow_one\n     0.0 s  quick\n");
        for number in 0..30 {
            slowest.add(&format!("test number_{number} ... ok <2.000s>\n"));
        }
        let shown = slowest.to_string();
        assert_eq!((shown.lines().count(), shown.lines().next()), (20, Some("    61.2 s  a::slow_one")));
    }
}
