//! [`Link`]: a connection between two places that can be cut.

use std::{
    io,
    net::{IpAddr, Shutdown, SocketAddr, TcpStream},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use crate::tcp_forward::{copy, forward};

/// Forwards connections to a server. While it is cut, every connection breaks, those that are open too. While it is held,
/// connections stay open and nothing comes through.
#[derive(Debug)]
pub struct Link {
    address: SocketAddr,
    state: Arc<LinkState>,
}

#[derive(Debug, Default)]
struct LinkState {
    cut: AtomicBool,
    held: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

impl Link {
    /// A way to `server` that begins at `host`.
    pub fn before(host: IpAddr, server: SocketAddr) -> io::Result<Self> {
        let state = Arc::new(LinkState::default());
        let inside = Arc::clone(&state);
        let address = forward(host, server, move |client, server| inside.join(client, server))?;
        Ok(Self { address, state })
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn cut(&self) {
        self.state.cut.store(true, Ordering::SeqCst);
        for open in self.state.open().drain(..) {
            let _ = open.shutdown(Shutdown::Both);
        }
    }

    pub fn hold(&self) {
        self.state.held.store(true, Ordering::SeqCst);
    }

    pub fn release(&self) {
        self.state.held.store(false, Ordering::SeqCst);
    }

    pub fn mend(&self) {
        self.state.cut.store(false, Ordering::SeqCst);
    }
}

impl LinkState {
    fn open(&self) -> std::sync::MutexGuard<'_, Vec<TcpStream>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while nothing comes through.
    fn wait(&self) {
        while self.held.load(Ordering::SeqCst) && !self.cut.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn join(&self, client: &TcpStream, server: &TcpStream) {
        let end = || {
            let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
        };
        {
            let mut open = self.open();
            // A peer address is gone once a connection has ended.
            open.retain(|stream| stream.peer_addr().is_ok());
            open.extend([client.try_clone(), server.try_clone()].into_iter().flatten());
        }
        if self.cut.load(Ordering::SeqCst) {
            return end();
        }
        thread::scope(|scope| {
            scope.spawn(|| {
                copy(server, client, |_| self.wait());
                end();
            });
            copy(client, server, |_| self.wait());
            end();
        });
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::{Ipv4Addr, TcpListener},
    };

    use super::*;

    #[test]
    fn a_cut_link_breaks_what_is_open_and_what_comes_until_it_is_mended() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let at = server.local_addr().unwrap();
        thread::spawn(move || {
            for mut stream in server.incoming().flatten() {
                thread::spawn(move || {
                    let mut one = [0];
                    while stream.read_exact(&mut one).is_ok() && stream.write_all(&one).is_ok() {}
                });
            }
        });
        let link = Link::before(Ipv4Addr::LOCALHOST.into(), at).unwrap();
        let echo = |stream: &mut TcpStream| {
            let mut one = [0];
            stream.write_all(b"x").and_then(|()| stream.read_exact(&mut one)).is_ok()
        };
        let mut open = TcpStream::connect(link.address()).unwrap();
        assert!(echo(&mut open));
        link.cut();
        assert!(!echo(&mut open));
        assert!(!echo(&mut TcpStream::connect(link.address()).unwrap()));
        link.mend();
        assert!(echo(&mut TcpStream::connect(link.address()).unwrap()));
    }
}
