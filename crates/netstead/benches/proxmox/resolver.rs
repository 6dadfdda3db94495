//! Asks the built-in nameserver for addresses, one name after another.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, UdpSocket},
    time::Duration,
};

use netstead_model::{Clock as _, SystemClock};

/// How long it pauses before it asks again for names that have no answer yet.
const PACE: Duration = Duration::from_millis(20);

pub struct Resolver(UdpSocket);

impl Resolver {
    pub fn new(port: u16) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.set_read_timeout(Some(Duration::from_secs(1))).expect("a timeout");
        socket.connect(("127.0.0.1", port)).expect("an address");
        Self(socket)
    }

    /// The only address of a name; none while it has none.
    pub fn address(&self, name: &str) -> Option<Ipv4Addr> {
        let mut bytes = [0; 512];
        let length = self.0.send(&query(name)).and_then(|_| self.0.recv(&mut bytes)).unwrap_or_default();
        // One answer, whose data are the last four bytes.
        let data =
            bytes.get(..length).filter(|answer| answer.get(6..8) == Some(&[0, 1]))?.last_chunk::<4>()?;
        Some(Ipv4Addr::from(*data))
    }

    /// How long it takes until each of these names has its address, in milliseconds and in order.
    pub fn wait(&self, mut wanted: BTreeMap<String, Ipv4Addr>, patience: Duration) -> Vec<f64> {
        let begun = SystemClock.monotonic();
        let mut times = Vec::new();
        while !wanted.is_empty() {
            let passed = || SystemClock.monotonic().saturating_sub(begun);
            assert!(
                passed() < patience,
                "{} names have no answer, among them {:?}",
                wanted.len(),
                wanted.first_key_value()
            );
            wanted.retain(|name, address| {
                let is_there = self.address(name) == Some(*address);
                times.extend(is_there.then(|| passed().as_secs_f64() * 1000.0));
                !is_there
            });
            std::thread::sleep(PACE);
        }
        times
    }
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
