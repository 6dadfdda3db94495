//! The server is killed at random moments under load. What it had acknowledged is there afterwards, and no address
//! has two holders.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
    time::Duration,
};

use netstead_client::{
    ClaimQuery, Client, Options,
    types::{ClaimInput, ClaimOutput},
};

use crate::sandbox::Sandbox;

const KILLS: usize = 30;
const CLIENTS: usize = 16;
const KEYS: usize = 12;

/// The state of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
enum KeyState {
    Held {
        address: String,
        id: String,
    },
    Free,
    /// A request was under way when the server died.
    Open,
}

type Book = Arc<Mutex<HashMap<String, KeyState>>>;

/// Claims and releases keys that no other client touches, until the server no longer answers.
async fn work(client: Client, book: Book, me: usize, round: usize) -> usize {
    let mut acknowledged = 0;
    for step in 0.. {
        let key = format!("client-{me}-key-{}", (step * 7 + round) % KEYS);
        let before = book.lock().unwrap().insert(key.clone(), KeyState::Open).unwrap_or(KeyState::Free);
        let after = match &before {
            KeyState::Held { id, .. } => client.release("load", &key, id).await.map(|_| KeyState::Free),
            _ => client.claim("load", &key, &ClaimInput::default()).await.map(|(claim, _)| held(&claim)),
        };
        let Ok(after) = after else { break };
        book.lock().unwrap().insert(key, after);
        acknowledged += 1;
    }
    acknowledged
}

fn held(claim: &ClaimOutput) -> KeyState {
    KeyState::Held { address: claim.address.clone().unwrap(), id: claim.id.clone().unwrap() }
}

/// Compares what is there with what was acknowledged, and learns what became of the open requests.
async fn compare(sandbox: &Sandbox, book: &Book, round: usize) {
    let claims = sandbox.client().all(ClaimQuery::default()).await.unwrap();
    let mut holders: BTreeMap<&str, &str> = BTreeMap::new();
    for claim in &claims {
        let other = holders.insert(claim.address.as_deref().unwrap(), &claim.key);
        assert_eq!(other, None, "round {round}: {:?} has two holders", claim.address);
    }
    let found: HashMap<_, _> = claims.iter().map(|claim| (claim.key.clone(), held(claim))).collect();
    for (key, known) in book.lock().unwrap().iter_mut() {
        let now = found.get(key).cloned().unwrap_or(KeyState::Free);
        match known {
            KeyState::Open => *known = now,
            known => assert_eq!(*known, now, "round {round}: `{key}` is not as it was acknowledged"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_when_the_server_is_killed() {
    let mut sandbox = Sandbox::with_server();
    sandbox.does("pool create load --range 10.0.0.0/16 --cooldown 0");
    let book = Book::default();
    let data = sandbox.data().display().to_string();
    let mut acknowledged = 0;
    for round in 0..KILLS {
        let workers: Vec<_> = (0..CLIENTS)
            .map(|me| {
                let options = Options { retries: 0, timeout: Duration::from_secs(10), ..Options::default() };
                let client = Client::new(&sandbox.url(), Some(&sandbox.token()), options).unwrap();
                tokio::spawn(work(client, Arc::clone(&book), me, round))
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(rand::random_range(20..300))).await;
        sandbox.kill();
        for worker in workers {
            acknowledged += worker.await.unwrap();
        }
        if round % 3 == 0 {
            sandbox.stumble(Duration::from_millis(rand::random_range(0..100)));
        }
        sandbox.does(&format!("store check --local --data-dir {data}"));
        sandbox.start(&[]);
        compare(&sandbox, &book, round).await;
        sandbox.does("store check");
    }
    assert!(acknowledged > KILLS * 10, "only {acknowledged} changes were under way: this tests nothing");
    eprintln!("{acknowledged} acknowledged changes over {KILLS} kills");
}
