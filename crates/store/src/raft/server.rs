//! Answers the questions of other nodes.

use std::{io, sync::Arc, time::Duration};

use netstead_wire::Acceptor;
use openraft::Snapshot;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::{
    node::Node,
    rejected_peers::RejectedPeers,
    secure_channel::{Channel, ChannelSecurity, FrameReceiver, FrameSender},
    snapshot_transfer::{self, SnapshotData},
    types::{NodeId, decode, encode, hex},
    wire::{Answer, CopyPart, Hello, Question, numbered, parse},
};

/// Connections at once; more wait to be accepted.
pub const CONNECTIONS: usize = 256;

/// Questions of one connection that are worked on at once.
const QUESTIONS: usize = 512;

/// A connection on which nothing was said for this long is closed.
const IDLE: Duration = Duration::from_mins(3);

/// How long an answer may take to be sent.
const SEND: Duration = Duration::from_secs(30);

/// How much of a copy has come.
#[derive(Debug)]
pub(super) struct Incoming {
    id: String,
    next: u64,
}

pub(super) async fn serve(node: Arc<Node>, listener: TcpListener, guard: ChannelSecurity) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let strangers = Arc::new(RejectedPeers::default());
    let acceptor = Acceptor::new("raft", listener);
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Some((tcp, from)) = node.closed.run_until_cancelled(acceptor.accept()).await else { return };
        let (node, guard, strangers) = (Arc::clone(&node), guard.clone(), Arc::clone(&strangers));
        let now = node.peers.now();
        tokio::spawn(async move {
            match talk(node, guard, tcp).await {
                Err(error)
                    if error.kind() == io::ErrorKind::PermissionDenied
                        && strangers.should_log(from.ip(), &error.to_string(), now) =>
                {
                    warn!(%from, %error, "A node that cannot show that it is one of ours was turned away.");
                }
                Err(error) => debug!(%from, %error, "A connection of another node ended."),
                Ok(()) => {}
            }
            drop(place);
        });
    }
}

async fn talk(node: Arc<Node>, guard: ChannelSecurity, tcp: TcpStream) -> io::Result<()> {
    let Channel { mut sender, mut receiver } = guard.accept(tcp).await?;
    let greeting = timeout(Duration::from_secs(5), receiver.receive()).await??;
    let theirs: Hello = greeting
        .and_then(|frame| decode(&frame).ok())
        .ok_or_else(|| io::Error::other("it says nothing that can be understood"))?;
    let refusal = theirs.misfit();
    let ours = Hello { refusal: refusal.clone(), ..Hello::of(node.id) };
    sender.send(&encode(&ours)).await?;
    if let Some(refusal) = refusal {
        warn!(node = %hex(theirs.node), refusal, "A node of another release was turned away.");
        return Ok(());
    }
    let over = node.closed.child_token();
    let (answers, outgoing) = mpsc::channel(QUESTIONS);
    tokio::spawn(send(sender, outgoing, over.clone()));
    let outcome = listen(node, receiver, answers, &over).await;
    over.cancel();
    outcome
}

async fn listen(
    node: Arc<Node>,
    mut receiver: FrameReceiver,
    answers: mpsc::Sender<Vec<u8>>,
    over: &CancellationToken,
) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(QUESTIONS));
    loop {
        let frame = tokio::select! {
            () = over.cancelled() => return Ok(()),
            frame = receiver.receive() => frame?,
            () = unused_for_long(&places) => return Ok(()),
        };
        let Some(frame) = frame else { return Ok(()) };
        let Some((number, question)) = parse::<Question>(&frame) else {
            return Err(io::Error::other("a message without a number"));
        };
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return Ok(()) };
        let (node, answers) = (Arc::clone(&node), answers.clone());
        tokio::spawn(async move {
            let answer = match question {
                Ok(question) => node.answer(question).await,
                Err(error) => Answer::Error(format!(
                    "release {} does not understand the question: {error}",
                    env!("CARGO_PKG_VERSION")
                )),
            };
            let _ = answers.send(numbered(number, &answer)).await; // The connection may be over by now.
            drop(place);
        });
    }
}

/// Returns when nothing was asked for long, and nothing that was asked before is still worked on.
async fn unused_for_long(places: &Semaphore) {
    loop {
        sleep(IDLE).await;
        if places.available_permits() == QUESTIONS {
            return;
        }
    }
}

