//! The rules of the house that no other tool knows.

mod dependencies;
pub(crate) mod files;
mod rooms;

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
    problems.extend(rooms::strangers()?);
    problems.extend(files::misplaced()?);
    problems.extend(documents::broken()?);
    for problem in &problems {
        eprintln!("error: {problem}");
    }
    Ok(problems.is_empty())
}
