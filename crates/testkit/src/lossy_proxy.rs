//! [`LossyProxy`]: a proxy that loses some answers, or some requests.

use std::{
    io,
    net::{IpAddr, Shutdown, SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use crate::{
    delaying_proxy::RequestFilter,
    tcp_forward::{copy, forward},
};

/// How long a server has to do what it was asked before the connection ends.
const AT_WORK: Duration = Duration::from_millis(300);

/// Forwards connections to a server. Now and then a request of one kind gets through and its answer does not: the
/// connection is silent from then on, and soon it breaks.
#[derive(Debug)]
pub struct LossyProxy {
    address: SocketAddr,
    shared: Arc<LossCounters>,
}

#[derive(Debug, Default)]
struct LossCounters {
    /// Of how many requests one loses its answer; 0 for none.
    one_in: AtomicUsize,
    /// Whether that request is lost too.
    drops: AtomicBool,
    seen: AtomicUsize,
    lost: AtomicUsize,
}

impl LossyProxy {
    /// A way to `server` that begins at `host` and loses nothing yet.
    pub fn before(host: IpAddr, server: SocketAddr, loses: RequestFilter) -> io::Result<Self> {
        let shared = Arc::new(LossCounters::default());
        let inside = Arc::clone(&shared);
        let address = forward(host, server, move |client, server| join(client, server, &inside, loses))?;
        Ok(Self { address, shared })
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on one of so many requests loses its answer; none with 0.
    pub fn lose_one_in(&self, count: usize) {
        self.shared.drops.store(false, Ordering::SeqCst);
        self.shared.one_in.store(count, Ordering::SeqCst);
    }

    /// From now on one of so many requests does not arrive: its connection ends at once. None with 0.
    pub fn drop_one_in(&self, count: usize) {
        self.shared.drops.store(true, Ordering::SeqCst);
        self.shared.one_in.store(count, Ordering::SeqCst);
    }

    /// How many answers were lost, with those to requests that did not arrive.
    pub fn lost(&self) -> usize {
        self.shared.lost.load(Ordering::SeqCst)
    }
}

impl LossCounters {
    fn loses_this(&self) -> bool {
        let one_in = self.one_in.load(Ordering::SeqCst);
        if one_in == 0 || !(self.seen.fetch_add(1, Ordering::SeqCst) + 1).is_multiple_of(one_in) {
            return false;
        }
        self.lost.fetch_add(1, Ordering::SeqCst);
        true
    }
}

fn join(client: &TcpStream, server: &TcpStream, shared: &LossCounters, loses: RequestFilter) {
    let silent = AtomicBool::new(false);
    let end = || {
        let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            copy(server, SilenceableWriter { client, silent: &silent }, |_| {});
            end();
        });
        copy(client, server, |bytes| {
            if !loses(bytes) || !shared.loses_this() {
                return;
            }
            if shared.drops.load(Ordering::SeqCst) {
                // What is written to the server after this fails.
                end();
            } else if !silent.swap(true, Ordering::SeqCst) {
                scope.spawn(|| {
                    thread::sleep(AT_WORK);
                    end();
                });
            }
        });
        end();
    });
}

/// Writes to the client unless it is silenced.
struct SilenceableWriter<'a> {
    client: &'a TcpStream,
    silent: &'a AtomicBool,
}

impl io::Write for SilenceableWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.silent.load(Ordering::SeqCst) {
            return Ok(bytes.len());
        }
        (&mut &*self.client).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::{Ipv4Addr, TcpListener},
        sync::Mutex,
    };

    use super::*;

    #[test]
    fn a_request_arrives_though_its_answer_is_lost_and_not_if_it_is_dropped() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let server = listener.local_addr().unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let inside = Arc::clone(&heard);
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let inside = Arc::clone(&inside);
                thread::spawn(move || {
                    let mut buffer = [0; 16];
                    while let Ok(length @ 1..) = stream.read(&mut buffer) {
                        inside.lock().unwrap().extend_from_slice(&buffer[..length]);
                        stream.write_all(b"yes").unwrap();
                    }
                });
            }
        });
        let way = LossyProxy::before(Ipv4Addr::LOCALHOST.into(), server, |bytes| bytes.starts_with(b"put"))
            .unwrap();
        way.lose_one_in(2);
        let ask = |text: &[u8]| {
            let mut stream = TcpStream::connect(way.address()).unwrap();
            stream.write_all(text).unwrap();
            let mut buffer = [0; 3];
            stream.read_exact(&mut buffer).is_ok()
        };
        assert!(ask(b"get1") && ask(b"put1"));
        assert!(!ask(b"put2"), "every second one");
        assert!(ask(b"get2"));
        assert_eq!(way.lost(), 1);
        way.drop_one_in(1);
        assert!(!ask(b"put3") && ask(b"get3"));
        assert_eq!(way.lost(), 2);
        assert_eq!(*heard.lock().unwrap(), b"get1put1put2get2get3");
    }
}
