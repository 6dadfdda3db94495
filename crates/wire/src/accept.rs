//! Taking connections off a listener, also when that fails.

use std::{io, net::SocketAddr, time::Duration};

use netstead_model::SystemClock;
use tokio::{
    net::{TcpListener, TcpStream},
    time::sleep,
};
use tracing::{debug, warn};

use crate::LogLimit;

/// First and longest pause after a failure that does not pass by itself: out of file descriptors, most likely.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// One line per failure and half a minute is enough.
const SAID: Duration = Duration::from_secs(30);

/// A listener whose failures are logged and never end it, or keep a processor busy.
#[derive(Debug)]
pub struct Acceptor {
    /// Of people: `API`, `nameserver`.
    name: &'static str,
    listener: TcpListener,
    log: LogLimit,
}

impl Acceptor {
    pub fn new(name: &'static str, listener: TcpListener) -> Self {
        Self { name, listener, log: LogLimit::new(SAID, SystemClock::shared()) }
    }

    /// The next connection. Safe to drop before it comes.
    pub async fn accept(&self) -> (TcpStream, SocketAddr) {
        let (mut pause, longest) = PAUSES;
        loop {
            let error = match self.listener.accept().await {
                Ok(accepted) => return accepted,
                Err(error) => error,
            };
            if is_of_the_connection(&error) {
                debug!(listener = self.name, %error, "A connection ended before it was accepted.");
                continue;
            }
            // It waits in the kernel's queue meanwhile, which ends after the same time for everyone.
            if let Some(held_back) = self.log.pass() {
                warn!(
                    listener = self.name, %error, held_back,
                    "Connections cannot be accepted; if this process has too many files open, raise its limit \
                     (`LimitNOFILE=` of systemd, `ulimit -n`) or lower `max_connections`."
                );
            }
            sleep(pause).await;
            pause = (pause * 2).min(longest);
        }
    }
}

/// Whether an error says something about one connection only, so that the next can be accepted at once.
fn is_of_the_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}
