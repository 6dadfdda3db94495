//! Queries over UDP: one socket and one thread each, many datagrams per call.

use std::{io, net::SocketAddr, sync::Arc};

use netstead_wire::QueryCounter;
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::{io::Interest, net::UdpSocket};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::{
    answer::{Step, answer},
    server::SocketContext,
    transfer::{Transfer, is_apex},
    wire::{Reply, code, kind},
    zones::zone_with,
};

/// Room for what one slot of a batch may receive: queries are small, what is larger is none.
const MOST_OF_QUERY: usize = 4096;
/// Room for queries that wait while a thread does not run.
const QUEUE: usize = 2 << 20;

/// A socket that shares its port with others of this process.
pub(crate) fn bind(address: SocketAddr) -> io::Result<std::net::UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_port(true)?;
    if let Err(error) = socket.set_recv_buffer_size(QUEUE) {
        debug!(%error, "The receive buffer stays as it is.");
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Answers until told to stop; runs on a thread of its own, so that other work does not delay answers.
pub(crate) fn serve(
    socket: std::net::UdpSocket,
    shared: &Arc<SocketContext>,
    stop: &CancellationToken,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let state = UdpSocketState::new((&socket).into())?;
        let socket = UdpSocket::from_std(socket)?;
        let mut batch = Batch::new(state, shared.queries.counter("udp"));
        stop.run_until_cancelled(batch.run(&socket, shared)).await;
        Ok(())
    })
}

struct Batch {
    state: UdpSocketState,
    room: Vec<u8>,
    slot: usize,
    reply: Reply,
    counter: QueryCounter,
}

impl Batch {
    fn new(state: UdpSocketState, counter: QueryCounter) -> Self {
        let slot = MOST_OF_QUERY * state.gro_segments().min(8);
        Self { room: vec![0; slot * BATCH_SIZE], slot, state, reply: Reply::default(), counter }
    }

    async fn run(&mut self, socket: &UdpSocket, shared: &SocketContext) {
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        loop {
            if socket.readable().await.is_err() {
                return;
            }
            let mut slots: Vec<io::IoSliceMut<'_>> =
                self.room.chunks_mut(self.slot).map(io::IoSliceMut::new).collect();
            // As long as there is something to read, no time is spent on asking whether there is.
            loop {
                let received = socket
                    .try_io(Interest::READABLE, || self.state.recv(socket.into(), &mut slots, &mut metas));
                let received = match received {
                    Ok(received) => received,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => {
                        // Such as a port that was unreachable for an answer: it says nothing about the next query.
                        debug!(%error, "A datagram was not received.");
                        break;
                    }
                };
                for (slot, meta) in slots.iter().zip(&metas).take(received) {
                    let packets = slot.get(..meta.len).unwrap_or_default();
                    for packet in packets.chunks(meta.stride.max(1)) {
                        respond(&mut self.reply, &self.counter, packet, meta, shared, |contents| {
                            let transmit = Transmit {
                                destination: meta.addr,
                                ecn: None,
                                contents,
                                segment_size: None,
                                src_ip: meta.dst_ip,
                            };
                            self.state.try_send(socket.into(), &transmit)
                        });
                    }
                }
            }
        }
    }
}

fn respond(
    reply: &mut Reply,
    counter: &QueryCounter,
    packet: &[u8],
    meta: &RecvMeta,
    shared: &SocketContext,
    send: impl FnOnce(&[u8]) -> io::Result<()>,
) {
    let picture = shared.zones.load();
    match answer(&picture, packet, reply) {
        Step::Drop => return,
        Step::Send => {}
        Step::Transfer(query) => {
            let zone = zone_with(&picture, query.name()).filter(|zone| is_apex(zone, query.name()));
            match zone {
                None => reply.code(code::NOTAUTH),
                Some(_) if !shared.may_transfer(meta.addr.ip()) => reply.code(code::REFUSED),
                // A whole zone does not fit; this tells the client to come back over TCP.
                Some(zone) if query.kind == kind::IXFR => Transfer::only_soa(zone, reply),
                Some(_) => reply.code(code::FORMERR),
            }
        }
    }
    counter.count(reply.response_code());
    if let Err(error) = send(reply.end_datagram())
        && error.kind() != io::ErrorKind::WouldBlock
    {
        warn!(client = %meta.addr, %error, "An answer was not sent.");
    }
}
