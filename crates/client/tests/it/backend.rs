use netstead_client::{Client, Options, RemotePools};
use netstead_model::{BackendError, ClaimRef, ClaimRequest, PoolBackend as _, Released};

use crate::{
    misbehaving_server::{Act, Misbehaving, problem},
    repeat::claim,
};

fn backend(server: &Misbehaving) -> RemotePools {
    let options = Options { retries: 0, ..Options::default() };
    RemotePools::new(Client::new(&server.url, None, options).unwrap())
}

#[tokio::test]
async fn a_claim_comes_back_as_the_model_has_it() {
    let server = Misbehaving::playing([Act::Answer(200, format!(r#"{{"claims":[{}]}}"#, claim()))]).await;
    let request = ClaimRequest::any("lan".parse().unwrap(), "web-1".parse().unwrap());
    let claim = backend(&server).claim(request).await.unwrap();
    assert_eq!((claim.held(), claim.id.to_string()), ("10.0.3.50".into(), "1f0c22ab-17".into()));
}

#[tokio::test]
async fn a_release_without_id_learns_it_first() {
    let released = format!(r#"{{"outcome":"released","claim":{}}}"#, claim());
    let server = Misbehaving::playing([Act::Answer(200, claim()), Act::Answer(200, released)]).await;
    let target = ClaimRef { pool: "lan".parse().unwrap(), key: "web-1".parse().unwrap(), id: None };
    assert!(matches!(backend(&server).release(target).await, Ok(Released::Done(_))));
    assert!(server.first_lines()[1].contains("?id=1f0c22ab-17"));
}

#[tokio::test]
async fn refusals_keep_their_meaning() {
    let server =
        Misbehaving::playing([problem(409, "exhausted"), problem(409, "address-held"), Act::HangUp]).await;
    let ask = async || {
        let request = ClaimRequest::any("lan".parse().unwrap(), "web-1".parse().unwrap());
        backend(&server).claim(request).await.unwrap_err()
    };
    assert!(matches!(ask().await, BackendError::Exhausted { .. }));
    assert!(matches!(ask().await, BackendError::Held { .. }));
    assert!(matches!(ask().await, BackendError::Unknown { .. }));
}
