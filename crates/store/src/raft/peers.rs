//! Sends questions to other nodes. A connection is made when needed and kept; many questions may be under way on one.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Mutex as AsyncMutex, mpsc, oneshot},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{
    secure_channel::{Channel, ChannelSecurity, FrameReceiver, FrameSender},
    types::{NodeId, decode, encode},
    wire::{Answer, Hello, Question, numbered, parse},
};

/// Questions that got no answer in time, one after the other, before a connection is given up: the one at the other end may
/// be gone without a word.
const SILENCES: u32 = 3;

/// A connection that was not used for this long is closed; well before the other side does.
const IDLE: Duration = Duration::from_mins(1);

/// Messages that may wait to be sent on one connection.
const QUEUE: usize = 1024;

/// The purpose of a connection, so that a copy of everything does not hold up a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Lane {
    Raft,
    Copy,
    Client,
}

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// It was not sent.
    NotSent(String),
    /// It may have arrived.
    Lost(String),
}

impl NoAnswer {
    pub(super) fn reason(&self) -> &str {
        match self {
            Self::NotSent(reason) | Self::Lost(reason) => reason,
        }
    }
}

impl std::fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.reason())
    }
}

impl std::error::Error for NoAnswer {}

/// All connections this node made.
#[derive(Debug)]
pub(super) struct Peers {
    me: NodeId,
    guard: ChannelSecurity,
    links: Mutex<HashMap<(String, Lane), Arc<Link>>>,
    /// When each node last answered, in ticks; at whatever address.
    heard: Mutex<HashMap<NodeId, u64>>,
    /// The node that was found at each address the last time it was reached.
    found: Mutex<HashMap<String, NodeId>>,
    ticks: AtomicU64,
    closed: CancellationToken,
}

#[derive(Debug)]
struct Link {
    /// Counted up by each attempt to connect.
    attempts: AtomicU64,
    open: AsyncMutex<Result<Arc<Connection>, String>>,
}

#[derive(Debug)]
struct Connection {
    /// The node at the other end.
    node: NodeId,
    outgoing: mpsc::Sender<Vec<u8>>,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Answer>>>,
    next: AtomicU64,
    silences: AtomicU32,
    over: CancellationToken,
}

impl Peers {
    pub(super) fn new(me: NodeId, guard: ChannelSecurity, closed: CancellationToken) -> Self {
        Self {
            me,
            guard,
            links: Mutex::default(),
            heard: Mutex::default(),
            found: Mutex::default(),
            ticks: AtomicU64::new(0),
            closed,
        }
    }

    /// To be called regularly: what the age of a contact is measured in.
    pub(super) fn tick(&self) {
        self.ticks.fetch_add(1, Ordering::Relaxed);
    }

    /// How many ticks there have been.
    pub(super) fn now(&self) -> u64 {
        self.ticks.load(Ordering::Relaxed)
    }

    /// How many ticks ago this node answered last. What another one says that has come to its address is no answer.
    pub(super) fn silent_for(&self, node: NodeId) -> Option<u64> {
        let heard = lock(&self.heard).get(&node).copied();
        heard.map(|heard| self.now().saturating_sub(heard))
    }

    /// The node that answers at the address of `node` in its place, as far as is known.
    pub(super) fn other_at(&self, address: &str, node: NodeId) -> Option<NodeId> {
        lock(&self.found).get(address).copied().filter(|found| *found != node)
    }

    /// Asks the node at `address` and waits for its answer, at most `patience`.
    pub(super) async fn ask(
        self: &Arc<Self>,
        address: &str,
        lane: Lane,
        question: &Question,
        patience: Duration,
    ) -> Result<Answer, NoAnswer> {
        let connection = match timeout(patience, self.connection(address, lane)).await {
            Ok(connection) => connection.map_err(NoAnswer::NotSent)?,
            Err(_) => return Err(NoAnswer::NotSent(format!("{address} cannot be reached"))),
        };
        let number = connection.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        lock(&connection.waiting).insert(number, sender);
        // openraft gives a heartbeat up by itself; others who give up had their reasons.
        let mut place =
            PendingQuestion { connection: Arc::clone(&connection), number, unanswered: lane == Lane::Raft };
        let frame = numbered(number, question);
        let lost = |what: &str| NoAnswer::Lost(format!("{address} {what}"));
        let work = async {
            connection
                .outgoing
                .send(frame)
                .await
                .map_err(|_| NoAnswer::NotSent(format!("the connection to {address} broke")))?;
            tokio::select! {
                answer = answer => answer.map_err(|_| lost("hung up before it answered")),
                () = connection.over.cancelled() => Err(lost("hung up before it answered")),
            }
        };
        let Ok(answer) = timeout(patience, work).await else {
            place.unanswered = true;
            return Err(lost("did not answer in time"));
        };
        place.unanswered = false;
        let answer = answer?;
        connection.silences.store(0, Ordering::Relaxed);
        lock(&self.heard).insert(connection.node, self.now());
        Ok(answer)
    }

