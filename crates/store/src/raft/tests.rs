//! Tests that look into a node's files, or set them back.

use std::{
    net::TcpListener,
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use openraft::ChangeMembers;
use tokio::time::{sleep, timeout};

use super::{
    Leader, Member, NodeId, RaftOptions, RaftSecurity, RaftStore, Role, Status, bootstrap,
    disk::{Applied, Disk, applied_write},
    hex,
    node::TICK,
    secure_channel::ChannelSecurity,
    types::encode,
    wire::{Answer, Hello, Question, numbered, parse},
};
use crate::{Commit, Health, Store as _, local::engine::disk_key};

const SOON: Duration = Duration::from_secs(30);

/// None of the ports that connections of this machine begin at, which come and go.
pub(super) fn free_address() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let address = format!("127.0.0.1:{}", 10_000 + (std::process::id() * 41 + number * 7) % 20_000);
        if TcpListener::bind(&address).is_ok() {
            return address;
        }
    }
}

/// Three that are to make a cluster.
fn three(dir: &Path) -> Vec<RaftOptions> {
    let addresses: Vec<String> = (0..3).map(|_| free_address()).collect();
    let options = addresses.iter().enumerate().map(|(number, address)| {
        let security = RaftSecurity::Secret("sixteen characters".into());
        let mut options = RaftOptions::new(dir.join(number.to_string()), address, security);
        options.peers = addresses.iter().filter(|other| *other != address).cloned().collect();
        options.timeout = Duration::from_secs(20);
        options.timings.heartbeat = Duration::from_millis(200);
        options.timings.election = (Duration::from_secs(1), Duration::from_secs(2));
        options
    });
    options.collect()
}

async fn open(options: &[RaftOptions]) -> Vec<RaftStore> {
    let mut stores = Vec::new();
    for options in options {
        stores.push(RaftStore::open(options.clone()).await.unwrap());
    }
    stores
}

async fn leader(stores: &[RaftStore]) -> usize {
    let find = async {
        loop {
            let leads = |store: &RaftStore| store.node.leader() == Leader::Me;
            if let Some(found) = stores.iter().position(leads) {
                return found;
            }
            sleep(TICK).await;
        }
    };
    timeout(SOON, find).await.expect("one of them leads")
}

/// Ends them as a kill does: nothing is handed over.
async fn end_at_once(stores: Vec<RaftStore>) {
    for store in &stores {
        store.node.closed.cancel();
    }
    for store in stores {
        store.node.over.cancelled().await;
    }
}