async fn send(mut sender: FrameSender, mut outgoing: mpsc::Receiver<Vec<u8>>, over: CancellationToken) {
    loop {
        let frame = tokio::select! {
            () = over.cancelled() => break,
            frame = outgoing.recv() => frame,
        };
        let Some(frame) = frame else { break };
        if !matches!(timeout(SEND, sender.send(&frame)).await, Ok(Ok(()))) {
            break;
        }
    }
    over.cancel();
}

impl Node {
    async fn answer(&self, question: Question) -> Answer {
        let Some(core) = self.core() else {
            return match question {
                Question::Commit(_) => Answer::Never("this node is starting".into()),
                Question::Status => Answer::Status(Box::new(self.status_for_others().await)),
                _ => Answer::Error(self.why_no_leader()),
            };
        };
        match question {
            Question::Append(to, _)
            | Question::Vote(to, _)
            | Question::Copy(to, _)
            | Question::Resigned(to, _)
            | Question::Stand(to, _)
            | Question::Canvass(to, _)
                if to != self.id =>
            {
                self.somebody_else(to)
            }
            Question::Append(_, rpc) => {
                let vote = rpc.vote;
                self.note_leader_contact(&core, &vote);
                let answer = core.raft.append_entries(rpc).await;
                // The core may have been busy, and trusts the leader only from now on.
                self.note_leader_contact(&core, &vote);
                answer.map_or_else(|error| Answer::Error(error.to_string()), Answer::Append)
            }
            Question::Vote(_, rpc) => match core.raft.vote(rpc).await {
                Ok(answer) => {
                    if answer.vote_granted {
                        self.election_timer.retry_later();
                    }
                    Answer::Vote(answer)
                }
                Err(error) => Answer::Error(error.to_string()),
            },
            Question::Copy(_, part) => {
                self.note_leader_contact(&core, &part.vote);
                self.receive_copy(part).await.unwrap_or_else(Answer::Error)
            }
            Question::Resigned(_, vote) => self.leader_resigned(&core.raft, vote).await,
            Question::Stand(_, vote) => self.stand_for_election(&core.raft, vote).await,
            Question::Canvass(_, last) => self.answer_pre_vote(last),
            Question::Commit(proposed) => self.propose_here(proposed).await.into(),
            Question::Status => Answer::Status(Box::new(self.status_for_others().await)),
            question => self.answer_as_leader(&question).await,
        }
    }

    fn somebody_else(&self, wanted: NodeId) -> Answer {
        Answer::Error(format!(
            "node {} is not at {} any more, this is node {}",
            hex(wanted),
            self.options.address(),
            hex(self.id)
        ))
    }

    async fn receive_copy(&self, part: CopyPart) -> Result<Answer, String> {
        let core = self.core().ok_or("this node is starting")?;
        let mut incoming = self.incoming.lock().await;
        let vote = core.raft.metrics().borrow().vote;
        if vote > part.vote {
            return Ok(Answer::Copy(vote));
        }
        let id = &part.meta.snapshot_id;
        let goes_on =
            incoming.as_ref().is_some_and(|incoming| incoming.id == *id && incoming.next == part.offset);
        if part.offset != 0 && !goes_on {
            return Err("the parts of the copy do not follow each other; begin anew".into());
        }
        let path = snapshot_transfer::incoming_path(&self.disk.dir);
        snapshot_transfer::receive(&path, part.offset, &part.data)
            .await
            .map_err(|error| error.to_string())?;
        let next = part.offset + part.data.len() as u64;
        *incoming = Some(Incoming { id: id.clone(), next });
        if !part.last {
            return Ok(Answer::Copy(part.vote));
        }
        *incoming = None;
        snapshot_transfer::verify(&path).await?;
        tracing::info!(bytes = next, upto = ?part.meta.last_log_id, "Got a copy of all data.");
        let snapshot = Snapshot { meta: part.meta, snapshot: Box::new(SnapshotData::File(path)) };
        let answer = core.raft.install_full_snapshot(part.vote, snapshot).await;
        answer.map(|answer| Answer::Copy(answer.vote)).map_err(|error| error.to_string())
    }
}
