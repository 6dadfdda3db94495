//! One DNS query: the SOA of a zone.

use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use netstead_model::Name;
use tokio::{net::UdpSocket, time::timeout};

const PATIENCE: Duration = Duration::from_secs(2);
const TRIES: u32 = 2;
const SOA: u16 = 6;
const NOERROR: u8 = 0;
/// Pointers in a name that lead to each other would never end.
const MOST_LABELS: usize = 128;

/// The part of a SOA that matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Soa {
    /// The name of the primary, in lower case.
    pub(super) primary: String,
}

/// The SOA of `zone` as `server` has it; none if there is no such zone for it.
pub(super) async fn query_soa(server: SocketAddr, zone: &Name) -> Result<Option<Soa>, String> {
    let mut last = String::new();
    for _ in 0..TRIES {
        match timeout(PATIENCE, once(server, zone)).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => last = error.to_string(),
            Err(_) => last = format!("no answer within {} s", PATIENCE.as_secs()),
        }
    }
    Err(last)
}

async fn once(server: SocketAddr, zone: &Name) -> std::io::Result<Option<Soa>> {
    let own: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(own).await?;
    socket.connect(server).await?;
    let id = rand::random::<u16>().to_be_bytes();
    // Recursion desired; one question.
    let mut message = vec![id[0], id[1], 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in zone.labels() {
        message.push(u8::try_from(label.len()).unwrap_or_default());
        message.extend(label.as_bytes());
    }
    message.extend([0, 0, 6, 0, 1]);
    socket.send(&message).await?;
    let mut buffer = [0; 1232];
    loop {
        let length = socket.recv(&mut buffer).await?;
        let answer = buffer.get(..length).unwrap_or_default();
        // An answer to another question is no answer.
        if answer.starts_with(&id) {
            return Ok(read(answer));
        }
    }
}

/// The primary in the answer section.
fn read(message: &[u8]) -> Option<Soa> {
    let count = |at: usize| Some(u16::from_be_bytes([*message.get(at)?, *message.get(at + 1)?]));
    if message.get(3)? & 0x0f != NOERROR {
        return None;
    }
    let (questions, answers) = (count(4)?, count(6)?);
    let mut at = 12;
    for _ in 0..questions {
        at = name(message, at)?.1 + 4;
    }
    for _ in 0..answers {
        let head = name(message, at)?.1;
        let (kind, length) = (count(head)?, usize::from(count(head + 8)?));
        if kind == SOA {
            return Some(Soa { primary: name(message, head + 10)?.0 });
        }
        at = head + 10 + length;
    }
    None
}

/// The name at `at`, and where what follows it begins.
fn name(message: &[u8], mut at: usize) -> Option<(String, usize)> {
    let mut labels: Vec<String> = Vec::new();
    let mut after = None;
    for _ in 0..MOST_LABELS {
        match *message.get(at)? {
            0 => return Some((labels.join("."), after.unwrap_or(at + 1))),
            high if high >= 0xc0 => {
                after = after.or(Some(at + 2));
                at = usize::from(u16::from_be_bytes([high & 0x3f, *message.get(at + 1)?]));
            }
            length => {
                let label = message.get(at + 1..at + 1 + usize::from(length))?;
                labels.push(String::from_utf8_lossy(label).to_lowercase());
                at += 1 + usize::from(length);
            }
        }
    }
    None
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A server that says this is the primary of everything.
    pub(in crate::doctor) async fn server(primary: &'static str) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        tokio::spawn(async move {
            let mut buffer = [0; 512];
            while let Ok((length, peer)) = socket.recv_from(&mut buffer).await {
                let mut answer = buffer[..length].to_vec();
                (answer[2], answer[3], answer[7]) = (0x81, 0x80, 1);
                let mut data: Vec<u8> = Vec::new();
                for label in primary.split('.') {
                    data.push(u8::try_from(label.len()).unwrap());
                    data.extend(label.as_bytes());
                }
                data.extend([0; 1 + 1 + 20]);
                // The name is a pointer to the question.
                answer.extend([0xc0, 12, 0, 6, 0, 1, 0, 0, 0, 60, 0, u8::try_from(data.len()).unwrap()]);
                answer.extend(data);
                socket.send_to(&answer, peer).await.unwrap();
            }
        });
        address
    }

    #[test]
    fn garbage_is_no_answer() {
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[0xff; 40]), None);
        // A pointer to itself.
        let mut message = vec![0, 0, 0x81, 0x80, 0, 0, 0, 1, 0, 0, 0, 0];
        message.extend([0xc0, 12, 0, 6]);
        assert_eq!(read(&message), None);
    }
}
