//! The messages between nodes, after both have identified each other.
//!
//! A question has a number and gets one answer with the same number; many may be under way on one connection. Later versions
//! may add fields, and a version ignores fields it does not know. An unknown question gets [`Answer::Error`].

use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, VoteRequest, VoteResponse};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use super::{
    proposer::{Done, NotDone},
    status::Status,
    types::{LogId, Member, NodeId, Outcome, Proposed, SnapshotMeta, Types, Vote, decode, encode},
};

/// The newest way of speaking this release knows, and the oldest.
pub(super) const PROTOCOL: u32 = 1;
pub(super) const OLDEST: u32 = 1;

/// The largest frame: an entry of the log with the largest commit and its conditions fits.
pub(super) const MAX_FRAME: usize = 16 << 20;

/// The first words of both sides.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) protocol: u32,
    pub(super) oldest: u32,
    pub(super) node: NodeId,
    #[serde(default)]
    pub(super) release: String,
    /// Why the sender closes the connection.
    #[serde(default)]
    pub(super) refusal: Option<String>,
}

impl Hello {
    pub(super) fn of(node: NodeId) -> Self {
        let release = env!("CARGO_PKG_VERSION").into();
        Self { protocol: PROTOCOL, oldest: OLDEST, node, release, refusal: None }
    }

