//! When a name is first answered for.

use std::{net::UdpSocket, thread::JoinHandle, time::Duration};

use netstead_model::{Clock as _, SystemClock};

use crate::SOON;

/// How often a name is asked for.
const PACE: Duration = Duration::from_millis(2);

/// Asks for a name again and again.
pub struct Waiter(JoinHandle<Option<f64>>);

impl Waiter {
    pub fn begin(port: u16, name: &str) -> Self {
        let query = query(name);
        Self(std::thread::spawn(move || {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
            socket.set_read_timeout(Some(Duration::from_secs(1))).expect("a timeout");
            socket.connect(("127.0.0.1", port)).expect("an address");
            let begun = SystemClock.monotonic();
            while SystemClock.monotonic().saturating_sub(begun) < SOON {
                let mut bytes = [0; 512];
                let length = socket.send(&query).and_then(|_| socket.recv(&mut bytes)).unwrap_or_default();
                // How many answers there are.
                if length > 12 && bytes[6..8] != [0, 0] {
                    return Some(wall());
                }
                std::thread::sleep(PACE);
            }
            None
        }))
    }

    /// When the first answer came, in milliseconds of wall time.
    pub fn answered(self) -> f64 {
        self.0.join().expect("no panic").expect("an answer within a minute")
    }
}

#[expect(clippy::cast_precision_loss, reason = "a quarter of a microsecond is lost")]
fn wall() -> f64 {
    SystemClock.wall().as_nanosecond() as f64 / 1e6
}

/// For its addresses.
fn query(name: &str) -> Vec<u8> {
    let mut query = vec![0x4e, 0x53, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        query.push(u8::try_from(label.len()).expect("a short label"));
        query.extend_from_slice(label.as_bytes());
    }
    query.extend_from_slice(&[0, 0, 1, 0, 1]);
    query
}
