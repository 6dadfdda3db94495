//! Finding overlaps among many lists of ranges.

use std::collections::BTreeSet;

use crate::Range;

/// The pairs of lists that have an address in common, by their places, the smaller place first; sorted. At most `most` of
/// them are found.
///
/// The ranges are sorted once and swept from the lowest address up, so lists that do not overlap cost no comparison with
/// each other.
pub fn overlapping_pairs<'a>(
    lists: impl IntoIterator<Item = &'a [Range]>,
    most: usize,
) -> Vec<(usize, usize)> {
    let mut all: Vec<(Range, usize)> = Vec::new();
    for (place, list) in lists.into_iter().enumerate() {
        // A list that overlaps itself is no pair.
        all.extend(Range::joined(list.to_vec()).into_iter().map(|range| (range, place)));
    }
    all.sort_unstable();
    let mut pairs = BTreeSet::new();
    // Ranges that reach as far as where the sweep is.
    let mut open: Vec<(Range, usize)> = Vec::new();
    for (range, place) in all {
        open.retain(|(before, _)| before.contains(range.first()));
        for (_, other) in &open {
            pairs.insert((place.min(*other), place.max(*other)));
        }
        if pairs.len() >= most {
            break;
        }
        open.push((range, place));
    }
    pairs.into_iter().take(most).collect()
}
