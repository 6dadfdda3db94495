use std::collections::BTreeSet;

use netstead_client::types::ClaimInput;

use crate::sandbox::Sandbox;

/// So many clients, each with a connection of its own, want an address of one pool at the same moment.
async fn race(sandbox: &Sandbox, pool: &str, clients: usize) -> Vec<Result<String, String>> {
    let racers: Vec<_> = (0..clients)
        .map(|n| {
            let (client, pool) = (sandbox.client(), pool.to_owned());
            tokio::spawn(async move {
                match client.claim(&pool, &format!("racer-{n}"), &ClaimInput::default()).await {
                    Ok((claim, _)) => Ok(claim.address.unwrap()),
                    Err(error) => {
                        Err(error.problem().map_or_else(|| error.to_string(), |p| p.slug().to_owned()))
                    }
                }
            })
        })
        .collect();
    let mut results = Vec::new();
    for racer in racers {
        results.push(racer.await.unwrap());
    }
    results
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_race_get_different_addresses() {
    let sandbox = Sandbox::with_server();
    sandbox.does("pool create wide --range 10.0.0.1-10.0.0.64");
    let got: BTreeSet<_> = race(&sandbox, "wide", 64).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(got.len(), 64);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_one_address_short_one_of_them_is_told() {
    let sandbox = Sandbox::with_server();
    sandbox.does("pool create short --range 10.0.0.1-10.0.0.63");
    let (got, refused): (Vec<_>, Vec<_>) =
        race(&sandbox, "short", 64).await.into_iter().partition(Result::is_ok);
    let got: BTreeSet<_> = got.into_iter().map(Result::unwrap).collect();
    assert_eq!(got.len(), 63);
    assert_eq!(refused, [Err("exhausted".to_owned())]);
}
