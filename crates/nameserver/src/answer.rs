//! From a query to its answer, without I/O.

use crate::{
    wire::{HEADER, IN, Malformed, Query, Reply, Section, code, kind},
    zone::{LookupResult, Node, Set, Zone},
    zones::{ZoneMap, zone_with},
};

/// How many CNAMEs are followed.
const MOST_HOPS: usize = 16;

/// The next step for a packet.
#[derive(Debug)]
pub(crate) enum Step<'a> {
    /// Nothing: it was no query.
    Drop,
    /// The reply is written.
    Send,
    /// A whole zone is wanted (AXFR or IXFR); nothing is written yet.
    Transfer(Box<Query<'a>>),
}

/// Answers `packet` from `picture` into `reply`.
pub(crate) fn answer<'a>(picture: &ZoneMap, packet: &'a [u8], reply: &mut Reply) -> Step<'a> {
    let query = match Query::parse(packet) {
        Ok(query) => query,
        Err(Malformed::Silent) => return Step::Drop,
        Err(Malformed::Answerable { id, flags }) => {
            reply.begin(id, flags, &[], None);
            // What carries another opcode is not understood, whatever its shape.
            reply.code(if flags & 0x7800 == 0 { code::FORMERR } else { code::NOTIMP });
            return Step::Send;
        }
    };
    reply.begin(query.id, query.flags, query.question, query.edns);
    if query.opcode() != 0 {
        reply.code(code::NOTIMP);
    } else if query.edns.is_some_and(|edns| edns.version > 0) {
        reply.code(code::BADVERS);
    } else if query.signed {
        // We share no keys with anybody.
        reply.code(code::NOTAUTH);
    } else if query.class != IN {
        reply.code(code::REFUSED);
    } else if matches!(query.kind, kind::AXFR | kind::IXFR) {
        return Step::Transfer(Box::new(query));
    } else if let Some(zone) = zone_with(picture, query.name()) {
        Walk { picture, kind: query.kind, turn: usize::from(query.id), reply }.start(zone, query.name());
    } else {
        reply.code(code::REFUSED);
    }
    Step::Send
}

struct Walk<'a> {
    picture: &'a ZoneMap,
    kind: u16,
    /// Which record of a set comes first, so that clients spread.
    turn: usize,
    reply: &'a mut Reply,
}

/// A name and where it was written in the reply.
#[derive(Clone, Copy)]
struct WrittenName<'a> {
    name: &'a [u8],
    offset: usize,
}

impl WrittenName<'_> {
    /// Where the last `length` bytes of the name were written.
    fn of_suffix(self, length: usize) -> usize {
        self.offset + self.name.len().saturating_sub(length)
    }
}

impl<'a> Walk<'a> {
    fn start(mut self, zone: &'a Zone, name: &'a [u8]) {
        let mut zone = zone;
        let mut place = WrittenName { name, offset: HEADER };
        let mut seen = [name; MOST_HOPS];
        for hop in 0..MOST_HOPS {
            if let Some(slot) = seen.get_mut(hop) {
                *slot = place.name;
            }
            let Some(next) = self.answer_from_zone(zone, place) else { return };
            let turned_back = seen.iter().take(hop + 1).any(|seen| *seen == next.name);
            match zone_with(self.picture, next.name) {
                Some(found) if !turned_back => (zone, place) = (found, next),
                _ => return,
            }
        }
    }

    /// Writes what `zone` says about the name; gives the target if that is an alias.
    fn answer_from_zone(&mut self, zone: &'a Zone, place: WrittenName<'a>) -> Option<WrittenName<'a>> {
        let first = !self.reply.has_answers();
        let at_apex = place.name.len() == zone.apex.len();
        let node = match zone.find(place.name, self.kind == kind::DS) {
            LookupResult::Node(node) => Some(node),
            LookupResult::Cut { length, node } => {
                self.refer(place, length, node);
                return None;
            }
            LookupResult::Missing => None,
        };
        let own = at_apex && matches!(self.kind, kind::SOA | kind::NS | kind::ANY);
        let unknown = node.is_none_or(|node| node.sets().is_empty());
        if zone.lone && unknown && !own {
            // The name may well exist elsewhere: this zone was made for another.
            if first {
                self.reply.code(code::REFUSED);
            }
            return None;
        }
        if first {
            self.reply.authoritative();
        }
        let Some(node) = node else {
            self.reply.code(code::NXDOMAIN);
            self.deny(zone, place);
            return None;
        };
        match self.kind {
            kind::NS if at_apex => self.write(place, zone.ns()),
            // One set will do (RFC 8482).
            kind::ANY if !node.sets().is_empty() => {
                if let Some(set) = node.set(kind::CNAME).or_else(|| node.sets().first()) {
                    self.write(place, set);
                }
            }
            kind::SOA | kind::ANY if at_apex => {
                self.reply.record_at(Section::Answer, place.offset, zone.soa());
            }
            _ => match (node.set(self.kind), node.set(kind::CNAME)) {
                (Some(set), _) => self.write(place, set),
                (None, Some(alias)) => {
                    self.write(place, alias);
                    let target = alias.targets().next()?;
                    return Some(WrittenName {
                        name: target,
                        offset: self.reply.len().checked_sub(target.len())?,
                    });
                }
                (None, None) => self.deny(zone, place),
            },
        }
        None
    }

    fn write(&mut self, place: WrittenName<'_>, set: &Set) {
        let turn = self.turn % set.records.len().max(1);
        let (before, from) = set.records.split_at_checked(turn).unwrap_or((&[], &set.records));
        for record in from.iter().chain(before) {
            self.reply.record_at(Section::Answer, place.offset, record);
        }
    }

    fn deny(&mut self, zone: &Zone, place: WrittenName<'_>) {
        self.reply.record_at(Section::Authority, place.of_suffix(zone.apex.len()), zone.denial());
    }

    /// Names the servers below a cut, with the addresses we know of them.
    fn refer(&mut self, place: WrittenName<'_>, length: usize, node: &'a Node) {
        let Some(set) = node.set(kind::NS) else { return };
        for record in &set.records {
            self.reply.record_at(Section::Authority, place.of_suffix(length), record);
        }
        for target in set.targets() {
            // Glue lies below the cut, so it is looked up without regard to cuts.
            let node = zone_with(self.picture, target).and_then(|zone| zone.nodes().get(target));
            for set in node.into_iter().flat_map(|node| [node.set(kind::A), node.set(kind::AAAA)]).flatten() {
                for record in &set.records {
                    self.reply.record(Section::Additional, target, record);
                }
            }
        }
    }
}
