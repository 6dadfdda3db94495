//! A node that follows and is about to end: what it sends on to the leader is answered, and nothing new is sent on.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use netstead_api::{
    Api, ServeOptions, Server,
    access::{NewToken, Role, Tokens},
    cluster::{Cluster, FORMAT, Member, Peers},
    serve,
};
use netstead_ledger::{Ledger, Options};
use netstead_model::{Clock as _, SystemClock};
use netstead_store::{MemoryStore, Store};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::Semaphore,
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::support::{Answer, client};

const SOON: Duration = Duration::from_secs(20);

/// A leader that reads requests and answers them when it is allowed to.
struct SlowLeader {
    url: String,
    /// How many requests have arrived.
    read: Arc<AtomicUsize>,
    /// A permit for each answer that may leave.
    answers: Arc<Semaphore>,
}

impl SlowLeader {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (read, answers) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
        let (count, permits) = (Arc::clone(&read), Arc::clone(&answers));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (count, permits) = (Arc::clone(&count), Arc::clone(&permits));
                tokio::spawn(async move {
                    let mut request = Vec::new();
                    // The bodies of these tests are objects without objects in them.
                    while !request.ends_with(b"}") {
                        if stream.read_buf(&mut request).await.unwrap_or_default() == 0 {
                            return;
                        }
                    }
                    count.fetch_add(1, Ordering::SeqCst);
                    permits.acquire().await.unwrap().forget();
                    let body = json!({"address": "10.0.3.50"}).to_string();
                    let answer = format!(
                        "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                        body.len()
                    );
                    let _ = stream.write_all(answer.as_bytes()).await;
                });
            }
        });
        Self { url, read, answers }
    }

    /// Waits until a request has arrived.
    async fn has_read(&self, count: usize) {
        let arrived = async {
            while self.read.load(Ordering::SeqCst) < count {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        timeout(SOON, arrived).await.expect("the request is sent on");
    }
}

/// A node that follows.
struct Follower {
    url: String,
    token: String,
    shutdown: CancellationToken,
    server: Server,
}

fn member(id: &str, url: &str) -> Member {
    let now = SystemClock.wall();
    let (id, url) = (id.to_owned(), url.to_owned());
    Member { name: id.clone(), id, url, version: "9".into(), format: FORMAT, since: now, seen: now }
}

impl Follower {
    /// One that knows this leader, or none.
    async fn start(leader: Option<&SlowLeader>) -> Self {
        let (store, clock): (Arc<dyn Store>, _) = (Arc::new(MemoryStore::new()), SystemClock::shared());
        if let Some(leader) = leader {
            let leads =
                Cluster::open(store.clone(), clock.clone(), member("blue", &leader.url)).await.unwrap();
            leads.lead(store.lead().await.unwrap().0).await.unwrap();
        }
        let ledger = Ledger::follow(store.clone(), clock.clone(), Options::default()).await.unwrap();
        let tokens = Tokens::open(store.clone(), clock.clone()).await.unwrap();
        let (_, token) = tokens.create(NewToken::new("root", Role::Admin)).await.unwrap();
        let cluster =
            Cluster::open(store, clock.clone(), member("green", "http://green.test:5301")).await.unwrap();
        let api =
            Api::new(ledger, tokens, clock, "memory").with_cluster(&cluster, &Peers::new(None).unwrap());
        let shutdown = CancellationToken::new();
        // So that it still takes connections when the tests come to it.
        let options = ServeOptions { linger: Duration::from_secs(3), ..ServeOptions::new("127.0.0.1:0") };
        let server = serve(options, api, shutdown.clone()).await.unwrap();
        let url = format!("http://{}", server.address());
        Self { url, token: token.expose().to_owned(), shutdown, server }
    }

    fn claim(&self, key: &str, body: &Value) -> JoinHandle<Answer> {
        let url = format!("{}/api/v1/pools/lan/claims/{key}", self.url);
        tokio::spawn(Answer::of(client().put(url).bearer_auth(&self.token).json(body)))
    }

    async fn ended(self) {
        timeout(SOON, self.server.ended()).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_request_that_was_sent_on_is_answered_though_the_server_is_about_to_end() {
    let leader = SlowLeader::start().await;
    let follower = Follower::start(Some(&leader)).await;
    let asking = follower.claim("web-1", &json!({}));
    leader.has_read(1).await;
    follower.shutdown.cancel();
    // Long enough for an answer that should not come.
    tokio::time::sleep(Duration::from_millis(300)).await;
    leader.answers.add_permits(1);
    assert_eq!(asking.await.unwrap().created()["address"], "10.0.3.50");
    follower.ended().await;
}

#[tokio::test]
async fn a_server_that_is_about_to_end_sends_nothing_new_on() {
    let leader = SlowLeader::start().await;
    leader.answers.add_permits(9);
    let follower = Follower::start(Some(&leader)).await;
    follower.shutdown.cancel();
    let answer = follower.claim("web-1", &json!({})).await.unwrap();
    let told = answer.problem(503, "stopping");
    assert_eq!(
        told,
        "this node is about to end and sends nothing on to the leader any more; nothing was changed: ask another node, \
         or this one again in a moment"
    );
    assert_eq!(answer.header("retry-after"), "1");
    assert_eq!(answer.body["facts"]["leader"], leader.url);
    assert_eq!(leader.read.load(Ordering::SeqCst), 0);
    follower.ended().await;
}

#[tokio::test]
async fn a_request_that_waits_for_a_leader_does_not_keep_the_server_from_ending() {
    let follower = Follower::start(None).await;
    let asking = follower.claim("web-1", &json!({}));
    tokio::time::sleep(Duration::from_millis(100)).await;
    follower.shutdown.cancel();
    asking.await.unwrap().problem(503, "stopping");
    follower.ended().await;
}

#[tokio::test]
async fn a_claim_that_waits_at_the_leader_does_not_keep_the_server_from_ending() {
    let leader = SlowLeader::start().await;
    let follower = Follower::start(Some(&leader)).await;
    let asking = follower.claim("web-1", &json!({"wait": "5m"}));
    leader.has_read(1).await;
    follower.shutdown.cancel();
    asking.await.unwrap().problem(504, "unknown");
    follower.ended().await;
}
