use netstead_client::{Client, Options, RemotePools};
use netstead_model::{BackendClaim, BackendErrorKind, BackendObject, GivenBack, PoolBackend as _, Want};

use crate::{
    misbehaving_server::{Act, Misbehaving, problem},
    repeat::claim,
};

fn backend(server: &Misbehaving) -> RemotePools {
    let options = Options { retries: 0, ..Options::default() };
    RemotePools::new(Client::new(&server.url, None, options).unwrap())
}

fn asked() -> BackendClaim {
    let (pool, key, note) = ("lan".into(), "web-1".into(), String::new());
    BackendClaim { pool, key, want: Want::Any, length: None, note }
}

async fn made(server: &Misbehaving) -> BackendObject {
    backend(server).claim(&asked()).await.unwrap()
}

#[tokio::test]
async fn a_claim_comes_back_as_the_model_has_it() {
    let server = Misbehaving::playing([Act::Answer(200, claim())]).await;
    let object = made(&server).await;
    let shown = (object.address.to_string(), object.reference, object.key);
    assert_eq!(shown, ("10.0.3.50".into(), "1f0c22ab-17".into(), "web-1".into()));
}

#[tokio::test]
async fn a_release_names_the_object() {
    let released = format!(r#"{{"outcome":"released","claim":{}}}"#, claim());
    let claimed = Act::Answer(200, claim());
    let server = Misbehaving::playing([claimed, Act::Answer(200, released)]).await;
    let object = made(&server).await;
    assert_eq!(backend(&server).release("lan", &object).await, Ok(GivenBack::Done));
    assert!(server.first_lines()[1].contains("?id=1f0c22ab-17"));
}

#[tokio::test]
async fn refusals_keep_their_meaning() {
    let server =
        Misbehaving::playing([problem(409, "exhausted"), problem(409, "address-held"), Act::HangUp]).await;
    let ask = async || backend(&server).claim(&asked()).await.unwrap_err().kind;
    assert_eq!(ask().await, BackendErrorKind::Exhausted);
    assert_eq!(ask().await, BackendErrorKind::Held);
    assert_eq!(ask().await, BackendErrorKind::Unknown);
}
