//! Lists of keys put together.

/// Several lists as one. Done by the compiler, which refuses what is out of bounds.
#[allow(clippy::indexing_slicing, reason = "slices have no iterators in a const")]
pub(super) const fn concat_keys<const N: usize>(lists: &[&[&'static str]]) -> [&'static str; N] {
    let mut all = [""; N];
    let (mut list, mut at) = (0, 0);
    while list < lists.len() {
        let mut key = 0;
        while key < lists[list].len() {
            all[at] = lists[list][key];
            at += 1;
            key += 1;
        }
        list += 1;
    }
    all
}
