//! Yes and no, as people write them in labels.

use super::diagnostics::excerpt;

/// True and false in any of the spellings the tools themselves take, in any case.
pub(crate) fn read(text: &str) -> Result<bool, String> {
    let text = text.trim();
    let is = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(text));
    if is(&["true", "1", "yes", "on", "t", "y"]) {
        Ok(true)
    } else if is(&["false", "0", "no", "off", "f", "n"]) {
        Ok(false)
    } else {
        Err(format!("`{}` is neither true nor false", excerpt(text)))
    }
}
