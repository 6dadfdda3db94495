//! Every kind of request whose answer was lost: the server did it, the caller does not know, and asks again.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use netstead_client::{
    Client, ClientError, Options,
    types::{
        BulkEntry, BulkInput, ClaimFrom, ClaimInput, ObservationInput, PoolInput, ReservationInput,
        SightingInput, TargetInput, TokenInput,
    },
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::sandbox::Sandbox;

/// Stands between client and server and keeps every answer; some it keeps for itself.
#[derive(Debug)]
struct AnswerDroppingProxy {
    url: String,
    swallow: Arc<AtomicBool>,
    answers: Arc<Mutex<Vec<Value>>>,
}

impl AnswerDroppingProxy {
    async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (swallow, answers) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let between = Self { url, swallow: Arc::clone(&swallow), answers: Arc::clone(&answers) };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(server).await.unwrap();
                tokio::spawn(pass(client, server, Arc::clone(&swallow), Arc::clone(&answers)));
            }
        });
        between
    }
}

/// One request and its answer, then both connections end.
async fn pass(
    mut client: TcpStream,
    mut server: TcpStream,
    swallow: Arc<AtomicBool>,
    answers: Arc<Mutex<Vec<Value>>>,
) {
    let request = message(&mut client).await;
    server.write_all(&request).await.unwrap();
    let answer = message(&mut server).await;
    let lost = swallow.load(Ordering::SeqCst);
    let text = String::from_utf8(answer.clone()).unwrap();
    let body = text.split_once("\r\n\r\n").unwrap().1;
    answers.lock().unwrap().push(serde_json::from_str(body).unwrap_or(Value::Null));
    if !lost {
        client.write_all(&answer).await.unwrap();
    }
}

/// A head and as much body as it says.
async fn message(socket: &mut TcpStream) -> Vec<u8> {
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let n = socket.read(&mut buffer).await.unwrap();
        seen.extend_from_slice(&buffer[..n]);
        let text = String::from_utf8_lossy(&seen).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let mut length = head
            .lines()
            .filter_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if n == 0 || body.len() >= length.next_back().unwrap_or(0_usize) {
            return seen;
        }
    }
}

/// Removes what differs between two answers to the same question at different moments.
fn settled(mut answer: Value) -> Value {
    if let Some(fields) = answer.as_object_mut() {
        fields.remove("until");
        for value in fields.values_mut() {
            *value = settled(value.take());
        }
    } else if let Some(items) = answer.as_array_mut() {
        for item in items {
            *item = settled(item.take());
        }
    }
    answer
}

struct Caller {
    client: Client,
    between: AnswerDroppingProxy,
    sandbox: Sandbox,
}

impl Caller {
    /// Asks, loses the answer, asks again. Returns both answers, after checking that the second did nothing.
    async fn twice<T: std::fmt::Debug>(
        &self,
        what: &str,
        ask: impl AsyncFn(&Client) -> Result<T, ClientError>,
    ) -> (Value, Value) {
        self.between.swallow.store(true, Ordering::SeqCst);
        let lost = ask(&self.client).await;
        assert!(matches!(lost, Err(ClientError::Unknown { .. })), "{what}: {lost:?}");
        let events = self.sandbox.does("events export");
        self.between.swallow.store(false, Ordering::SeqCst);
        let again = ask(&self.client).await;
        assert!(again.is_ok(), "{what}, again: {again:?}");
        assert_eq!(self.sandbox.does("events export"), events, "{what}: the repetition changed something");
        let answers: Vec<_> = self.between.answers.lock().unwrap().drain(..).map(settled).collect();
        let [first, second] = answers.try_into().unwrap();
        (first, second)
    }

