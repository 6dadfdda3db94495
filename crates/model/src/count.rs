/// A count for people: the very large ones are powers of two, because twenty digits cannot be read.
#[must_use]
pub fn readable_count(number: u128) -> String {
    if number < 1 << 40 { number.to_string() } else { format!("~2^{}", ilog2_rounded(number)) }
}

fn ilog2_rounded(number: u128) -> u32 {
    let down = number.ilog2();
    // Closer to the next power than to this one.
    if down < 127 && number > (1 << down) + (1 << (down - 1)) { down + 1 } else { down }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_reads_twenty_digits() {
        let counts = [0, 151, (1 << 40) - 1, 1 << 40, (1 << 64) - 2, 3 << 70, (3 << 70) + 1, u128::MAX];
        let words = counts.map(readable_count);
        assert_eq!(words, ["0", "151", "1099511627775", "~2^40", "~2^64", "~2^71", "~2^72", "~2^127"]);
    }
}
