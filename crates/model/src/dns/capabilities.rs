//! [`Capabilities`]: what a kind of server can do.

use std::num::NonZeroUsize;

use crate::{RecordType, Service};

/// The capabilities of a server; one row of the capability table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a column of the capability table")]
pub struct Capabilities {
    /// Types it can hold.
    pub types: Vec<RecordType>,
    pub marks: Marks,
    /// It refuses a late write by itself. Otherwise the epoch is checked right before each request.
    pub fenced: bool,
    pub order: WriteOrder,
    /// Most units in one call of `write`. `None` for a server that takes all of a zone at once, and splits them itself where
    /// it must.
    pub most_units: Option<NonZeroUsize>,
    pub ttl: TtlSupport,
    /// A name has at most one value of each type.
    pub one_value: bool,
    /// A name may begin with `*`.
    pub wildcards: bool,
    pub zones: ZoneSource,
    /// Its zones come with a sign of change, so that they are read only if they changed.
    pub signs_changes: bool,
    /// A value that others write between our read and our write survives.
    pub keeps_foreign: bool,
    /// It can stand in front of what a name leads to, and says of every set whether it does.
    pub proxies: bool,
    /// The HTTPS record that stands beside every A and AAAA, unless another HTTPS record is asked for or there.
    pub companion: Option<Service>,
}

/// Where a server can hold the marks that mirror ownership.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marks {
    /// As TXT records.
    Txt,
    /// As comments on the records themselves.
    Comment,
    /// As TXT records or as comments, as the table of the provider says. Only the description of a kind has this.
    TxtOrComment,
    /// Nowhere: ownership is in the store alone.
    None,
}

/// How the changes of one unit reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOrder {
    /// Together: no reader sees half of them.
    Atomic,
    /// One after the other; a record is changed in place, and a new one is added before an old one is removed. A name is
    /// missing for a moment only when a CNAME takes the place of other records, or they that of a CNAME.
    InPlace,
    /// As `InPlace`, but a record cannot be changed: the new one is added before the old one is removed.
    AddFirst,
    /// The old one is removed before the new one is added: a name is missing for a moment whenever its value changes. If the
    /// new one is refused, the old one is put back.
    RemoveFirst,
}

/// Times to live that a server can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TtlSupport {
    /// Any.
    Free,
    /// One of these, in ascending order. Another one becomes the nearest that is not shorter, else the longest.
    Fixed(&'static [u32]),
    /// None of its own: every record has this one.
    None(u32),
}

/// Where the zones of a server come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZoneSource {
    /// The server lists them.
    Listed,
    /// The server knows no zones: each configured domain counts as one.
    Domains,
}

impl Capabilities {
    /// A server that can do everything and holds these types.
    pub fn all(types: impl Into<Vec<RecordType>>) -> Self {
        Self {
            types: types.into(),
            marks: Marks::Txt,
            fenced: true,
            order: WriteOrder::Atomic,
            most_units: None,
            ttl: TtlSupport::Free,
            one_value: false,
            wildcards: true,
            zones: ZoneSource::Listed,
            signs_changes: true,
            keeps_foreign: true,
            proxies: false,
            companion: None,
        }
    }
}

impl TtlSupport {
    /// Returns the time to live that the server would make of this one.
    pub fn adjust(self, ttl: u32) -> u32 {
        match self {
            Self::Free => ttl,
            Self::Fixed(allowed) => {
                let longer = allowed.iter().copied().find(|one| *one >= ttl);
                longer.or_else(|| allowed.last().copied()).unwrap_or(ttl)
            }
            Self::None(own) => own,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_to_live_becomes_one_that_the_server_has() {
        assert_eq!(TtlSupport::Free.adjust(77), 77);
        assert_eq!(TtlSupport::None(0).adjust(77), 0);
        let fixed = TtlSupport::Fixed(&[60, 300, 3600]);
        assert_eq!([1, 60, 61, 300, 9999].map(|ttl| fixed.adjust(ttl)), [60, 60, 300, 300, 3600]);
    }
}