    /// The same, and both answers are the same.
    async fn same<T: std::fmt::Debug>(
        &self,
        what: &str,
        ask: impl AsyncFn(&Client) -> Result<T, ClientError>,
    ) -> Value {
        let (first, second) = self.twice(what, ask).await;
        assert_eq!(first, second, "{what}");
        first
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_may_be_repeated_after_a_lost_answer() {
    let sandbox = Sandbox::with_server();
    let between =
        AnswerDroppingProxy::start(sandbox.url().strip_prefix("http://").unwrap().parse().unwrap()).await;
    let options = Options { retries: 0, ..Options::default() };
    let client = Client::new(&between.url, Some(&sandbox.token()), options).unwrap();
    let caller = Caller { client, between, sandbox };

    let pool = PoolInput { ranges: vec!["10.0.3.50-10.0.3.99".into()], ..PoolInput::default() };
    caller.same("create a pool", async |client| client.create_pool("lan", &pool).await).await;
    let etag = caller.sandbox.client().pool("lan").await.unwrap().etag.unwrap();
    let other = PoolInput { cooldown: Some("1h".into()), ..pool.clone() };
    caller.same("update a pool", async |client| client.replace_pool("lan", &other, &etag).await).await;

    let lease = ClaimInput { ttl: Some("1h".into()), ..ClaimInput::default() };
    let claim = caller.same("claim", async |client| client.claim("lan", "web-1", &lease).await).await;
    let id = claim["id"].as_str().unwrap();
    let from = ClaimFrom { key: "web-2".into(), any: vec!["lan".into()], ..ClaimFrom::default() };
    caller.same("claim from several", async |client| client.claim_from(&from).await).await;
    caller.same("renew", async |client| client.renew("lan", "web-1", id, Some("2h".into())).await).await;
    caller.same("move", async |client| client.move_claim("lan", "web-1", id, "web-3", None).await).await;

    let (first, second) =
        caller.twice("release", async |client| client.release("lan", "web-3", id).await).await;
    assert_eq!(
        (first["outcome"].as_str(), second["outcome"].as_str()),
        (Some("released"), Some("already gone"))
    );

    let reservation = ReservationInput { range: "10.0.3.90-10.0.3.99".into(), description: None };
    caller.same("reserve", async |client| client.reserve("lan", "r", &reservation).await).await;
    caller.twice("unreserve", async |client| client.unreserve("lan", "r").await).await;

    let web_2 = caller.sandbox.client().look_up("lan", "web-2").await.unwrap().unwrap().id;
    let target = TargetInput { pool: "lan".into(), key: "web-2".into(), id: web_2 };
    let bulk = BulkInput {
        entries: vec![
            BulkEntry::Claim(ClaimFrom {
                key: "web-4".into(),
                each: vec!["lan".into()],
                ..ClaimFrom::default()
            }),
            BulkEntry::Release(target),
        ],
    };
    let (first, second) = caller.twice("bulk", async |client| client.bulk(&bulk).await).await;
    assert_eq!(first["results"][0], second["results"][0]);

    let seen = ObservationInput {
        complete: true,
        seen: vec![SightingInput { address: "10.0.3.60".into(), note: None }],
        ..ObservationInput::default()
    };
    caller.twice("observe", async |client| client.observe("scan", &seen).await).await;
    caller
        .same("resume", async |client| client.resume(&netstead_client::types::ResumeInput::default()).await)
        .await;
    let etag = caller.sandbox.client().pool("lan").await.unwrap().etag.unwrap();
    let delete = async |client: &Client| client.delete_pool("lan", Some("moving"), None, &etag).await;
    let (first, second) = caller.twice("delete a pool", delete).await;
    assert_eq!((&first["released"], &second["released"]), (&json!(1), &json!(0)));

    // A client that may ask again does so by itself.
    let patient =
        Client::new(&caller.between.url, Some(&caller.sandbox.token()), Options::default()).unwrap();
    patient.create_pool("brief", &pool).await.unwrap();
    let etag = patient.pool("brief").await.unwrap().etag.unwrap();
    caller.between.answers.lock().unwrap().clear();
    caller.between.swallow.store(true, Ordering::SeqCst);
    let hear_again = async {
        while caller.between.answers.lock().unwrap().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        caller.between.swallow.store(false, Ordering::SeqCst);
    };
    let (released, ()) = tokio::join!(patient.delete_pool("brief", None, None, &etag), hear_again);
    assert_eq!(released.unwrap().released, 0);
    assert!(caller.between.answers.lock().unwrap().drain(..).len() > 1, "it was asked again");

    // A token whose secret was lost is of no use to anybody; the caller makes another.
    let token = TokenInput { subject: "ci".into(), role: "claim".into(), ..TokenInput::default() };
    let (first, second) =
        caller.twice("create a token", async |client| client.create_token(&token).await).await;
    assert_ne!(first["id"], second["id"]);
    let id = second["id"].as_str().unwrap();
    caller.twice("revoke a token", async |client| client.revoke_token(id).await).await;
}
