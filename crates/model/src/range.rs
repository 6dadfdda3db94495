//! Addresses from one to another, both included.

use std::{fmt, str::FromStr};

use crate::{
    Address, Cidr, Kind, ParseError,
    parse::{Piece, serde_as_text},
};

/// All addresses from `first` to `last`; never empty, never of two kinds.
///
/// Written `10.0.3.50-10.0.3.200`, as a network or as one address. Both ends are written in full, because a short
/// `10.0.3.50-200` reads differently in different programs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    first: Address,
    last: Address,
}

impl Range {
    /// The addresses from `first` to `last`; an error if they differ in kind or stand the wrong way round.
    pub fn new(first: Address, last: Address) -> Result<Self, ParseError> {
        Self::between(first, last)
            .map_err(|reason| ParseError::new("range", &format!("{first}-{last}"), None, reason))
    }

    /// The range of one address.
    pub const fn single(address: Address) -> Self {
        Self { first: address, last: address }
    }

    fn between(first: Address, last: Address) -> Result<Self, String> {
        let (one, other) = (first.kind(), last.kind());
        if one != other {
            Err(format!("`{first}` is an {}, but `{last}` an {}", one.noun(), other.noun())
                .replace("an MAC", "a MAC"))
        } else if first > last {
            Err(format!("it begins at `{first}`, after its end `{last}`; write `{last}-{first}`"))
        } else {
            Ok(Self { first, last })
        }
    }

    pub const fn first(&self) -> Address {
        self.first
    }

    pub const fn last(&self) -> Address {
        self.last
    }

    pub const fn kind(&self) -> Kind {
        self.first.kind()
    }

    /// How many addresses are in it. All of IPv6 has one more than a `u128` can say and answers with the highest
    /// number there is.
    #[expect(clippy::len_without_is_empty, reason = "a range is never empty")]
    pub const fn len(&self) -> u128 {
        self.span().saturating_add(1)
    }

    const fn span(&self) -> u128 {
        self.last.number() - self.first.number()
    }

    pub fn contains(&self, address: Address) -> bool {
        self.kind() == address.kind() && self.first <= address && address <= self.last
    }

    /// Whether all of `other` is in this range; a range contains itself.
    pub fn contains_range(&self, other: Self) -> bool {
        self.contains(other.first) && self.contains(other.last)
    }

    pub fn overlaps(&self, other: Self) -> bool {
        self.intersect(other).is_some()
    }

    /// The addresses that are in both.
    pub fn intersect(&self, other: Self) -> Option<Self> {
        let (first, last) = (self.first.max(other.first), self.last.min(other.last));
        (self.kind() == other.kind() && first <= last).then_some(Self { first, last })
    }

    /// The rest after `hole` is taken out: nothing, one piece, or one on either side.
    pub fn without(&self, hole: Self) -> impl Iterator<Item = Self> + use<> {
        let whole = *self;
        let (before, after) = match self.intersect(hole) {
            None => (Some(whole), None),
            Some(hole) => (
                hole.first.pred().filter(|last| *last >= whole.first).map(|last| Self { last, ..whole }),
                hole.last.succ().filter(|first| *first <= whole.last).map(|first| Self { first, ..whole }),
            ),
        };
        before.into_iter().chain(after)
    }

    /// The same addresses in order, ranges that touch or overlap made one.
    pub fn joined(mut ranges: Vec<Self>) -> Vec<Self> {
        ranges.sort_unstable();
        let mut joined: Vec<Self> = Vec::with_capacity(ranges.len());
        for range in ranges {
            let reaches = |before: &Self| {
                before.kind() == range.kind() && before.last.succ().is_none_or(|next| next >= range.first)
            };
            match joined.last_mut() {
                Some(before) if reaches(before) => before.last = before.last.max(range.last),
                _ => joined.push(range),
            }
        }
        joined
    }

