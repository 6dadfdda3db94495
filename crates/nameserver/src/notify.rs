//! Sends NOTIFY to secondaries when a zone changed (RFC 1996).

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use netstead_model::Name;
use tokio::{net::UdpSocket, sync::Notify, time::timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::{
    wire::{HEADER, IN, OPCODE_NOTIFY, Reply, Section, kind, long, short},
    zone::Zone,
};

/// How often a secondary is told, each time after twice the wait.
const ROUNDS: u32 = 6;
/// How long the first round waits for answers.
const WAIT: Duration = Duration::from_secs(1);
/// Messages sent before answers are read.
const BURST: usize = 100;

/// Where changes are handed in; each secondary is told by a task of its own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notifier {
    secondaries: Vec<Arc<Queue>>,
}

#[derive(Debug, Default)]
struct Queue {
    /// The newest message for each zone; the number of rounds it had.
    waiting: Mutex<BTreeMap<Name, Message>>,
    wake: Notify,
}

#[derive(Debug, Clone)]
struct Message {
    bytes: Vec<u8>,
    round: u32,
    heard: bool,
}

impl Notifier {
    /// Starts a task for each secondary.
    pub(crate) fn start(secondaries: &[SocketAddr], stop: &CancellationToken) -> Self {
        let start = |secondary: &SocketAddr| {
            let queue = Arc::new(Queue::default());
            tokio::spawn(
                stop.clone().run_until_cancelled_owned(notify_secondary(*secondary, Arc::clone(&queue))),
            );
            queue
        };
        Self { secondaries: secondaries.iter().map(start).collect() }
    }

    /// Every secondary shall know of this generation of `zone`, and need not know of those before.
    pub(crate) fn changed(&self, name: &Name, zone: &Zone) {
        if self.secondaries.is_empty() || zone.serial == 0 {
            return;
        }
        let bytes = message(zone);
        for queue in &self.secondaries {
            queue.lock().insert(name.clone(), Message { bytes: bytes.clone(), round: 0, heard: false });
            queue.wake.notify_one();
        }
    }
}

impl Queue {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Name, Message>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn message(zone: &Zone) -> Vec<u8> {
    let mut question = zone.apex.to_vec();
    question.extend_from_slice(&kind::SOA.to_be_bytes());
    question.extend_from_slice(&IN.to_be_bytes());
    let mut reply = Reply::default();
    // The id of a message to a server that is asked for nothing needs not be secret; it tells generations apart.
    let [_, _, high, low] = zone.serial.to_be_bytes();
    reply.begin_request(u16::from_be_bytes([high, low]), OPCODE_NOTIFY, &question);
    reply.record_at(Section::Answer, HEADER, zone.soa());
    reply.end_message().to_vec()
}

async fn notify_secondary(secondary: SocketAddr, queue: Arc<Queue>) {
    loop {
        if queue.lock().is_empty() {
            queue.wake.notified().await;
        }
        let mut round: Vec<(Name, Message)> =
            queue.lock().iter().map(|(name, message)| (name.clone(), message.clone())).collect();
        round.sort_by_key(|(_, message)| message.round);
        round.truncate(BURST);
        let again = round.last().map_or(0, |(_, message)| message.round);
        let wait = WAIT.saturating_mul(1 << again.min(ROUNDS));
        let over = match send(secondary, &mut round, wait, &queue.wake).await {
            Ok(over) => over,
            Err(error) => {
                debug!(%secondary, %error, "A secondary cannot be told now.");
                tokio::time::sleep(wait).await;
                true
            }
        };
        settle(&queue, secondary, &round, over);
    }
}

/// Sends a round and marks what is answered; false if something newer came before the wait was over.
async fn send(
    secondary: SocketAddr,
    round: &mut [(Name, Message)],
    wait: Duration,
    wake: &Notify,
) -> std::io::Result<bool> {
    let any: SocketAddr = if secondary.is_ipv4() {
        (Ipv4Addr::UNSPECIFIED, 0).into()
    } else {
        (Ipv6Addr::UNSPECIFIED, 0).into()
    };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(secondary).await?;
    for (_, message) in round.iter() {
        socket.send(&message.bytes).await?;
    }
    let mut buffer = [0; 1500];
    let answers = async {
        while round.iter().any(|(_, message)| !message.heard) {
            let length = socket.recv(&mut buffer).await?;
            let answer = buffer.get(..length).unwrap_or_default();
            for (_, message) in round.iter_mut().filter(|(_, message)| is_answer(answer, &message.bytes)) {
                message.heard = true;
            }
        }
        Ok(true)
    };
    tokio::select! {
        heard = timeout(wait, answers) => heard.unwrap_or(Ok(true)),
        () = wake.notified() => {
            // The newer message may be for a zone of this round; it is sent at once, and this one is not counted.
            Ok(false)
        }
    }
}

/// Whether `answer` is one to `message`: the same id and question, whatever it says.
fn is_answer(answer: &[u8], message: &[u8]) -> bool {
    let question = question_end(message).unwrap_or(0);
    let flags = short(answer, 2).unwrap_or(0);
    question > HEADER
        && short(answer, 0) == short(message, 0)
        && flags & 0x8000 != 0
        && answer.get(HEADER..question).is_none_or(|asked| {
            message.get(HEADER..question).is_some_and(|sent| asked.eq_ignore_ascii_case(sent))
        })
}

fn question_end(message: &[u8]) -> Option<usize> {
    let mut at = HEADER;
    while let length @ 1.. = *message.get(at)? {
        at += usize::from(length) + 1;
    }
    long(message, at + 1).map(|_| at + 5)
}

/// Takes out what was heard and, when the wait is over, what was tried often enough; unless something newer waits.
fn settle(queue: &Queue, secondary: SocketAddr, round: &[(Name, Message)], over: bool) {
    let mut waiting = queue.lock();
    for (name, sent) in round {
        let Some(message) = waiting.get_mut(name).filter(|message| message.bytes == sent.bytes) else {
            continue;
        };
        message.round += u32::from(over);
        let tired = message.round >= ROUNDS;
        if tired && !sent.heard {
            warn!(%secondary, zone = %name, "A secondary does not take notice; it will find the change by itself.");
        }
        if tired || sent.heard {
            waiting.remove(name);
        }
    }
}