    async fn connection(self: &Arc<Self>, address: &str, lane: Lane) -> Result<Arc<Connection>, String> {
        let link = {
            let mut links = lock(&self.links);
            let key = (address.to_owned(), lane);
            Arc::clone(links.entry(key).or_insert_with(|| {
                Arc::new(Link {
                    attempts: AtomicU64::new(0),
                    open: AsyncMutex::new(Err("not yet connected".into())),
                })
            }))
        };
        let seen = link.attempts.load(Ordering::Acquire);
        if let Ok(open) = link.open.try_lock()
            && let Ok(connection) = &*open
            && !connection.over.is_cancelled()
        {
            return Ok(Arc::clone(connection));
        }
        // In a task of its own: many who ask are more hasty than a connection is made.
        let (peers, address) = (Arc::clone(self), address.to_owned());
        let work = tokio::spawn(async move {
            let mut open = link.open.lock().await;
            if let Ok(connection) = &*open
                && !connection.over.is_cancelled()
            {
                return Ok(Arc::clone(connection));
            }
            // A caller that waited for another attempt to fail need not try again at once.
            if link.attempts.load(Ordering::Acquire) != seen
                && let Err(reason) = &*open
            {
                return Err(reason.clone());
            }
            let outcome = peers.connect(&address).await;
            match &outcome {
                Ok(connection) => lock(&peers.found).insert(address.clone(), connection.node),
                Err(_) => lock(&peers.found).remove(&address),
            };
            let outcome = outcome.map_err(|error| format!("{address} cannot be reached: {error}"));
            link.attempts.fetch_add(1, Ordering::Release);
            open.clone_from(&outcome);
            outcome
        });
        work.await.unwrap_or_else(|error| Err(error.to_string()))
    }

    async fn connect(&self, address: &str) -> io::Result<Arc<Connection>> {
        let Channel { mut sender, mut receiver } = self.guard.connect(address).await?;
        let greet = async {
            sender.send(&encode(&Hello::of(self.me))).await?;
            receiver.receive().await?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
        };
        let greeting = timeout(Duration::from_secs(5), greet).await?;
        let greeting = greeting.map_err(|error| self.guard.explain(error))?;
        let hello: Hello =
            decode(&greeting).map_err(|_| io::Error::other("it says nothing that can be understood"))?;
        if let Some(refusal) = hello.refusal.clone().or_else(|| hello.misfit()) {
            return Err(io::Error::other(refusal));
        }
        let (outgoing, frames) = mpsc::channel(QUEUE);
        let connection = Arc::new(Connection {
            node: hello.node,
            outgoing,
            waiting: Mutex::default(),
            next: AtomicU64::new(0),
            silences: AtomicU32::new(0),
            over: self.closed.child_token(),
        });
        tokio::spawn(write(sender, frames, Arc::clone(&connection)));
        tokio::spawn(read(receiver, Arc::clone(&connection)));
        Ok(connection)
    }
}

/// A question under way. One without an answer counts as silence of the other side.
struct PendingQuestion {
    connection: Arc<Connection>,
    number: u64,
    unanswered: bool,
}

impl Drop for PendingQuestion {
    fn drop(&mut self) {
        lock(&self.connection.waiting).remove(&self.number);
        if self.unanswered && self.connection.silences.fetch_add(1, Ordering::Relaxed) + 1 >= SILENCES {
            self.connection.over.cancel();
        }
    }
}

async fn write(mut sender: FrameSender, mut frames: mpsc::Receiver<Vec<u8>>, connection: Arc<Connection>) {
    let over = &connection.over;
    loop {
        let frame = tokio::select! {
            () = over.cancelled() => break,
            () = tokio::time::sleep(IDLE) => {
                // A connection with a pending question is in use: installing a large snapshot takes time.
                if lock(&connection.waiting).is_empty() {
                    break;
                }
                continue;
            }
            frame = frames.recv() => frame,
        };
        let Some(frame) = frame else { break };
        let sent = tokio::select! {
            () = over.cancelled() => break,
            sent = sender.send(&frame) => sent,
        };
        if sent.is_err() {
            break;
        }
    }
    over.cancel();
}

async fn read(mut receiver: FrameReceiver, connection: Arc<Connection>) {
    loop {
        let frame = tokio::select! {
            () = connection.over.cancelled() => break,
            frame = receiver.receive() => frame,
        };
        let Ok(Some(frame)) = frame else { break };
        let Some((number, answer)) = parse::<Answer>(&frame) else { break };
        let answer = answer.unwrap_or_else(|error| {
            Answer::Error(format!("the answer of another release cannot be understood: {error}"))
        });
        // Any word is a sign of life, also one that comes too late.
        connection.silences.store(0, Ordering::Relaxed);
        if let Some(waiting) = lock(&connection.waiting).remove(&number) {
            let _ = waiting.send(answer);
        }
    }
    connection.over.cancel();
    lock(&connection.waiting).clear();
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
