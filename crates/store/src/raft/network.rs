//! The connections to other nodes, as openraft's network.

use std::{future::Future, sync::Arc, time::Duration};

use openraft::{
    AnyError, RaftNetwork, RaftNetworkFactory, Snapshot,
    error::{Fatal, RPCError, RaftError, ReplicationClosed, StreamingError, Unreachable},
    network::{Backoff, RPCOption},
    raft::{AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse},
};
use serde_bytes::ByteBuf;

use super::{
    disk::fatal,
    peers::{Lane, NoAnswer, Peers},
    snapshot_transfer::{Sending, SnapshotData},
    types::{Member, NodeId, Types, Vote},
    wire::{Answer, CopyPart, Question},
};

/// How long a part of a copy may take to arrive.
const PART: Duration = Duration::from_secs(10);

/// How long a node may take to make a copy its own.
const TAKE_OVER: Duration = Duration::from_mins(10);

/// How long after a node could not be reached it is tried again.
const PAUSE: Duration = Duration::from_millis(200);

#[derive(Debug, Clone)]
pub(super) struct Network {
    pub(super) peers: Arc<Peers>,
}

impl RaftNetworkFactory<Types> for Network {
    type Network = PeerClient;

    async fn new_client(&mut self, target: NodeId, node: &Member) -> PeerClient {
        PeerClient { peers: Arc::clone(&self.peers), id: target, address: node.address.clone() }
    }
}

/// One other node.
#[derive(Debug)]
pub(super) struct PeerClient {
    peers: Arc<Peers>,
    id: NodeId,
    address: String,
}

type Refused<E> = RPCError<NodeId, Member, RaftError<NodeId, E>>;

impl PeerClient {
    async fn ask<E: std::error::Error>(
        &self,
        lane: Lane,
        question: &Question,
        patience: Duration,
    ) -> Result<Answer, Refused<E>> {
        match self.peers.ask(&self.address, lane, question, patience).await {
            Ok(Answer::Error(reason)) => Err(unreachable(&NoAnswer::Lost(reason)).into()),
            Ok(answer) => Ok(answer),
            Err(error @ NoAnswer::NotSent(_)) => Err(unreachable(&error).into()),
            Err(error @ NoAnswer::Lost(_)) => Err(openraft::error::NetworkError::new(&error).into()),
        }
    }

    fn misunderstood<E: std::error::Error>(&self, answer: &Answer) -> Refused<E> {
        unreachable(&NoAnswer::Lost(format!("{} gave an answer to something else: {answer:?}", self.address)))
            .into()
    }
}

fn unreachable(why: &NoAnswer) -> Unreachable {
    Unreachable::new(&AnyError::error(why))
}

impl RaftNetwork<Types> for PeerClient {
    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<Types>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<NodeId>, Refused<openraft::error::Infallible>> {
        let question = Question::Append(self.id, rpc);
        match self.ask(Lane::Raft, &question, option.hard_ttl()).await? {
            Answer::Append(answer) => Ok(answer),
            answer => Err(self.misunderstood(&answer)),
        }
    }

    async fn vote(
        &mut self,
        rpc: VoteRequest<NodeId>,
        option: RPCOption,
    ) -> Result<VoteResponse<NodeId>, Refused<openraft::error::Infallible>> {
        let question = Question::Vote(self.id, rpc);
        match self.ask(Lane::Raft, &question, option.hard_ttl()).await? {
            Answer::Vote(answer) => Ok(answer),
            answer => Err(self.misunderstood(&answer)),
        }
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot<Types>,
        cancel: impl Future<Output = ReplicationClosed> + Send + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<NodeId>, StreamingError<Types, Fatal<NodeId>>> {
        tokio::select! {
            closed = cancel => Err(closed.into()),
            sent = self.send_copy(vote, snapshot) => sent,
        }
    }

    fn backoff(&self) -> Backoff {
        Backoff::new(std::iter::repeat(PAUSE))
    }
}

impl PeerClient {
    async fn send_copy(
        &self,
        vote: Vote,
        snapshot: Snapshot<Types>,
    ) -> Result<SnapshotResponse<NodeId>, StreamingError<Types, Fatal<NodeId>>> {
        let SnapshotData::View(view) = *snapshot.snapshot else {
            let odd = NoAnswer::NotSent("only a view is ever sent".into());
            return Err(unreachable(&odd).into());
        };
        tracing::info!(node = %self.address, upto = ?snapshot.meta.last_log_id, "Sending a copy of all data.");
        let mut sending = Sending::new(view);
        let mut offset = 0;
        let mut next = sending.next().await.map_err(|error| fatal(&error))?;
        let mut theirs = vote;
        while let Some(data) = next {
            let length = data.len() as u64;
            next = sending.next().await.map_err(|error| fatal(&error))?;
            let last = next.is_none();
            let meta = snapshot.meta.clone();
            let part = CopyPart { vote, meta, offset, data: ByteBuf::from(data), last };
            let patience = if last { TAKE_OVER } else { PART };
            let question = Question::Copy(self.id, part);
            let answer = self.peers.ask(&self.address, Lane::Copy, &question, patience).await;
            theirs = match answer {
                Ok(Answer::Copy(theirs)) => theirs,
                Ok(answer) => return Err(unreachable(&NoAnswer::Lost(format!("{answer:?}"))).into()),
                Err(error) => return Err(unreachable(&error).into()),
            };
            if theirs > vote {
                break; // Another one leads; openraft looks at the vote.
            }
            offset += length;
        }
        Ok(SnapshotResponse::new(theirs))
    }
}
