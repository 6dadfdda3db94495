//! A question to a nameserver, in as few bytes as it takes.

use std::{
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    time::Duration,
};

use netstead_model::{Clock as _, SystemClock};

/// How long a test has waited.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Duration);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(SystemClock.monotonic())
    }

    pub(crate) fn elapsed(self) -> Duration {
        SystemClock.monotonic().saturating_sub(self.0)
    }
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    /// 0 fine, 3 no such name, 5 refused.
    pub(crate) code: u8,
    /// Addresses as text, names with their last dot, serials of zones; in the order of the answer.
    pub(crate) values: Vec<String>,
}

const A: u16 = 1;
const SOA: u16 = 6;
const PTR: u16 = 12;

/// The addresses of a name.
pub(crate) fn a(port: u16, name: &str) -> Answer {
    ask(port, name, A)
}

/// The same of a server that may not be there yet.
pub(crate) fn try_a(port: u16, name: &str) -> Option<Answer> {
    try_ask(port, name, A)
}

/// The same of a server at this address.
pub(crate) fn a_at(server: SocketAddr, name: &str) -> Option<Answer> {
    try_ask_at(server, name, A)
}

/// The serial of a zone.
pub(crate) fn serial_at(server: SocketAddr, zone: &str) -> Option<u32> {
    try_ask_at(server, zone, SOA)?.values.first()?.parse().ok()
}

/// The name of an address.
pub(crate) fn ptr(port: u16, address: Ipv4Addr) -> Answer {
    let [a, b, c, d] = address.octets();
    ask(port, &format!("{d}.{c}.{b}.{a}.in-addr.arpa"), PTR)
}

/// Asks until the answer is `wanted`, and says how long that took; never longer than ten seconds.
pub(crate) fn until(wanted: &[&str], look: impl Fn() -> Answer) -> Duration {
    let begun = Stopwatch::start();
    loop {
        let answer = look();
        if answer.values == wanted {
            return begun.elapsed();
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "wanted {wanted:?}, got {answer:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn ask(port: u16, name: &str, kind: u16) -> Answer {
    try_ask(port, name, kind).unwrap_or_else(|| panic!("no answer from port {port}"))
}

fn try_ask(port: u16, name: &str, kind: u16) -> Option<Answer> {
    try_ask_at((Ipv4Addr::LOCALHOST, port).into(), name, kind)
}

fn try_ask_at(server: SocketAddr, name: &str, kind: u16) -> Option<Answer> {
    // With the wish that others be asked, as clients of a network have it.
    let mut query = vec![0x4e, 0x53, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        query.push(u8::try_from(label.len()).unwrap());
        query.extend_from_slice(label.as_bytes());
    }
    query.push(0);
    query.extend_from_slice(&kind.to_be_bytes());
    query.extend_from_slice(&[0, 1]);
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket.connect(server).unwrap();
    socket.send(&query).ok()?;
    let mut bytes = [0; 4096];
    let length = socket.recv(&mut bytes).ok()?;
    Some(read(&bytes[..length], query.len(), kind))
}

fn read(bytes: &[u8], question: usize, kind: u16) -> Answer {
    assert_eq!(bytes[..2], [0x4e, 0x53]);
    let number = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let (mut at, mut values) = (question, Vec::new());
    for _ in 0..number(6) {
        at = name(bytes, at).1;
        let (found, length) = (number(at), usize::from(number(at + 8)));
        at += 10;
        if found == kind {
            values.push(match kind {
                A => Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]).to_string(),
                SOA => {
                    // Behind the names of the primary and of who answers for it.
                    let serial = name(bytes, name(bytes, at).1).1;
                    u32::from_be_bytes(std::array::from_fn(|byte| bytes[serial + byte])).to_string()
                }
                _ => name(bytes, at).0,
            });
        }
        at += length;
    }
    Answer { code: bytes[3] & 15, values }
}

/// The name at `at`, and where what follows it begins.
fn name(bytes: &[u8], mut at: usize) -> (String, usize) {
    let mut text = String::new();
    let mut end = None;
    loop {
        let length = usize::from(bytes[at]);
        match length {
            0 => return (text, end.unwrap_or(at + 1)),
            192.. => {
                end = end.or(Some(at + 2));
                at = (length & 63) << 8 | usize::from(bytes[at + 1]);
            }
            _ => {
                text += &String::from_utf8_lossy(&bytes[at + 1..=at + length]);
                text.push('.');
                at += length + 1;
            }
        }
    }
}