/// The data of a node as it may be after a kill: what the last entries did was not on the disk yet, the entries were.
async fn set_back(dir: &Path, key: &[u8], applied: &Applied) {
    let disk = Disk::open(dir).await.unwrap();
    assert!(disk.applied().unwrap().log_id > applied.log_id, "there should be something to lose");
    disk.store.write_raw(vec![applied_write(applied), (disk_key(key), None)], true).await.unwrap();
    disk.store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_led_before_a_kill_answers_no_read_before_it_has_everything_again() {
    let dir = tempfile::tempdir().unwrap();
    let options = three(dir.path());
    let mut stores = open(&options).await;
    let first = leader(&stores).await;
    stores[first].commit(Commit::new().put("before", "1")).await.unwrap();
    let applied = stores[first].node.disk.applied().unwrap();
    // So much that it takes a while to be applied again, and a read could come before.
    let large = "x".repeat(200 << 10);
    for number in 0..60 {
        stores[first].commit(Commit::new().put(format!("k/{number}"), large.clone())).await.unwrap();
    }
    stores[first].commit(Commit::new().put("acknowledged", "1")).await.unwrap();
    end_at_once(std::mem::take(&mut stores)).await;
    set_back(&options[first].path, b"acknowledged", &applied).await;

    // The others are there before it, so that they answer its first question.
    let others = [&options[(first + 1) % 3], &options[(first + 2) % 3]];
    let others = open(&others.map(Clone::clone)).await;
    let resumed = RaftStore::open(options[first].clone()).await.unwrap();
    let read = timeout(SOON, resumed.get(b"acknowledged")).await.unwrap().unwrap();
    assert!(read.is_some(), "what was acknowledged is not there");
    end_at_once(others.into_iter().chain([resumed]).collect()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_led_before_a_kill_and_is_alone_answers_no_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = three(dir.path());
    let stores = open(&options).await;
    let first = leader(&stores).await;
    stores[first].commit(Commit::new().put("a", "1")).await.unwrap();
    end_at_once(stores).await;
    options[first].timeout = Duration::from_secs(2);
    let alone = RaftStore::open(options[first].clone()).await.unwrap();
    assert_eq!(alone.node.leader(), Leader::Nobody, "one without a majority leads");
    let read = alone.get(b"a").await;
    assert!(matches!(read, Err(crate::StoreError::Unavailable { .. })), "{read:?}");
    assert_eq!(alone.own_snapshot().await.unwrap().get(b"a").await.unwrap().unwrap().value, b"1");
    alone.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_alone_raises_no_term_and_disturbs_nobody_when_the_others_are_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = three(dir.path());
    for options in &mut options {
        options.timings.election = (Duration::from_millis(500), Duration::from_millis(800));
    }
    let mut stores = open(&options).await;
    let first = leader(&stores).await;
    stores[first].commit(Commit::new().put("a", "1")).await.unwrap();
    let (one, term) = ((first + 1) % 3, stores[first].own_status().term);
    let alone = stores.remove(one);
    end_at_once(stores).await;
    // Time enough to stand three times, if anybody would vote.
    sleep(Duration::from_secs(4)).await;
    let status = alone.own_status();
    assert_eq!((status.term, status.role), (term, Role::Follower), "it stood although nobody votes");
    assert_eq!(status.leader, None, "the one that led is gone");
    let lonely = |health: &Health| match health {
        Health::Failed { reason } => reason.contains("no node leads the cluster: 1 of 3 answer"),
        Health::Ready => false,
    };
    timeout(SOON, alone.health_changes().wait_for(lonely)).await.expect("it says so").unwrap();

    let others: Vec<RaftOptions> =
        options.iter().enumerate().filter(|(number, _)| *number != one).map(|(_, o)| o.clone()).collect();
    let stores: Vec<RaftStore> = open(&others).await.into_iter().chain([alone]).collect();
    let next = leader(&stores).await;
    // One election is enough, unless disks are so busy that votes come too late.
    assert!((term + 1..term + 4).contains(&stores[next].own_status().term), "they disturb each other");
    timeout(SOON, stores[next].commit(Commit::new().put("b", "1"))).await.unwrap().unwrap();
    end_at_once(stores).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_let_in_by_one_without_a_majority_is_let_in_again_by_the_next_that_leads() {
    let dir = tempfile::tempdir().unwrap();
    let options = three(dir.path());
    let mut stores = open(&options).await;
    let first = leader(&stores).await;
    stores[first].commit(Commit::new().put("a", "1")).await.unwrap();
    let deposed = stores.remove(first);
    end_at_once(stores).await;
    // It does not know yet that it no longer leads: a commit that it begins reaches the new leader, and is never confirmed.
    let security = RaftSecurity::Secret("sixteen characters".into());
    let mut newcomer = RaftOptions::new(dir.path().join("new"), free_address(), security);
    newcomer.join = Some(options[first].listen.clone());
    newcomer.timings = options[first].timings;
    let newcomer = RaftStore::open(newcomer).await.unwrap();
    timeout(SOON, newcomer.joined()).await.expect("it is told that it is in");
    end_at_once(vec![deposed]).await;

    let others = [options[(first + 1) % 3].clone(), options[(first + 2) % 3].clone()];
    let others = open(&others).await;
    let next = leader(&others).await;
    let known = || others[next].own_status().members.iter().any(|one| one.id == newcomer.id() && one.voter);
    let knows = async {
        while !known() {
            sleep(TICK).await;
        }
    };
    timeout(SOON, knows).await.expect("it is let in for good");
    assert_eq!(timeout(SOON, newcomer.get(b"a")).await.unwrap().unwrap().unwrap().value, b"1");
    end_at_once(others.into_iter().chain([newcomer]).collect()).await;
}

/// One who answers as a node whose status this is, for ever.
async fn answers_with(status: Status) -> String {
    let guard = ChannelSecurity::new(&RaftSecurity::Secret("sixteen characters".into())).unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        loop {
            let (tcp, _) = listener.accept().await.unwrap();
            let Ok(mut channel) = guard.accept(tcp).await else { continue };
            let status = status.clone();
            tokio::spawn(async move {
                channel.receiver.receive().await.unwrap();
                channel.sender.send(&encode(&Hello::of(status.id))).await.unwrap();
                while let Ok(Some(frame)) = channel.receiver.receive().await {
                    let (number, _) = parse::<Question>(&frame).unwrap();
                    let answer = Answer::Status(Box::new(status.clone()));
                    let _ = channel.sender.send(&numbered(number, &answer)).await;
                }
            });
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn a_learner_that_was_removed_stays_out_whoever_it_asks() {
    let dir = tempfile::tempdir().unwrap();
    let options = three(dir.path());
    let stores = open(&options).await;
    let first = leader(&stores).await;
    stores[first].commit(Commit::new().put("a", "1")).await.unwrap();
    // One that knows who leads, and of the members before all of this.
    let (id, role) = (stores[(first + 1) % 3].id(), Role::Follower);
    let behind = Status { id, role, ..stores[first].own_status() };
    let raft = stores[first].node.core().unwrap().raft;

    // It comes and goes before it votes.
    let voting = stores[first].node.changing.lock().await;
    let security = RaftSecurity::Secret("sixteen characters".into());
    let mut learner = RaftOptions::new(dir.path().join("learner"), free_address(), security);
    (learner.timings, learner.timeout) = (options[first].timings, options[first].timeout);
    learner.join = Some(options[first].listen.clone());
    let store = RaftStore::open(learner.clone()).await.unwrap();
    let (id, me) = (store.id(), store.node.me());
    raft.change_membership(ChangeMembers::AddNodes([(id, me)].into()), true).await.unwrap();
    let learns = async {
        while !store.own_status().members.iter().any(|member| member.id == id) {
            sleep(TICK).await;
        }
    };
    timeout(SOON, learns).await.expect("it hears of itself");
    end_at_once(vec![store]).await;
    raft.change_membership(ChangeMembers::RemoveNodes([id].into()), false).await.unwrap();
    drop(voting);

    learner.join = Some(answers_with(behind.clone()).await);
    let store = RaftStore::open(learner).await.unwrap();
    let told = async {
        while store.own_status().role != Role::Removed {
            sleep(TICK).await;
        }
    };
    timeout(SOON, told).await.expect("it hears that it was removed");
    // Nor does who leads let it in, should it ask.
    let refused = bootstrap::join(&store.node, "anywhere", &behind).await.unwrap();
    assert!(refused.contains("it was removed from the cluster"), "{refused}");
    assert!(stores[first].own_status().members.iter().all(|member| member.id != id));
    end_at_once(stores.into_iter().chain([store]).collect()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_leads_nobody_any_more_lets_nobody_in_and_is_in_nobodys_way() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = three(dir.path());
    for options in &mut options {
        options.timings.election = (Duration::from_millis(500), Duration::from_millis(800));
    }
    let mut stores = open(&options).await;
    let alone = stores.remove(leader(&stores).await);
    alone.commit(Commit::new().put("a", "1")).await.unwrap();
    let last = alone.node.disk.last_log_id().unwrap();
    assert!(matches!(alone.node.answer_pre_vote(last), Answer::Error(_)), "it leads");
    end_at_once(stores).await;
    let would_vote = async {
        while !matches!(alone.node.answer_pre_vote(last), Answer::Ok) {
            sleep(TICK).await;
        }
    };
    timeout(SOON, would_vote).await.expect("it would vote for another one");
    let question = Question::Join(7, alone.node.me());
    let refused = alone.node.answer_as_leader(&question).await;
    let Answer::Error(reason) = refused else { panic!("{refused:?}") };
    assert!(reason.contains("no majority of the 3 nodes"), "{reason}");
    end_at_once(vec![alone]).await;
}

/// One that says nothing but that it is this node, in another process.
async fn twin(id: NodeId) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let guard = ChannelSecurity::new(&RaftSecurity::Secret("sixteen characters".into())).unwrap();
    tokio::spawn(async move {
        let (tcp, _) = listener.accept().await.unwrap();
        let mut channel = guard.accept(tcp).await.unwrap();
        channel.receiver.receive().await.unwrap().unwrap();
        channel.sender.send(&encode(&Hello::of(id))).await.unwrap();
        while let Some(frame) = channel.receiver.receive().await.unwrap() {
            let (number, _) = parse::<Question>(&frame).unwrap();
            let status = Answer::Status(Box::new(Status { id, run: 7, ..Status::default() }));
            channel.sender.send(&numbered(number, &status)).await.unwrap();
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_is_taken_over_only_if_nobody_of_that_id_is_at_the_old_one() {
    let dir = tempfile::tempdir().unwrap();
    let options = three(dir.path());
    let mut stores = open(&options).await;
    let first = leader(&stores).await;
    let moves = (first + 1) % 3;
    let (id, me) = (stores[moves].id(), stores[moves].node.me());
    let elsewhere = Member { address: twin(id).await, ..me.clone() };
    let question = Question::Join(id, elsewhere.clone());
    let refused = stores[first].node.answer_as_leader(&question).await;
    let Answer::Error(reason) = refused else { panic!("{refused:?}") };
    let both = format!("node {} runs at {} as well as at {}", hex(id), me.address, elsewhere.address);
    assert!(reason.contains(&both), "{reason}");
    let known_at = |store: &RaftStore| {
        let members = store.own_status().members;
        members.into_iter().find(|one| one.id == id).map(|one| one.member.address)
    };
    assert_eq!(known_at(&stores[first]), Some(me.address));

    let first = stores[first].id();
    end_at_once(vec![stores.remove(moves)]).await;
    let first = stores.iter().find(|store| store.id() == first).unwrap();
    let taken = first.node.answer_as_leader(&question).await;
    assert!(matches!(taken, Answer::Ok), "{taken:?}");
    assert_eq!(known_at(first), Some(elsewhere.address));
    end_at_once(stores).await;
}
