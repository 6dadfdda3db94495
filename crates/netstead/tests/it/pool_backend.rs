use netstead_client::RemotePools;
use netstead_model::{BackendError, ClaimRef, ClaimRequest, Key, PoolBackend as _, Released};

use crate::sandbox::Sandbox;

/// The pool backend `netstead`: another Netstead, by its API.
#[tokio::test(flavor = "multi_thread")]
async fn another_netstead_is_a_pool_backend() {
    let sandbox = Sandbox::with_server();
    sandbox
        .does("pool create lan --range 10.0.3.50-10.0.3.51 --gateway 10.0.3.1 --label site=ams --cooldown 0");
    sandbox.does("pool create sites --prefix fd00:2::/48 --length 64");
    let pools = RemotePools::new(sandbox.client());
    let (lan, web): (_, Key) = ("lan".parse().unwrap(), "ns/web-1".parse().unwrap());
    let request = ClaimRequest {
        ttl: Some("1h".parse().unwrap()),
        ..ClaimRequest::any("lan".parse().unwrap(), web.clone())
    };
    let claim = pools.claim(request.clone()).await.unwrap();
    assert_eq!(claim.held(), "10.0.3.50");
    assert_eq!(pools.claim(request).await, Ok(claim.clone()));
    assert_eq!(pools.look_up(&lan, &web).await, Ok(Some(claim.clone())));
    assert_eq!(pools.list(&lan).await, Ok(vec![claim.clone()]));
    assert_eq!(pools.look_up(&lan, &"nobody".parse().unwrap()).await, Ok(None));

    let status = pools.describe(&lan).await.unwrap();
    assert_eq!(
        (status.usage.size, status.usage.held, status.pool.spec.labels.get("site")),
        (2, 1, Some("ams"))
    );
    let prefix = pools.claim(ClaimRequest::any("sites".parse().unwrap(), web.clone())).await.unwrap();
    assert_eq!(prefix.held(), "fd00:2::/64");

    pools.claim(ClaimRequest::any(lan.clone(), "web-2".parse().unwrap())).await.unwrap();
    let full = pools.claim(ClaimRequest::any(lan.clone(), "web-3".parse().unwrap())).await;
    assert!(matches!(full, Err(BackendError::Exhausted { .. })), "{full:?}");
    let nowhere = pools.claim(ClaimRequest::any("nowhere".parse().unwrap(), web.clone())).await;
    assert_eq!(nowhere, Err(BackendError::NoSuchPool { pool: "nowhere".parse().unwrap() }));

    let target = ClaimRef { pool: lan, key: web, id: Some(claim.id) };
    assert!(matches!(pools.release(target.clone()).await, Ok(Released::Done(gone)) if gone.id == claim.id));
    assert_eq!(pools.release(target).await, Ok(Released::AlreadyGone));
}
