//! Reading a value from the text of a zone file.

use std::{fmt::Display, str::FromStr};

use super::{
    Service,
    data::split_string,
    zone_file::{Field, MOST_OF_STRING, fields},
};
use crate::{Name, ParseError, RecordData, RecordType, parse::Piece};

/// The most bytes the value of any record has.
const MOST: usize = 65_535;

impl RecordData {
    /// Reads the value of a record of type `kind` as it stands in a zone file.
    ///
    /// Names are complete, with or without their last dot. TXT is either one or more quoted strings, with escapes, or
    /// bare text that is taken as it stands; strings over 255 bytes are split.
    pub fn parse(kind: RecordType, text: &str) -> Result<Self, ParseError> {
        let piece = Piece::new(what(kind), text);
        if kind == RecordType::Txt {
            return txt(piece);
        }
        let fields = fields(piece)?;
        match (kind, fields.as_slice()) {
            (_, []) => Err(piece.refuse("it is empty")),
            (RecordType::A, [field]) => number(field, "the address", "is not an IPv4 address").map(Self::A),
            (RecordType::Aaaa, [field]) => {
                number(field, "the address", "is not an IPv6 address").map(Self::Aaaa)
            }
            (RecordType::Cname, [field]) => name(field).map(Self::Cname),
            (RecordType::Ptr, [field]) => name(field).map(Self::Ptr),
            (RecordType::Ns, [field]) => name(field).map(Self::Ns),
            (RecordType::Mx, [preference, exchange]) => {
                let preference = short(preference, "the preference")?;
                let exchange = if exchange.piece.text == "." { None } else { Some(name(exchange)?) };
                Ok(Self::Mx { preference, exchange })
            }
            (RecordType::Srv, [priority, weight, port, target]) => Ok(Self::Srv {
                priority: short(priority, "the priority")?,
                weight: short(weight, "the weight")?,
                port: short(port, "the port")?,
                target: name(target)?,
            }),
            (RecordType::Caa, [flags, tag, value]) => caa(flags, tag, value),
            (RecordType::Https, [priority, target, params @ ..]) => {
                Service::read(priority, target, params).map(Self::Https)
            }
            (RecordType::Svcb, [priority, target, params @ ..]) => {
                Service::read(priority, target, params).map(Self::Svcb)
            }
            _ => Err(piece.refuse(format!("write {}", shape(kind)))),
        }
    }
}

fn txt(piece: Piece<'_>) -> Result<RecordData, ParseError> {
    let text = piece.text.trim_ascii();
    if text.is_empty() {
        return Err(piece.refuse("it is empty; write \"\" for an empty text"));
    }
    let strings: Vec<Vec<u8>> = if text.starts_with('"') {
        fields(piece)?.iter().flat_map(|field| split_string(&field.bytes)).collect()
    } else {
        split_string(text.as_bytes())
    };
    let bytes: usize = strings.iter().map(|string| string.len() + 1).sum();
    if bytes > MOST {
        return Err(piece.refuse(format!("it takes {bytes} bytes, the most is {MOST}")));
    }
    Ok(RecordData::Txt(strings))
}

fn caa(flags: &Field<'_>, tag: &Field<'_>, value: &Field<'_>) -> Result<RecordData, ParseError> {
    let text = tag.piece.text;
    if text.len() > MOST_OF_STRING || !text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(tag.piece.blame("the tag", "is not of letters and digits such as `issue`"));
    }
    let flags = number(flags, "the flags", "are not a number of at most 255")?;
    if value.bytes.len() + text.len() + 2 > MOST {
        return Err(value.piece.refuse("its value is too long"));
    }
    Ok(RecordData::Caa { flags, tag: text.to_ascii_lowercase(), value: value.bytes.clone() })
}

/// A field of any type that reads itself.
pub(super) fn number<T: FromStr>(
    field: &Field<'_>,
    subject: &str,
    problem: impl Display,
) -> Result<T, ParseError> {
    field.piece.text.parse().map_err(|_| field.piece.blame(subject, problem))
}

pub(super) fn short(field: &Field<'_>, subject: &str) -> Result<u16, ParseError> {
    number(field, subject, "is not a number of at most 65535")
}

pub(super) fn name(field: &Field<'_>) -> Result<Name, ParseError> {
    let text = field.piece.text;
    text.parse()
        .map_err(|error: ParseError| field.piece.blame("the name", format!("is wrong: {}", error.reason)))
}

fn what(kind: RecordType) -> &'static str {
    match kind {
        RecordType::A => "value of type A",
        RecordType::Aaaa => "value of type AAAA",
        RecordType::Cname => "value of type CNAME",
        RecordType::Ptr => "value of type PTR",
        RecordType::Srv => "value of type SRV",
        RecordType::Txt => "value of type TXT",
        RecordType::Mx => "value of type MX",
        RecordType::Caa => "value of type CAA",
        RecordType::Ns => "value of type NS",
        RecordType::Https => "value of type HTTPS",
        RecordType::Svcb => "value of type SVCB",
    }
}

fn shape(kind: RecordType) -> &'static str {
    match kind {
        RecordType::A => "one IPv4 address",
        RecordType::Aaaa => "one IPv6 address",
        RecordType::Cname | RecordType::Ptr | RecordType::Ns => "one name",
        RecordType::Srv => "priority, weight, port and target, such as `10 5 443 web.example.net.`",
        RecordType::Txt => "text",
        RecordType::Mx => "preference and exchange, such as `10 mail.example.net.`",
        RecordType::Caa => "flags, tag and value, such as `0 issue \"ca.example.net\"`",
        RecordType::Https | RecordType::Svcb => "priority, target and parameters, such as `1 . alpn=h2,h3`",
    }
}
