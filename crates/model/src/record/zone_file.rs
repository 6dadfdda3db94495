//! The small grammar of zone files: fields, quotes and escapes.

use std::fmt;

use crate::{ParseError, parse::Piece};

/// The most bytes a character string has.
pub(super) const MOST_OF_STRING: usize = 255;

/// One field of a value.
#[derive(Debug)]
pub(super) struct Field<'a> {
    /// As it was written.
    pub(super) piece: Piece<'a>,
    /// Without quotes and escapes.
    pub(super) bytes: Vec<u8>,
}

/// Cuts a value into its fields: at white space, outside quotes.
pub(super) fn fields(piece: Piece<'_>) -> Result<Vec<Field<'_>>, ParseError> {
    let mut fields = Vec::new();
    let mut rest = piece.text.trim_ascii_start();
    while !rest.is_empty() {
        let (field, after) = field(piece.cut(rest))?;
        fields.push(field);
        rest = after.trim_ascii_start();
    }
    Ok(fields)
}

/// The field `piece` begins with, and what follows it. A field that begins with a quote ends with one.
fn field(piece: Piece<'_>) -> Result<(Field<'_>, &str), ParseError> {
    let whole = piece.text.starts_with('"');
    let mut quoted = false;
    let mut bytes = Vec::new();
    let mut chars = piece.text.char_indices();
    let mut end = piece.text.len();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' if quoted && whole => {
                quoted = false;
                end = at + 1;
                break;
            }
            '"' => quoted = !quoted,
            '\\' => bytes.extend(escape(piece, at, &mut chars)?),
            c if c.is_ascii_whitespace() && !quoted => {
                end = at;
                break;
            }
            c => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    if quoted {
        return Err(piece.refuse("a quote is not closed"));
    }
    let (text, rest) = piece.text.split_at_checked(end).unwrap_or((piece.text, ""));
    Ok((Field { piece: piece.cut(text), bytes }, rest))
}

/// Reads after a backslash: three digits of a byte, or a character that means itself.
fn escape(piece: Piece<'_>, at: usize, chars: &mut std::str::CharIndices<'_>) -> Result<Vec<u8>, ParseError> {
    let next =
        chars.next().map(|(_, c)| c).ok_or_else(|| piece.refuse("nothing follows the last backslash"))?;
    if !next.is_ascii_digit() {
        return Ok(next.encode_utf8(&mut [0; 4]).as_bytes().to_vec());
    }
    let digits =
        piece.slice(at + 1, 3).filter(|digits| digits.text.bytes().all(|digit| digit.is_ascii_digit()));
    let byte = digits.and_then(|digits| digits.text.parse::<u8>().ok());
    chars.nth(1);
    byte.map(|byte| vec![byte]).ok_or_else(|| {
        let blamed = piece.slice(at, 2).unwrap_or(piece);
        blamed.blame("the escape", "is not followed by three digits of at most 255")
    })
}

/// Bytes as the inside of a quoted string.
pub(super) struct Escaped<'a>(pub(super) &'a [u8]);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &byte in self.0 {
            match byte {
                b'"' | b'\\' => write!(f, "\\{}", char::from(byte))?,
                b' '..=b'~' => write!(f, "{}", char::from(byte))?,
                _ => write!(f, "\\{byte:03}")?,
            }
        }
        Ok(())
    }
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes as base64.
pub(super) fn to_base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits =
            chunk.iter().fold(0u32, |bits, byte| (bits << 8) | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = DIGITS.get((bits >> (18 - 6 * place)) as usize & 63).filter(|_| place <= chunk.len());
            out.push(digit.map_or('=', |digit| char::from(*digit)));
        }
    }
    out
}

/// The bytes that base64 stands for; only the one form of them is taken.
pub(super) fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    for chunk in text.chunks(4) {
        let digits: Vec<u32> = chunk
            .iter()
            .take_while(|digit| **digit != b'=')
            .map(|digit| {
                DIGITS.iter().position(|known| known == digit).and_then(|place| u32::try_from(place).ok())
            })
            .collect::<Option<_>>()?;
        let bits = digits.iter().fold(0u32, |bits, digit| (bits << 6) | digit) << (6 * (4 - digits.len()));
        let [_, bytes @ ..] = bits.to_be_bytes();
        out.extend(bytes.iter().take(digits.len().saturating_sub(1)));
    }
    (to_base64(&out).as_bytes() == text).then_some(out)
}
