//! Says what is wrong with an address that the standard library refused without a reason.

use crate::{ParseError, parse::Piece};

/// Nothing in the text says which kind it was meant to be.
pub(super) fn unknown(piece: Piece<'_>) -> ParseError {
    if piece.text.is_empty() {
        return piece.blame("the address", "is missing");
    }
    piece.blame("", "has neither the dots of an IPv4 address nor the colons of an IPv6 or MAC address")
}

pub(super) fn v4(piece: Piece<'_>) -> ParseError {
    if let Some(error) = common(piece) {
        return error;
    }
    if let Some(wrong) = piece.find(|c| c != '.' && !c.is_ascii_digit()) {
        return wrong.blame("", "is not a digit");
    }
    for part in piece.split(&['.']) {
        let subject = "the part";
        match part.text {
            "" => return part.blame(subject, "is empty"),
            text if text.len() > 1 && text.starts_with('0') => {
                return part.blame(subject, "begins with a zero, which some programs read as octal");
            }
            text if text.parse::<u8>().is_err() => return part.blame(subject, "is over 255"),
            _ => {}
        }
    }
    let parts = piece.split(&['.']).count();
    let plural = if parts == 1 { "" } else { "s" };
    piece.refuse(format!("it has {parts} part{plural}, an IPv4 address has 4"))
}

pub(super) fn v6(piece: Piece<'_>) -> ParseError {
    common(piece).or_else(|| v6_colons(piece)).unwrap_or_else(|| v6_groups(piece))
}

/// Trouble that has nothing to do with the family: what was given is more than an address.
fn common(piece: Piece<'_>) -> Option<ParseError> {
    if piece.text.is_empty() {
        return Some(piece.blame("the address", "is missing"));
    }
    if let Some(slash) = piece.text.find('/') {
        let length = piece.slice(slash, piece.text.len() - slash)?;
        return Some(length.blame("the length", "makes it a network, not an address"));
    }
    if let Some(percent) = piece.text.find('%') {
        let zone = piece.slice(percent, piece.text.len() - percent)?;
        return Some(zone.blame("the zone", "means something on one machine only; leave it out"));
    }
    let bracket = piece.find(|c| matches!(c, '[' | ']'))?;
    Some(bracket.blame("the bracket", "belongs to a URL; leave it out"))
}

fn v6_colons(piece: Piece<'_>) -> Option<ParseError> {
    if let Some(wrong) = piece.find(|c| !matches!(c, ':' | '.') && !c.is_ascii_hexdigit()) {
        return Some(wrong.blame("", "is not a hexadecimal digit"));
    }
    if let Some(at) = piece.text.find(":::") {
        return Some(piece.slice(at, 3)?.blame("", "has a colon too many"));
    }
    let mut gaps = piece.text.match_indices("::");
    if let Some((at, _)) = gaps.nth(1) {
        return Some(piece.slice(at, 2)?.blame("a second", "leaves open how many zeros stand where"));
    }
    let end = piece.text.len() - 1;
    let dangling = if piece.text.starts_with(':') && !piece.text.starts_with("::") {
        Some(0)
    } else if piece.text.ends_with(':') && !piece.text.ends_with("::") {
        Some(end)
    } else {
        None
    };
    Some(piece.slice(dangling?, 1)?.blame("the", "has nothing beside it"))
}

fn v6_groups(piece: Piece<'_>) -> ParseError {
    let mut count = 0;
    let mut rest = piece.split(&[':']).peekable();
    while let Some(group) = rest.next() {
        if group.text.contains('.') {
            if rest.peek().is_some() {
                return group.blame("the IPv4 part", "is not at the end");
            }
            if group.text.parse::<std::net::Ipv4Addr>().is_err() {
                return v4(group);
            }
            count += 2;
        } else if group.text.len() > 4 {
            return group.blame("the group", "has more than 4 digits");
        } else if !group.text.is_empty() {
            count += 1;
        }
    }
    if piece.text.contains("::") {
        return piece.refuse(format!(
            "it has {count} groups and `::`, which means at least one more; an IPv6 address has 8"
        ));
    }
    let plural = if count == 1 { "" } else { "s" };
    piece.refuse(format!("it has {count} group{plural}, an IPv6 address has 8"))
}
