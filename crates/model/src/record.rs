//! DNS records as plain, typed data.

mod data;
mod parse;
mod reverse;
mod service;
mod set;
mod values;
mod wire_form;
mod zone_file;

use std::{fmt, str::FromStr};

use crate::{ParseError, parse::serde_as_text};

pub use self::{
    data::RecordData,
    reverse::{address_of_reverse, range_of_reverse, reverse_name},
    service::Service,
    set::RecordSet,
    values::Values,
};

/// The types of record Netstead writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordType {
    A,
    Aaaa,
    Cname,
    Ptr,
    Srv,
    Txt,
    Mx,
    Caa,
    Ns,
    Https,
    Svcb,
}

impl RecordType {
    pub const ALL: [Self; 11] = [
        Self::A,
        Self::Aaaa,
        Self::Cname,
        Self::Ptr,
        Self::Srv,
        Self::Txt,
        Self::Mx,
        Self::Caa,
        Self::Ns,
        Self::Https,
        Self::Svcb,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::Aaaa => "AAAA",
            Self::Cname => "CNAME",
            Self::Ptr => "PTR",
            Self::Srv => "SRV",
            Self::Txt => "TXT",
            Self::Mx => "MX",
            Self::Caa => "CAA",
            Self::Ns => "NS",
            Self::Https => "HTTPS",
            Self::Svcb => "SVCB",
        }
    }
}

impl fmt::Display for RecordType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for RecordType {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::ALL.into_iter().find(|kind| kind.as_str().eq_ignore_ascii_case(text)).ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|kind| kind.as_str()).collect();
            ParseError::new("record type", text, None, format!("use one of {}", known.join(", ")))
        })
    }
}

serde_as_text!(RecordType, "a record type such as `A`");