    /// The network that has exactly these addresses, if there is one and it has more than one address.
    pub fn cidr(&self) -> Option<Cidr> {
        let span = self.span();
        let aligned = span & span.wrapping_add(1) == 0 && self.first.number() & span == 0;
        let free = u8::try_from(span.count_ones()).ok()?;
        (aligned && free > 0).then(|| Cidr::new(self.first, self.kind().bits() - free).ok())?
    }

    /// The fewest networks that together have exactly these addresses, lowest first.
    pub fn cidrs(&self) -> Vec<Cidr> {
        let bits = u32::from(self.kind().bits());
        let mut blocks = Vec::new();
        let mut rest = Some(*self);
        while let Some(range) = rest {
            let aligned = range.first.number().trailing_zeros().min(bits);
            let fitting = range.span().checked_add(1).map_or(bits, u128::ilog2);
            let Some(block) = u8::try_from(bits - aligned.min(fitting))
                .ok()
                .and_then(|len| Cidr::containing(range.first, len).ok())
            else {
                break;
            };
            blocks.push(block);
            let next = block.last().succ().filter(|next| *next <= range.last);
            rest = next.map(|first| Self { first, ..range });
        }
        blocks
    }

    fn read(piece: Piece<'_>) -> Result<Self, ParseError> {
        if piece.text.is_empty() {
            return Err(piece.refuse("it is empty"));
        }
        let Some((first, last)) = ends(piece) else {
            if piece.text.contains('/') {
                return Cidr::read(piece).map(Self::from);
            }
            return match piece.text.match_indices('-').nth(1).and_then(|(at, _)| piece.slice(at, 1)) {
                Some(dash) if piece.text.contains(['.', ':']) => {
                    Err(dash.blame("a second", "leaves open where the first address ends"))
                }
                _ => Address::read_any(piece).map(Self::from),
            };
        };
        let first = Address::read_any(first)?;
        let last = match Address::read_any(last) {
            Ok(last) => last,
            Err(error) => return Err(short(first, last).unwrap_or(error)),
        };
        Self::between(first, last).map_err(|reason| piece.refuse(reason))
    }
}

/// The two sides of the dash between them, if there is one: MAC addresses may have dashes of their own.
fn ends(piece: Piece<'_>) -> Option<(Piece<'_>, Piece<'_>)> {
    let dashes = piece.text.matches('-').count();
    let middle = if dashes % 2 == 1 && dashes != 5 { dashes / 2 } else { return None };
    let (at, _) = piece.text.match_indices('-').nth(middle)?;
    let (first, last) = (piece.text.get(..at)?, piece.text.get(at + 1..)?);
    Some((piece.cut(first.trim_end()), piece.cut(last.trim_start())))
}

/// If `last` is the end of an address that begins like `first`, an error which shows how to write that.
fn short(first: Address, last: Piece<'_>) -> Option<ParseError> {
    let separator = if first.kind() == Kind::V4 { '.' } else { ':' };
    let given = last.text.trim_start_matches(separator);
    let text = first.to_string();
    let mut before = text.as_str();
    for _ in given.split(separator) {
        before = before.rsplit_once(separator)?.0;
    }
    let meant = Address::parse(first.kind(), &format!("{before}{separator}{given}")).ok()?;
    Some(last.blame("the end", format!("is not written in full; write `{first}-{meant}`")))
}

impl FromStr for Range {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::read(Piece::new("range", text))
    }
}

impl fmt::Display for Range {
    /// The shortest form: one address, a network, or both ends.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cidr() {
            Some(cidr) => cidr.fmt(f),
            None if self.first == self.last => self.first.fmt(f),
            None => f.pad(&format!("{}-{}", self.first, self.last)),
        }
    }
}

impl fmt::Debug for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Range({self})")
    }
}

impl From<Address> for Range {
    fn from(address: Address) -> Self {
        Self::single(address)
    }
}

impl From<Cidr> for Range {
    fn from(cidr: Cidr) -> Self {
        Self { first: cidr.first(), last: cidr.last() }
    }
}

serde_as_text!(Range, "a range such as 10.0.3.50-10.0.3.200");
