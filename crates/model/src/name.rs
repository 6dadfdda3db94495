//! Names in the DNS.

use std::{borrow::Cow, net::IpAddr, str::FromStr, sync::Arc};

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};

use crate::{
    ParseError,
    parse::{Piece, checked_text, shown},
};

const MOST: usize = 253;
const MOST_OF_LABEL: usize = 63;
/// Characters that IDNA takes for a dot.
const DOTS: &[char] = &['.', '\u{3002}', '\u{ff0e}', '\u{ff61}'];
/// More than any name within the limits has in any script; what is longer is not worth converting.
const MOST_BYTES: usize = 4 * MOST;

/// A complete DNS name, without its last dot, in lower case and in the form that goes over the wire: `Bücher.example`
/// becomes `xn--bcher-kva.example`. Cheap to clone.
///
/// It can own records: labels may have underscores (`_acme-challenge`), and the first may be `*`. [`Name::host`] reads
/// names that machines have, where neither may be. The text of an IP address is never a name.
///
/// Labels are converted by UTS 46 (non-transitional) one by one. Its rule about names that mix writing directions
/// across labels is left out: it would refuse `_acme-challenge` below any Hebrew or Arabic name.
#[derive(Clone)]
pub struct Name(Arc<str>);

impl Name {
    /// Reads a host name as RFC 1123 has it: letters, digits and hyphens only, no wildcard.
    pub fn host(text: &str) -> Result<Self, ParseError> {
        read(Piece::new("host name", text), Style::Host)
    }

    /// `label`, or several with dots between, in front of `parent`.
    pub fn join(label: &str, parent: &Self) -> Result<Self, ParseError> {
        format!("{label}.{parent}").parse()
    }

    /// A text that is a name by how it was made: lower case, within the limits.
    pub(crate) fn made(text: &str) -> Self {
        Self(text.into())
    }

    /// The labels from left to right.
    pub fn labels(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('.')
    }

    /// The name without its first label; none for a name of one label.
    pub fn parent(&self) -> Option<Self> {
        self.0.split_once('.').map(|(_, parent)| Self(parent.into()))
    }

    /// Whether this name is `other` or below it.
    pub fn is_subdomain_of(&self, other: &Self) -> bool {
        self.0.strip_suffix(&*other.0).is_some_and(|front| front.is_empty() || front.ends_with('.'))
    }

    pub fn is_wildcard(&self) -> bool {
        self.labels().next() == Some("*")
    }

    /// The name with its last dot, as zone files and many servers want it.
    pub fn absolute(&self) -> String {
        format!("{}.", self.0)
    }
}

impl FromStr for Name {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        read(Piece::new("DNS name", text), Style::Owner)
    }
}

checked_text!(Name, "a DNS name");

/// Whether `text` is one label of a host name as it stands: ASCII letters of either case, digits and hyphens.
pub fn is_host_label(text: &str) -> Result<(), ParseError> {
    let piece = Piece::new("host label", text);
    if text.is_empty() {
        return Err(piece.refuse("it is empty"));
    }
    hyphens(piece)?;
    characters(piece, Style::Host)?;
    length(piece, text)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Host,
    Owner,
}

fn read(piece: Piece<'_>, style: Style) -> Result<Name, ParseError> {
    let text = piece.text;
    let body = piece.cut(text.strip_suffix(DOTS).unwrap_or(text));
    if body.text.is_empty() {
        return Err(piece.refuse(if text.is_empty() { "it is empty" } else { "it has no labels" }));
    }
    if body.text.parse::<IpAddr>().is_ok() {
        return Err(piece.refuse("it is an IP address; write a name such as `web.example.net`"));
    }
    if body.text.len() > if body.text.is_ascii() { MOST } else { MOST_BYTES } {
        return Err(piece.refuse(too_long(body.text.chars().count(), MOST)));
    }
    let mut name = String::with_capacity(body.text.len());
    for (index, piece) in body.split(DOTS).enumerate() {
        if index > 0 {
            name.push('.');
        }
        name.push_str(&label(piece, style, index == 0)?);
    }
    if name.len() > MOST {
        return Err(piece.refuse(format!("in ASCII {}", too_long(name.len(), MOST))));
    }
    let numeric = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
    if name.split('.').count() == 4 && name.split('.').all(numeric) {
        return Err(piece.refuse("it looks like an IPv4 address; write a name such as `web.example.net`"));
    }
    Ok(Name(name.into()))
}

/// One label as it goes over the wire.
fn label(piece: Piece<'_>, style: Style, first: bool) -> Result<Cow<'_, str>, ParseError> {
    match (piece.text, style) {
        ("", _) => return Err(piece.blame("the label", "is empty")),
        ("*", Style::Host) => return Err(piece.blame("the wildcard", "cannot be part of a host name")),
        ("*", Style::Owner) if first => return Ok("*".into()),
        ("*", Style::Owner) => return Err(piece.blame("the wildcard", "is not the first label")),
        _ => {}
    }
    hyphens(piece)?;
    let encoded = piece.text.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("xn--"));
    let label = if encoded || !piece.text.is_ascii() {
        international(piece, style)?
    } else {
        characters(piece, style)?;
        Cow::Owned(piece.text.to_ascii_lowercase())
    };
    length(piece, &label)?;
    Ok(label)
}

fn international(piece: Piece<'_>, style: Style) -> Result<Cow<'_, str>, ParseError> {
    let bytes = piece.text.as_bytes();
    let mapped =
        Uts46::new().to_ascii(bytes, AsciiDenyList::EMPTY, Hyphens::CheckFirstLast, DnsLength::Ignore);
    match mapped {
        Err(_) if piece.text.is_ascii() => Err(piece.blame("the label", "is not the ASCII form of any text")),
        Err(_) => Err(piece.blame("the label", "has a character that IDNA does not allow in that place")),
        Ok(label) if label.is_empty() => {
            Err(piece.blame("the label", "has only characters that IDNA ignores"))
        }
        Ok(label) => {
            let plain =
                characters(Piece::new("", &label), style).and_then(|()| hyphens(Piece::new("", &label)));
            match plain {
                Ok(()) => Ok(label),
                Err(_) => {
                    Err(piece
                        .blame("the label", format!("would be `{}`, which is not allowed", shown(&label))))
                }
            }
        }
    }
}

fn hyphens(label: Piece<'_>) -> Result<(), ParseError> {
    if label.text.starts_with('-') {
        return Err(label.blame("the label", "begins with a hyphen"));
    } else if label.text.ends_with('-') {
        return Err(label.blame("the label", "ends with a hyphen"));
    }
    Ok(())
}

fn characters(label: Piece<'_>, style: Style) -> Result<(), ParseError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || (c == '_' && style == Style::Owner);
    let Some(wrong) = label.find(|c| !allowed(c)) else {
        return Ok(());
    };
    Err(match wrong.text {
        "_" => wrong.blame("the underscore", "is not allowed in host names"),
        "*" => wrong.blame("the wildcard", "is not a label of its own"),
        _ => wrong.blame("", "is not a letter, a digit or a hyphen"),
    })
}

fn length(piece: Piece<'_>, label: &str) -> Result<(), ParseError> {
    if label.len() <= MOST_OF_LABEL {
        return Ok(());
    }
    let ascii = if piece.text.is_ascii() { "" } else { " in ASCII" };
    let problem = format!("has {} characters{ascii}, the most for a label is {MOST_OF_LABEL}", label.len());
    Err(piece.blame("the label", problem))
}

fn too_long(length: usize, most: usize) -> String {
    format!("it has {length} characters, the most is {most}")
}