    /// Why we cannot speak with the sender.
    pub(super) fn misfit(&self) -> Option<String> {
        let Self { protocol, oldest, release, .. } = self;
        if *oldest > PROTOCOL {
            return Some(format!(
                "a node of release {release} speaks the cluster's protocol {oldest} or later, and release {} knows it up \
                 to {PROTOCOL}: upgrade this node",
                env!("CARGO_PKG_VERSION")
            ));
        }
        (*protocol < OLDEST).then(|| {
            format!(
                "a node of release {release} speaks the cluster's protocol up to {protocol}, and release {} needs {OLDEST} \
                 or later: upgrade that node",
                env!("CARGO_PKG_VERSION")
            )
        })
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Question {
    /// openraft's own, to the node with this id and no other that may have come to its address.
    Append(NodeId, AppendEntriesRequest<Types>),
    Vote(NodeId, VoteRequest<NodeId>),
    Copy(NodeId, CopyPart),
    /// A commit, for the leader.
    Commit(Proposed),
    /// The entry that a reader must have applied to see everything acknowledged until now; for the leader.
    ReadIndex,
    /// The status of this node and of the cluster.
    Status,
    /// The node wants to be in the cluster, with its own description; for the leader.
    Join(NodeId, Member),
    /// A node is to leave the cluster; for the leader.
    Remove(NodeId),
    /// Asks the node at this address to come in; for the leader.
    Add(String),
    /// The leader resigns; the vote is for the node that it wants to lead next.
    Resigned(NodeId, Vote),
    /// The node is to stand for election now, with this vote.
    Stand(NodeId, Vote),
    /// Whether the node would vote for one that stands now and whose log ends with this entry.
    Canvass(NodeId, Option<LogId>),
}

/// A part of a copy of everything.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CopyPart {
    pub(super) vote: Vote,
    pub(super) meta: SnapshotMeta,
    pub(super) offset: u64,
    pub(super) data: ByteBuf,
    pub(super) last: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    Append(AppendEntriesResponse<NodeId>),
    Vote(VoteResponse<NodeId>),
    /// The vote of the receiver.
    Copy(Vote),
    Done(u64, Outcome),
    /// The commit is in no log and never will be.
    Never(String),
    /// The commit may be in a log.
    Maybe(String),
    Index(u64),
    Status(Box<Status>),
    Ok,
    /// Another node leads; ask there.
    NotLeader,
    /// The request cannot be done, with the reason for people.
    Error(String),
}

impl From<Result<Done, NotDone>> for Answer {
    fn from(outcome: Result<Done, NotDone>) -> Self {
        match outcome {
            Ok(Done { index, outcome }) => Self::Done(index, outcome),
            Err(NotDone::Never(reason)) => Self::Never(reason),
            Err(NotDone::Maybe(reason)) => Self::Maybe(reason),
        }
    }
}

/// A message with its number in front.
pub(super) fn numbered<T: Serialize>(number: u64, message: &T) -> Vec<u8> {
    let mut frame = number.to_be_bytes().to_vec();
    frame.extend_from_slice(&encode(message));
    frame
}

/// The number of a frame, and what it says if that is understood.
pub(super) fn parse<'a, T: Deserialize<'a>>(frame: &'a [u8]) -> Option<(u64, Result<T, String>)> {
    let (number, message) = frame.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*number), decode(message).map_err(|error| error.to_string())))
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use tokio::{net::TcpListener, time::timeout};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{
        Store as _,
        raft::{
            RaftOptions, RaftSecurity, RaftStore,
            peers::{Lane, Peers},
            secure_channel::ChannelSecurity,
            tests::free_address,
        },
    };

    const SOON: Duration = Duration::from_secs(30);

    fn release(release: &str, oldest: u32, protocol: u32) -> Hello {
        Hello { protocol, oldest, release: release.into(), ..Hello::of(7) }
    }

    /// One that knows nothing of what we speak, and one that speaks nothing we know; what is to be said of each.
    fn strangers() -> [(Hello, String); 2] {
        let ours = env!("CARGO_PKG_VERSION");
        let later = format!(
            "a node of release 9.8.7 speaks the cluster's protocol 2 or later, and release {ours} knows it up to 1: \
             upgrade this node"
        );
        let earlier = format!(
            "a node of release 0.0.1 speaks the cluster's protocol up to 0, and release {ours} needs 1 or later: \
             upgrade that node"
        );
        [(release("9.8.7", 2, 3), later), (release("0.0.1", 0, 0), earlier)]
    }

    fn security() -> RaftSecurity {
        RaftSecurity::Secret("sixteen characters".into())
    }

    #[test]
    fn who_does_not_fit_is_told_which_of_the_two_to_upgrade() {
        for (stranger, said) in strangers() {
            assert_eq!(stranger.misfit(), Some(said));
        }
        assert_eq!(Hello::of(7).misfit(), None);
        // A later release that still speaks as we do, and one that spoke so from the first.
        assert_eq!(release("9.8.7", 1, 3).misfit(), None);
        assert_eq!(release("0.0.1", 0, 1).misfit(), None);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_node_turns_away_who_does_not_fit_and_says_why() {
        let dir = tempfile::tempdir().unwrap();
        let listen = free_address();
        let store = RaftStore::open(RaftOptions::new(dir.path(), &listen, security())).await.unwrap();
        let guard = ChannelSecurity::new(&security()).unwrap();
        for (stranger, said) in strangers() {
            let mut channel = guard.connect(&listen).await.unwrap();
            channel.sender.send(&encode(&stranger)).await.unwrap();
            let greeting = timeout(SOON, channel.receiver.receive()).await.unwrap().unwrap().unwrap();
            assert_eq!(decode::<Hello>(&greeting).unwrap().refusal, Some(said));
            // It may ask anything: no node listens.
            let _ = channel.sender.send(&numbered(0, &Question::Status)).await;
            let answer = timeout(SOON, channel.receiver.receive()).await.unwrap();
            assert!(!matches!(answer, Ok(Some(_))), "{answer:?}");
        }
        store.close().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_node_asks_nothing_of_one_that_does_not_fit_or_turns_it_away() {
        let guard = ChannelSecurity::new(&security()).unwrap();
        let turned_away = Hello { refusal: Some("upgrade yours".into()), ..Hello::of(7) };
        let strangers = strangers().into_iter().chain([(turned_away, "upgrade yours".into())]);
        for (stranger, said) in strangers {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap().to_string();
            let accepting = guard.clone();
            let other = tokio::spawn(async move {
                let (tcp, _) = listener.accept().await.unwrap();
                let mut channel = accepting.accept(tcp).await.unwrap();
                channel.receiver.receive().await.unwrap().unwrap();
                channel.sender.send(&encode(&stranger)).await.unwrap();
                channel.receiver.receive().await
            });
            let peers = Arc::new(Peers::new(8, guard.clone(), CancellationToken::new()));
            let answer = peers.ask(&address, Lane::Raft, &Question::Status, SOON).await;
            let reason = answer.unwrap_err().to_string();
            assert_eq!(reason, format!("{address} cannot be reached: {said}"));
            let asked = timeout(SOON, other).await.unwrap().unwrap();
            assert!(!matches!(asked, Ok(Some(_))), "{asked:?}");
        }
    }
}
