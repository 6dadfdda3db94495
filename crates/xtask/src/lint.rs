//! The project's own rules, which no other tool knows.

mod crate_graph;
mod dependencies;
pub(crate) mod files;
mod kinds;
mod reads;
mod words;

use anyhow::Result;

use crate::documents;

/// Prints each broken rule. True if there is none.
pub(crate) fn check() -> Result<bool> {
    eprintln!("\n$ lint");
    for long in files::too_long()? {
        eprintln!("warning: {long}");
    }
    let mut problems = dependencies::without_reason()?;
    problems.extend(dependencies::banned()?);
    problems.extend(dependencies::shipped_test_code()?);
    problems.extend(crate_graph::forbidden_dependencies()?);
    problems.extend(files::misplaced()?);
    problems.extend(words::hard()?);
    problems.extend(reads::unlimited()?);
    problems.extend(kinds::unlisted()?);
    problems.extend(documents::broken()?);
    for problem in &problems {
        eprintln!("error: {problem}");
    }
    Ok(problems.is_empty())
}
