//! All texts a regular expression matches, when they are few.

use std::collections::BTreeSet;

use regex_syntax::{
    ParserBuilder,
    hir::{Class, Hir, HirKind, Look},
};

/// More hosts than this are not listed.
const MOST: usize = 256;
/// How deep groups may stand inside each other.
const DEEPEST: u32 = 50;

/// A part of what a pattern matches: a text and whether it is known to begin at the host's first character, and to end
/// at its last.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    start: bool,
    text: String,
    end: bool,
}

/// The hosts, in lower case, or why they cannot be listed.
pub(super) fn hosts(expression: &str) -> Result<BTreeSet<String>, String> {
    let mut parser = ParserBuilder::new().nest_limit(DEEPEST).build();
    let tree = parser.parse(expression).map_err(|_| "it is not a regular expression".to_owned())?;
    let parts = parts(&tree)?;
    if parts.iter().any(|part| !part.start || !part.end) {
        return Err("without `^` and `$` it matches any number of hosts".into());
    }
    Ok(parts.into_iter().map(|part| part.text).collect())
}

fn parts(tree: &Hir) -> Result<BTreeSet<Part>, String> {
    match tree.kind() {
        HirKind::Empty => Ok([Part::default()].into()),
        HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
            Ok(text) => Ok([Part { text: text.to_lowercase(), ..Part::default() }].into()),
            Err(_) => Err("it matches what is no text".into()),
        },
        HirKind::Class(class) => characters(class),
        HirKind::Look(Look::Start) => Ok([Part { start: true, ..Part::default() }].into()),
        HirKind::Look(Look::End) => Ok([Part { end: true, ..Part::default() }].into()),
        HirKind::Look(_) => Err("it looks around, which is not followed here".into()),
        HirKind::Capture(capture) => parts(&capture.sub),
        HirKind::Alternation(choices) => {
            let mut all = BTreeSet::new();
            for choice in choices {
                all.extend(parts(choice)?);
                few(all.len())?;
            }
            Ok(all)
        }
        HirKind::Concat(pieces) => pieces
            .iter()
            .try_fold(BTreeSet::from([Part::default()]), |all, piece| after(&all, &parts(piece)?)),
        HirKind::Repetition(repetition) => {
            let Some(most) = repetition.max.filter(|most| *most <= 63) else {
                return Err(endless());
            };
            let once = parts(&repetition.sub)?;
            let mut all = BTreeSet::new();
            let mut row = BTreeSet::from([Part::default()]);
            for times in 0..=most {
                if times >= repetition.min {
                    all.extend(row.iter().cloned());
                    few(all.len())?;
                }
                if times < most {
                    row = after(&row, &once)?;
                }
            }
            Ok(all)
        }
    }
}

/// Every part of `front` followed by every part of `back`.
fn after(front: &BTreeSet<Part>, back: &BTreeSet<Part>) -> Result<BTreeSet<Part>, String> {
    few(front.len().saturating_mul(back.len()))?;
    let mut all = BTreeSet::new();
    for a in front {
        for b in back {
            // Nothing can stand before the start or after the end: such a path never matches.
            if (b.start && !a.text.is_empty()) || (a.end && !b.text.is_empty()) {
                continue;
            }
            let text = format!("{}{}", a.text, b.text);
            if text.len() > 253 {
                continue;
            }
            all.insert(Part { start: a.start || b.start, text, end: a.end || b.end });
        }
    }
    Ok(all)
}

fn characters(class: &Class) -> Result<BTreeSet<Part>, String> {
    let Class::Unicode(class) = class else { return Err("it matches what is no text".into()) };
    let mut all = BTreeSet::new();
    for range in class.ranges() {
        for c in range.start()..=range.end() {
            all.insert(Part { text: c.to_lowercase().collect(), ..Part::default() });
            few(all.len())?;
        }
    }
    Ok(all)
}

fn few(count: usize) -> Result<(), String> {
    if count > MOST { Err(endless()) } else { Ok(()) }
}

fn endless() -> String {
    format!("it matches more than {MOST} hosts; write them out, or ask for a wildcard with netstead.hostname")
}
