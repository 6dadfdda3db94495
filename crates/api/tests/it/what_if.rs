//! Plans of configurations that are not in force.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

use netstead_api::{ConfigReader, ParsedConfig, access::Role};
use netstead_client::types::ConfigProblem;
use reqwest::Method;
use serde_json::json;
use tokio::time::timeout;

use crate::support::{Answer, House};

/// A reader that works until it is told to go on, and holds its thread meanwhile.
#[derive(Debug)]
struct Slow {
    goes_on: Mutex<Receiver<()>>,
    begun: AtomicUsize,
    ended: AtomicUsize,
}

impl ConfigReader for Slow {
    fn read_config(&self, _: &str, text: &str) -> Result<ParsedConfig, Vec<ConfigProblem>> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        self.goes_on.lock().unwrap().recv().unwrap();
        self.ended.fetch_add(1, Ordering::SeqCst);
        let message = format!("`{text}` is no configuration");
        Err(vec![ConfigProblem { at: "netstead.toml:1:1".into(), message, hint: None }])
    }
}

async fn house() -> (House, Arc<Slow>, Sender<()>) {
    let (go_on, goes_on) = channel();
    let begun = AtomicUsize::new(0);
    let slow = Arc::new(Slow { goes_on: Mutex::new(goes_on), begun, ended: AtomicUsize::new(0) });
    (House::with_reader(slow.clone()).await, slow, go_on)
}

async fn until(is: impl Fn() -> bool) {
    let wait = async {
        while !is() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(30), wait).await.unwrap();
}

// All of it runs on one thread: a reader that held it would keep everything from answering.
#[tokio::test]
async fn the_server_answers_while_a_configuration_is_read() {
    let (house, slow, go_on) = house().await;
    let asked = tokio::spawn(house.post("/what-if").json(&json!({"config": "x"})).go());
    until(|| slow.begun.load(Ordering::SeqCst) == 1).await;
    let alive = timeout(Duration::from_secs(30), Answer::of(house.bare(Method::GET, "/healthz"))).await;
    assert_eq!(alive.unwrap().status, 200);
    house.get("/pools").go().await.fine();
    go_on.send(()).unwrap();
    let told = asked.await.unwrap();
    assert_eq!(told.fine()["problems"][0]["message"], "`x` is no configuration");
}

#[tokio::test]
async fn one_configuration_is_read_at_a_time_whatever_becomes_of_its_caller() {
    let (house, slow, go_on) = house().await;
    let ask = |seconds: &str| {
        house.post("/what-if").header("netstead-timeout", seconds).json(&json!({"config": "x"})).go()
    };
    let first = ask("0.2").await;
    assert!(first.problem(504, "too-late").starts_with("reading the file"), "{first:?}");
    let second = ask("0.2").await;
    assert!(second.problem(503, "unavailable").contains("one is at a time"), "{second:?}");
    assert_eq!(second.header("retry-after"), "5");
    assert_eq!((slow.begun.load(Ordering::SeqCst), slow.ended.load(Ordering::SeqCst)), (1, 0));
    go_on.send(()).unwrap();
    go_on.send(()).unwrap();
    ask("30").await.fine();
    assert_eq!((slow.begun.load(Ordering::SeqCst), slow.ended.load(Ordering::SeqCst)), (2, 2));
}

#[tokio::test]
async fn a_token_that_only_reads_asks_for_no_plan_of_a_file() {
    let (house, slow, _go_on) = house().await;
    for role in [Role::Read, Role::Claim] {
        let token = house.token("ann", role).await;
        let told = house.post("/what-if").by(&token).json(&json!({"config": "x"})).go().await;
        assert!(told.problem(403, "forbidden").contains("`write`"), "{told:?}");
    }
    assert_eq!(slow.begun.load(Ordering::SeqCst), 0);
}
