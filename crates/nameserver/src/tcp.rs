//! Queries and transfers over TCP.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use netstead_model::SystemClock;
use netstead_wire::{Acceptor, ActiveConnection, LogLimit, QueryCounter};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::{
    answer::{Step, answer},
    server::SocketContext,
    transfer::{Transfer, is_apex},
    wire::{Query, Reply, code},
    zones::zone_with,
};

/// How long a connection may be silent while many are open.
const IDLE_WHEN_BUSY: Duration = Duration::from_secs(2);
/// One line about refused connections in this time.
const SAID: Duration = Duration::from_secs(30);

pub(crate) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(1024)?;
    TcpListener::from_std(socket.into())
}

/// Takes connections until told to stop. With all places taken the longest idle connection makes room.
pub(crate) async fn serve(listener: TcpListener, shared: Arc<SocketContext>, stop: CancellationToken) {
    let acceptor = Acceptor::new("nameserver", listener);
    let counter = shared.queries.counter("tcp");
    let refusals = LogLimit::new(SAID, SystemClock::shared());
    while let Some((stream, peer)) = stop.run_until_cancelled(acceptor.accept()).await {
        let place = match shared.connections.admit(peer.ip()) {
            Ok(place) => place,
            Err(refused) => {
                if let Some(held_back) = refusals.pass() {
                    let limits = shared.connections.limits();
                    warn!(
                        peer = %peer.ip(), in_all = limits.in_all, per_peer = limits.per_peer, held_back,
                        "A connection to the nameserver was refused: {refused}."
                    );
                }
                continue;
            }
        };
        let (shared, stop, counter) = (Arc::clone(&shared), stop.clone(), counter.clone());
        tokio::spawn(async move {
            let connection = Connection { stream, peer, shared, counter, place: &place };
            tokio::select! {
                () = stop.cancelled() => {}
                () = place.displaced() => {
                    debug!(client = %peer, "A connection was closed: it was idle longest, and others wanted its place.");
                }
                ended = connection.run() => {
                    if let Err(error) = ended {
                        debug!(client = %peer, %error, "A connection ended early.");
                    }
                }
            }
        });
    }
}

struct Connection<'p> {
    stream: TcpStream,
    peer: SocketAddr,
    shared: Arc<SocketContext>,
    counter: QueryCounter,
    place: &'p ActiveConnection,
}

impl Connection<'_> {
    async fn run(mut self) -> io::Result<()> {
        self.stream.set_nodelay(true)?;
        let mut reply = Reply::default();
        let mut packet = Vec::new();
        while self.receive(&mut packet).await? {
            let _in_progress = self.place.begin_request();
            let picture = self.shared.zones.load_full();
            match answer(&picture, &packet, &mut reply) {
                // No DNS client sends this.
                Step::Drop => return Ok(()),
                Step::Send => {
                    self.counter.count(reply.response_code());
                    self.send(&framed(reply.end_message())).await?;
                }
                Step::Transfer(query) => {
                    let zone = zone_with(&picture, query.name()).filter(|zone| is_apex(zone, query.name()));
                    let zone = zone.filter(|_| self.shared.may_transfer(self.peer.ip()));
                    let Some(zone) = zone else {
                        let known =
                            zone_with(&picture, query.name()).is_some_and(|zone| is_apex(zone, query.name()));
                        reply.code(if known { code::REFUSED } else { code::NOTAUTH });
                        self.counter.count(reply.response_code());
                        self.send(&framed(reply.end_message())).await?;
                        continue;
                    };
                    self.counter.count(code::NOERROR);
                    self.transfer(zone, &query).await?;
                }
            }
        }
        Ok(())
    }

    async fn transfer(&mut self, zone: &crate::zone::Zone, query: &Query<'_>) -> io::Result<()> {
        let mut transfer = Transfer::new(zone, query);
        while let Some(messages) = transfer.next_messages() {
            let bytes: Vec<u8> = messages.iter().flat_map(|message| framed(message)).collect();
            self.send(&bytes).await?;
        }
        Ok(())
    }

    /// How long it may be silent now, or not read what it asked for.
    fn idle(&self) -> Duration {
        let SocketContext { connections, idle, .. } = &*self.shared;
        let busy = connections.counts().open > connections.limits().in_all / 2;
        if busy { IDLE_WHEN_BUSY.min(*idle) } else { *idle }
    }

    /// Reads one message; false if the client is done.
    async fn receive(&mut self, packet: &mut Vec<u8>) -> io::Result<bool> {
        let idle = self.idle();
        let stream = &mut self.stream;
        let read = async {
            let length = match stream.read_u16().await {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
                Err(error) => return Err(error),
            };
            packet.clear();
            packet.resize(length.into(), 0);
            stream.read_exact(packet).await.map(|_| true)
        };
        timeout(idle, read).await.unwrap_or(Ok(false))
    }

    async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let sent = timeout(self.idle(), self.stream.write_all(bytes)).await;
        sent.unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }
}

/// A message with its length in front.
fn framed(message: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(message.len() + 2);
    // No message is longer: see `Reply::end_message`.
    bytes.extend_from_slice(&u16::try_from(message.len()).unwrap_or(u16::MAX).to_be_bytes());
    bytes.extend_from_slice(message);
    bytes
}
