//! Texts as phpIPAM gives them back: some versions write HTML entities, all remove tags.

/// Entities that PHP writes.
const ENTITIES: &[(&str, &str)] = &[
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&quot;", "\""),
    ("&#039;", "'"),
    ("&#39;", "'"),
    ("&apos;", "'"),
    ("&amp;", "&"),
];

/// A text without entities, tags and line ends. Cleaning it again changes nothing, so a text that was written clean is read
/// as it was written, by whichever version.
pub(crate) fn clean(text: &str) -> String {
    let mut text = text.to_owned();
    while let Some(next) = decoded(&text) {
        text = next;
    }
    let shown = |c: char| match c {
        '<' => '(',
        '>' => ')',
        other => other,
    };
    let text: String = text.chars().map(shown).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text with its entities replaced once; none if it has none.
fn decoded(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut found) = (text, false);
    while let Some(at) = rest.find('&') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let entity = ENTITIES.iter().find_map(|(entity, c)| Some((*c, from.strip_prefix(entity)?)));
        if let Some((c, after)) = entity {
            out.push_str(c);
            (rest, found) = (after, true);
        } else {
            out.push('&');
            rest = from.get(1..).unwrap_or_default();
        }
    }
    out.push_str(rest);
    found.then_some(out)
}

/// The first characters of a text, for a column that has room for so many.
pub(crate) fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect::<String>().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_text_stays_as_it_is_and_an_escaped_one_becomes_what_it_was() {
        for (text, wanted) in [
            ("R&amp;D", "R&D"),
            ("R&amp;amp;D", "R&D"),
            ("R&D & co", "R&D & co"),
            ("a &lt;b&gt; c", "a (b) c"),
            ("&quot;x&quot; &#039;y&#039;", "\"x\" 'y'"),
            ("two\r\n lines", "two lines"),
            ("", ""),
        ] {
            assert_eq!(clean(text), wanted, "{text}");
            assert_eq!(clean(wanted), wanted, "{text}");
        }
        assert_eq!(cut("abc def", 4), "abc");
    }
}
