//! MAC addresses: the four ways to write one, and what their first byte says.

use crate::{Address, Kind, ParseError, parse::Piece};

const BYTES: usize = 6;

/// Whether frames to `address` go to a group; such an address cannot be given to an interface. False for IP.
pub fn is_multicast(address: Address) -> bool {
    first_byte(address).is_some_and(|byte| byte & 0b01 != 0)
}

/// Whether `address` was made up locally and not bought with a card. False for IP.
pub fn is_local(address: Address) -> bool {
    first_byte(address).is_some_and(|byte| byte & 0b10 != 0)
}

fn first_byte(address: Address) -> Option<u128> {
    (address.kind() == Kind::Mac).then(|| address.number() >> 40)
}

/// Whether `text` is complete and right in one of the four ways.
pub(crate) fn has_shape(text: &str) -> bool {
    read(Piece::new("", text)).is_ok()
}

/// Reads `52:54:00:aa:bb:cc`, `52-54-00-aa-bb-cc`, `5254.00aa.bbcc` or `525400aabbcc`, in either case.
pub(crate) fn read(piece: Piece<'_>) -> Result<Address, ParseError> {
    if piece.text.is_empty() {
        return Err(piece.refuse("it is empty"));
    }
    let separator = piece.text.chars().find(|c| matches!(c, ':' | '-' | '.'));
    if let Some(other) = piece.find(|c| !c.is_ascii_hexdigit() && Some(c) != separator) {
        let problem = match separator {
            Some(first) if other.text.starts_with([':', '-', '.']) => {
                format!("does not go with the `{first}` before")
            }
            _ => "is not a hexadecimal digit".into(),
        };
        return Err(other.blame("", problem));
    }
    match separator {
        Some('.') => groups(piece, &['.'], "group", 3)?,
        Some('-') => groups(piece, &['-'], "byte", BYTES)?,
        Some(_) => groups(piece, &[':'], "byte", BYTES)?,
        None if piece.text.len() != 2 * BYTES => {
            return Err(piece.blame("the address", format!("has {} digits, not 12", piece.text.len())));
        }
        None => {}
    }
    let digits = piece.text.chars().filter_map(|c| c.to_digit(16));
    let number = digits.fold(0, |number, digit| number << 4 | u128::from(digit));
    Address::new(Kind::Mac, number).ok_or_else(|| piece.refuse("it has too many digits"))
}

/// Checks that there are `count` groups, all of the same length.
fn groups(piece: Piece<'_>, separator: &[char], noun: &str, count: usize) -> Result<(), ParseError> {
    let digits = 2 * BYTES / count;
    for group in piece.split(separator) {
        match group.text.len() {
            0 => return Err(group.blame(&format!("the {noun}"), "is empty")),
            len if len == digits => {}
            1 => return Err(group.blame(&format!("the {noun}"), format!("has 1 digit, not {digits}"))),
            len => return Err(group.blame(&format!("the {noun}"), format!("has {len} digits, not {digits}"))),
        }
    }
    let found = piece.split(separator).count();
    if found == count {
        return Ok(());
    }
    let plural = if found == 1 { "" } else { "s" };
    Err(piece.refuse(format!("it has {found} {noun}{plural}, a MAC address has {count}")))
}
