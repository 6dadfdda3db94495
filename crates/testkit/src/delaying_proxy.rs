//! [`DelayingProxy`]: a proxy that holds some requests back, so that they arrive late.

use std::{
    io,
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use crate::{
    tcp_forward::{copy, forward},
    wait::wait_until,
};

/// Which requests are held back, by how they begin on the wire.
pub type RequestFilter = fn(&[u8]) -> bool;

/// Forwards connections to a server. While it is shut, requests of one kind stay in it; they go on when it is opened,
/// also when their sender has given up or is gone.
#[derive(Debug)]
pub struct DelayingProxy {
    address: SocketAddr,
    shared: Arc<Latch>,
}

#[derive(Debug, Default)]
struct Latch {
    state: Mutex<State>,
    opened: Condvar,
}

#[derive(Debug, Default)]
struct State {
    shut: bool,
    held: usize,
    passed: usize,
}

impl Latch {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits, if this is a request of the kind that is held back and the gate is shut.
    fn pass(&self, request: bool) {
        if !request {
            return;
        }
        let mut state = self.lock();
        if state.shut {
            state.held += 1;
            while state.shut {
                state = self.opened.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state.held -= 1;
        }
        state.passed += 1;
    }
}

impl DelayingProxy {
    /// An open gate in front of `server`.
    pub fn before(server: SocketAddr, holds: RequestFilter) -> io::Result<Self> {
        let shared = Arc::new(Latch::default());
        let inside = Arc::clone(&shared);
        let host = Ipv4Addr::LOCALHOST.into();
        let address = forward(host, server, move |client, server| join(client, server, &inside, holds))?;
        Ok(Self { address, shared })
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn shut(&self) {
        self.shared.lock().shut = true;
    }

    /// Lets go on what is held, and whatever comes.
    pub fn open(&self) {
        self.shared.lock().shut = false;
        self.shared.opened.notify_all();
    }

    /// How many requests of its kind have gone through.
    pub fn passed(&self) -> usize {
        self.shared.lock().passed
    }

    /// Waits until a request is held; whether one is.
    pub fn holds_one(&self, patience: Duration) -> bool {
        wait_until(patience, || (self.shared.lock().held > 0).then_some(())).is_some()
    }
}

fn join(client: &TcpStream, server: &TcpStream, shared: &Latch, holds: RequestFilter) {
    thread::scope(|scope| {
        scope.spawn(|| {
            copy(server, client, |_| {});
            let _ = client.shutdown(Shutdown::Both);
        });
        copy(client, server, |bytes| shared.pass(holds(bytes)));
        let _ = server.shutdown(Shutdown::Write);
    });
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::TcpListener,
    };

    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    /// A server that says what it heard on each connection, once.
    fn echo() -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                thread::spawn(move || {
                    let mut buffer = [0; 16];
                    let length = stream.read(&mut buffer).unwrap();
                    stream.write_all(&buffer[..length]).unwrap();
                });
            }
        });
        address
    }

    #[test]
    fn what_is_held_goes_on_when_the_gate_opens_and_the_rest_at_once() {
        let gate = DelayingProxy::before(echo(), |bytes| bytes.starts_with(b"late")).unwrap();
        let say = |text: &[u8]| {
            let mut stream = TcpStream::connect(gate.address()).unwrap();
            stream.write_all(text).unwrap();
            stream
        };
        let hear = |mut stream: TcpStream| {
            let mut heard = String::new();
            stream.read_to_string(&mut heard).unwrap();
            heard
        };
        gate.shut();
        let late = say(b"late");
        assert!(gate.holds_one(SOON));
        assert_eq!(hear(say(b"now")), "now");
        assert_eq!(gate.passed(), 0);
        gate.open();
        assert_eq!(hear(late), "late");
        assert_eq!(gate.passed(), 1);
    }
}
