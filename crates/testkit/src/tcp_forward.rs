//! Forwards bytes between two connections.

use std::{
    io::{self, Read, Write},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::Duration,
};

/// Listens at `host` and lets `join` bring each client together with `server`; where clients connect to.
pub(crate) fn forward(
    host: IpAddr,
    server: SocketAddr,
    join: impl Fn(&TcpStream, &TcpStream) + Send + Sync + 'static,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((host, 0))?;
    let address = listener.local_addr()?;
    let join = Arc::new(join);
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let join = Arc::clone(&join);
            // A server that is not there is a connection that ends.
            if let Ok(server) = TcpStream::connect_timeout(&server, Duration::from_secs(5)) {
                let _ = (client.set_nodelay(true), server.set_nodelay(true));
                thread::spawn(move || join(&client, &server));
            }
        }
    });
    Ok(address)
}

/// Passes on what comes, as soon as it comes, until either end is done; `before` sees it first.
pub(crate) fn copy(mut from: impl Read, mut to: impl Write, before: impl Fn(&[u8])) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        let Some(bytes) = buffer.get(..length) else { return };
        before(bytes);
        if to.write_all(bytes).is_err() {
            return;
        }
    }
}
