use netstead_model::SystemClock;
use netstead_store::{FaultyStore, MemoryStore};

use super::*;
use crate::access::Role;

/// On a follower the news of a revocation may be late. A caller that asks the store does not wait for it.
#[tokio::test]
async fn a_revocation_is_known_before_its_news_come() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let way = Arc::new(FaultyStore::new(Arc::clone(&store)));
    let leader = Tokens::open(store, SystemClock::shared()).await.unwrap();
    let (token, secret) = leader.create(NewToken::new("ci", Role::Read)).await.unwrap();
    let follower = Tokens::open(Arc::clone(&way) as Arc<dyn Store>, SystemClock::shared()).await.unwrap();
    let grant = follower.verify(secret.expose()).unwrap();
    assert!(!follower.was_revoked_meanwhile(&grant).await);

    way.lose_watches();
    leader.revoke(&token.id).await.unwrap();
    assert!(follower.verify(secret.expose()).is_ok(), "it has not heard of it");
    way.set_outage(Some("away"));
    assert!(!follower.was_revoked_meanwhile(&grant).await, "nothing is known without the store");
    way.set_outage(None);
    assert!(follower.was_revoked_meanwhile(&grant).await);
    assert!(follower.verify(secret.expose()).is_err(), "and from then on without asking");
}
