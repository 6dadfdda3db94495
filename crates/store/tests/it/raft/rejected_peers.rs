//! Those who have no business on the port.

use std::time::Duration;

use netstead_store::{Health, RaftOptions, RaftSecurity, RaftStore, Store, StoreError, raft::hex};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::cluster::{Cluster, free_address, put, secret, until};
use crate::support::Dice;

#[tokio::test(flavor = "multi_thread")]
async fn garbage_on_the_port_harms_nobody() {
    let mut cluster = Cluster::start(3).await;
    let mut dice = Dice::new(7);
    for round in 0..200 {
        let address = cluster.options(round % 3).listen.clone();
        let mut stream = TcpStream::connect(&address).await.unwrap();
        let mut garbage: Vec<u8> =
            (0..dice.below(3000)).map(|_| u8::try_from(dice.below(256)).unwrap()).collect();
        if round % 2 == 0 {
            // As one who knows how to begin.
            garbage.splice(0..0, b"netstead raft 1\n".iter().copied());
        }
        let _ = stream.write_all(&garbage).await;
    }
    // Those who say nothing at all are sent away too.
    let address = cluster.options(0).listen.clone();
    let mut silent = TcpStream::connect(&address).await.unwrap();
    put(&*cluster.node(0), "a", "1").await.unwrap();
    let mut rest = Vec::new();
    timeout(Duration::from_secs(10), silent.read_to_end(&mut rest)).await.unwrap().unwrap();
    assert!(rest.len() < 100, "a nonce and no more: {}", rest.len());
    assert!(cluster.running().all(|(_, node)| node.health() == Health::Ready));
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_another_secret_is_told_and_stays_out() {
    let mut cluster = Cluster::start(1).await;
    let join = cluster.options(0).listen.clone();
    let stranger = cluster.add(|options| {
        options.join = Some(join);
        options.security = RaftSecurity::Secret("another secret of sixteen".into());
    });
    cluster.restart(stranger).await;
    let store = cluster.node(stranger);
    until(
        async || matches!(store.health(), Health::Failed { reason } if reason.contains("another `secret`")),
    )
    .await;
    assert_eq!(cluster.node(0).own_status().members.len(), 1);
    drop(store);
    cluster.close().await;
}

#[tokio::test]
async fn a_short_secret_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let options = RaftOptions::new(dir.path(), free_address(), RaftSecurity::Secret("short".into()));
    let error = RaftStore::open(options).await.unwrap_err();
    assert!(error.to_string().contains("16 characters"), "{error}");
    let taken = free_address();
    let _holder = std::net::TcpListener::bind(&taken).unwrap();
    let error = RaftStore::open(RaftOptions::new(dir.path(), taken, secret())).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
}

/// An authority, and certificates it signs for this machine.
fn certificates(count: usize) -> (String, Vec<(String, String)>) {
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let certificates = (0..count).map(|_| {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".into()]).unwrap();
        let certificate = params.signed_by(&key, &authority).unwrap();
        (certificate.pem(), key.serialize_pem())
    });
    (authority.pem(), certificates.collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_with_certificates_of_one_authority_know_each_other_and_nobody_else() {
    let (ca, all) = certificates(3);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let mut cluster = Cluster::start_with(3, |options| {
        let (cert, key) = all[next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)].clone();
        options.security = RaftSecurity::Tls { ca: ca.clone(), cert, key };
    })
    .await;
    for number in 0..3 {
        put(&*cluster.node(number), "a", "1").await.unwrap();
    }
    let (other_ca, others) = certificates(1);
    let join = cluster.options(0).listen.clone();
    let stranger = cluster.add(|options| {
        let (cert, key) = others[0].clone();
        options.join = Some(join);
        options.security = RaftSecurity::Tls { ca: other_ca, cert, key };
    });
    cluster.restart(stranger).await;
    let store = cluster.node(stranger);
    until(
        async || matches!(store.health(), Health::Failed { reason } if reason.contains("cannot be reached")),
    )
    .await;
    assert_eq!(cluster.node(0).own_status().members.len(), 3);
    drop(store);
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_node_at_the_address_of_one_does_not_answer_for_it() {
    let mut cluster = Cluster::start(3).await;
    let leader = cluster.leader().await;
    let (gone, left) = ((leader + 1) % 3, (leader + 2) % 3);
    let gone_id = cluster.node(gone).id();
    // One with a cluster of its own and the same secret comes to the address of each that goes.
    let dir = tempfile::tempdir().unwrap();
    let stranger = async |address: String| {
        RaftStore::open(RaftOptions::new(dir.path().join(address.replace(':', "-")), &address, secret()))
            .await
            .unwrap()
    };
    cluster.kill(gone).await;
    let other = stranger(cluster.options(gone).listen.clone()).await;
    let seen = async |number: usize| {
        let status = cluster.node(number).status().await;
        status.members.into_iter().find(|member| member.id == gone_id).unwrap()
    };
    until(async || seen(left).await.other == Some(other.id())).await;
    until(async || seen(left).await.last_contact_ms.is_some_and(|age| age > 3000)).await;
    let told = cluster.node(left).examine().await;
    let words = format!("{} is another node now ({})", other_address(&other), hex(other.id()));
    assert!(told.iter().any(|remark| remark.text.contains(&words)), "{told:?}");

    cluster.kill(leader).await;
    let second = stranger(cluster.options(leader).listen.clone()).await;
    let node = cluster.node(left);
    until(async || {
        let Health::Failed { reason } = node.health() else { return false };
        reason.contains("1 of 3 answer") && reason.contains(&words) && reason.contains(&hex(second.id()))
    })
    .await;
    drop(node);
    for store in [other, second] {
        store.close().await;
    }
    cluster.close().await;
}

fn other_address(store: &RaftStore) -> String {
    store.own_status().me.address
}
