//! Builds a reply.

use super::{Edns, HEADER, code, kind};

/// The largest UDP message that our server takes and sends: no fragment is lost on the way.
const UDP_SIZE: u16 = 1232;
/// Without EDNS.
const PLAIN_SIZE: u16 = 512;

const ANSWER: u16 = 0x8000;
const AUTHORITATIVE: u16 = 0x0400;
const TRUNCATED: u16 = 0x0200;
/// Opcode, "recursion desired" and "checking disabled": what an answer repeats of a query.
const REPEATED: u16 = 0x7910;

/// The sections records go to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Section {
    Answer,
    Authority,
    Additional,
}

/// A message, written from front to back into a buffer that is used again and again.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    bytes: Vec<u8>,
    id: u16,
    flags: u16,
    question: usize,
    counts: [u16; 3],
    edns: Option<Edns>,
    code: u16,
}

impl Reply {
    /// Begins an answer to a query with these flags; `question` is repeated as it came.
    pub(crate) fn begin(&mut self, id: u16, flags: u16, question: &[u8], edns: Option<Edns>) {
        self.bytes.clear();
        self.bytes.resize(HEADER, 0);
        self.bytes.extend_from_slice(question);
        self.id = id;
        self.flags = ANSWER | (flags & REPEATED);
        self.question = question.len();
        self.counts = [0; 3];
        self.edns = edns;
        self.code = code::NOERROR;
    }

    /// Begins a message of our own.
    pub(crate) fn begin_request(&mut self, id: u16, opcode: u16, question: &[u8]) {
        self.begin(id, opcode << 11, question, None);
        self.flags = (opcode << 11) | AUTHORITATIVE;
    }

    pub(crate) fn authoritative(&mut self) {
        self.flags |= AUTHORITATIVE;
    }

    pub(crate) fn code(&mut self, code: u16) {
        self.code = code;
    }

    /// The response code that it has.
    pub(crate) fn response_code(&self) -> u16 {
        self.code
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn has_answers(&self) -> bool {
        self.counts != [0; 3]
    }

    /// A record whose owner was written at `offset` of this message.
    pub(crate) fn record_at(&mut self, section: Section, offset: usize, body: &[u8]) {
        self.count(section);
        self.pointer(offset);
        self.bytes.extend_from_slice(body);
    }

    /// A record whose owner is `front`, labels only, in front of the name at `offset`.
    pub(crate) fn record_below(&mut self, section: Section, front: &[u8], offset: usize, body: &[u8]) {
        self.count(section);
        self.bytes.extend_from_slice(front);
        self.pointer(offset);
        self.bytes.extend_from_slice(body);
    }

    /// A record with its owner in full.
    pub(crate) fn record(&mut self, section: Section, owner: &[u8], body: &[u8]) {
        self.count(section);
        self.bytes.extend_from_slice(owner);
        self.bytes.extend_from_slice(body);
    }

    fn count(&mut self, section: Section) {
        let [answer, authority, additional] = &mut self.counts;
        let count = match section {
            Section::Answer => answer,
            Section::Authority => authority,
            Section::Additional => additional,
        };
        *count = count.saturating_add(1);
    }

    fn pointer(&mut self, offset: usize) {
        let offset = u16::try_from(offset).unwrap_or(0) & 0x3fff;
        self.bytes.extend_from_slice(&(0xc000 | offset).to_be_bytes());
    }

    /// Ends a message that goes over UDP: what does not fit is left out whole, and the client asks again over TCP.
    pub(crate) fn end_datagram(&mut self) -> &[u8] {
        let most = self.edns.map_or(PLAIN_SIZE, |edns| edns.size.clamp(PLAIN_SIZE, UDP_SIZE));
        let opt = if self.edns.is_some() { 11 } else { 0 };
        self.end(usize::from(most) - opt)
    }

    /// Ends a message that goes over TCP.
    pub(crate) fn end_message(&mut self) -> &[u8] {
        self.end(usize::from(u16::MAX) - 11)
    }

    fn end(&mut self, most: usize) -> &[u8] {
        if self.bytes.len() > most {
            self.bytes.truncate(HEADER + self.question);
            self.counts = [0; 3];
            self.flags |= TRUNCATED;
        }
        if let Some(edns) = self.edns {
            self.count(Section::Additional);
            let [size_high, size_low] = UDP_SIZE.to_be_bytes();
            let [_, kind] = kind::OPT.to_be_bytes();
            let extended = u8::try_from(self.code >> 4).unwrap_or(0);
            let dnssec = if edns.dnssec { 0x80 } else { 0 };
            self.bytes.extend_from_slice(&[0, 0, kind, size_high, size_low, extended, 0, dnssec, 0, 0, 0]);
        }
        let [answers, authority, additional] = self.counts;
        let questions = u16::from(self.question > 0);
        let words = [self.id, self.flags | (self.code & 15), questions, answers, authority, additional];
        for (place, word) in self.bytes.chunks_exact_mut(2).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        &self.bytes
    }
}
