//! Bytes from here to there.

use std::io::{Read, Write};

/// Passes on what comes, as soon as it comes, until either end is done; `before` sees it first.
pub(crate) fn copy(mut from: impl Read, mut to: impl Write, before: impl Fn(&[u8])) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        let Some(bytes) = buffer.get(..length) else { return };
        before(bytes);
        if to.write_all(bytes).is_err() {
            return;
        }
    }
}
