//! [`RecordingProxy`]: a proxy on a socket that records the requests.

use std::{
    io,
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    os::unix::net::UnixStream,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use crate::tcp_forward::copy;

/// Forwards connections from a port of loopback to a Unix socket, and keeps the paths of all GET requests.
#[derive(Debug)]
pub struct RecordingProxy {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl RecordingProxy {
    pub fn before(socket: PathBuf) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let inside = Arc::clone(&asked);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A server that is not there is a connection that ends.
                let Ok(server) = UnixStream::connect(&socket) else { continue };
                let inside = Arc::clone(&inside);
                thread::spawn(move || join(&client, &server, &inside));
            }
        });
        Ok(Self { address, asked })
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The paths that were asked for since this was last called, without what follows a `?`.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn join(client: &TcpStream, server: &UnixStream, asked: &Mutex<Vec<String>>) {
    thread::scope(|scope| {
        scope.spawn(|| {
            copy(server, client, |_| {});
            let _ = client.shutdown(Shutdown::Both);
        });
        copy(client, server, |bytes| {
            let text = String::from_utf8_lossy(bytes);
            let paths = text.lines().filter_map(|line| line.strip_prefix("GET ")?.split([' ', '?']).next());
            asked.lock().unwrap_or_else(PoisonError::into_inner).extend(paths.map(str::to_owned));
        });
        let _ = server.shutdown(Shutdown::Write);
    });
}
