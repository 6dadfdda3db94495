//! Finds line and column of a byte without reading the text again for each.

/// So many bytes are counted at most to find a column.
const STEP: usize = 1024;

/// Where the lines of a text begin, and how many characters are before every [`STEP`]th byte.
#[derive(Debug)]
pub(crate) struct TextIndex {
    text: String,
    lines: Vec<usize>,
    characters: Vec<usize>,
}

impl TextIndex {
    pub(crate) fn new(text: &str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(breaks).collect();
        let mut characters = vec![0];
        for block in text.as_bytes().chunks(STEP) {
            characters.push(characters.last().copied().unwrap_or_default() + count(block));
        }
        Self { text: text.to_owned(), lines, characters }
    }

    /// Line and column of a byte, both counted from 1, the column in characters.
    pub(crate) fn position(&self, byte: usize) -> (usize, usize) {
        let end = (0..=byte.min(self.text.len())).rev().find(|at| self.text.is_char_boundary(*at));
        let end = end.unwrap_or_default();
        let line = self.lines.partition_point(|start| *start <= end);
        let start = line.checked_sub(1).and_then(|at| self.lines.get(at)).copied().unwrap_or_default();
        (line, self.characters_before(end) - self.characters_before(start) + 1)
    }

    fn characters_before(&self, byte: usize) -> usize {
        let block = byte / STEP;
        let before = self.characters.get(block).copied().unwrap_or_default();
        before + self.text.as_bytes().get(block * STEP..byte).map_or(0, count)
    }
}

/// Characters, counted by the bytes that begin one.
fn count(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0b1100_0000 != 0b1000_0000).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_what_counting_finds() {
        let line = "bücher = \"€𝄞\" # ";
        let text = format!("{}\n\n{}\nx", line.repeat(200), line.repeat(3));
        let index = TextIndex::new(&text);
        for byte in 0..text.len() + 3 {
            let end = (0..=byte.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap();
            let before = &text[..end];
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
            assert_eq!(index.position(byte), (line, column), "{byte}");
        }
        assert_eq!(TextIndex::new("").position(7), (1, 1));
    }
}
