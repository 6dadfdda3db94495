//! [`Diagnostics`]: the reasons why labels gave no name, collected while they are read.

/// More than anybody reads; the rest is counted.
const MOST: usize = 50;
const SHOWN: usize = 80;

/// Sentences for people, each once, and not without end.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    sentences: Vec<String>,
    more: usize,
    unclear: bool,
}

impl Diagnostics {
    pub(crate) fn add(&mut self, sentence: impl Into<String>) {
        if self.sentences.len() >= MOST {
            self.more += 1;
            return;
        }
        let sentence = sentence.into();
        if !self.sentences.contains(&sentence) {
            self.sentences.push(sentence);
        }
    }

    /// As [`Diagnostics::add`], for a label that asks for names and cannot be read: names it asked for before are kept.
    pub(crate) fn unreadable(&mut self, sentence: impl Into<String>) {
        self.unclear = true;
        self.add(sentence);
    }

    pub(crate) fn is_unclear(&self) -> bool {
        self.unclear
    }

    pub(crate) fn into_sentences(mut self) -> Vec<String> {
        if self.more > 0 {
            self.sentences.push(format!("and {} more of the kind", self.more));
        }
        self.sentences
    }
}

/// Somebody's text as a sentence may repeat it: short, and nothing that moves a cursor.
pub(crate) fn excerpt(text: &str) -> String {
    let mut out: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN).is_some() {
        out.push('…');
    }
    out
}
