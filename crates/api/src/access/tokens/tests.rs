use netstead_model::{ManualClock, SystemClock};
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

/// Tokens in memory, with a clock that is set by hand.
async fn tokens() -> (Tokens, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at("2026-11-19T12:00:00Z".parse().unwrap()));
    let tokens = Tokens::open(Arc::new(MemoryStore::new()), clock.clone()).await.unwrap();
    (tokens, clock)
}

#[tokio::test]
async fn a_user_that_was_verified_elsewhere_has_the_rights_of_its_newest_valid_token() {
    let (tokens, clock) = tokens().await;
    let role = async |tokens: &Tokens| {
        let secret = tokens.open_session_of("ann", None).await?;
        Ok::<_, AccessError>(tokens.verify(secret.expose()).unwrap().role())
    };
    assert!(matches!(role(&tokens).await, Err(AccessError::NoSuchSubject { subject }) if subject == "ann"));
    // The token of the local command line may have any name, and is for no user.
    let local = NewToken { local_admin: true, ..NewToken::new("ann", Role::Admin) };
    tokens.create(local).await.unwrap();
    assert!(matches!(role(&tokens).await, Err(AccessError::NoSuchSubject { .. })));
    tokens.create(NewToken::new("ann", Role::Read)).await.unwrap();
    clock.advance(Duration::from_secs(1));
    let brief = NewToken { lifetime: Some("1h".parse().unwrap()), ..NewToken::new("ann", Role::Write) };
    tokens.create(brief).await.unwrap();
    tokens.create(NewToken::new("bob", Role::Admin)).await.unwrap();
    assert_eq!(role(&tokens).await.unwrap(), Role::Write);
    clock.advance(Duration::from_hours(2));
    assert_eq!(role(&tokens).await.unwrap(), Role::Read, "the newer one has expired");
}

#[tokio::test]
async fn visitors_without_a_login_only_ever_read() {
    let (tokens, clock) = tokens().await;
    // A token of that name with more rights is not for them.
    tokens.create(NewToken::new("anonymous", Role::Admin)).await.unwrap();
    clock.advance(Duration::from_secs(1));
    let secret = tokens.open_anonymous_session().await.unwrap();
    let grant = tokens.verify(secret.expose()).unwrap();
    assert_eq!((grant.role(), &**grant.subject()), (Role::Read, "anonymous"));
    assert_eq!(tokens.list().len(), 2);
    tokens.open_anonymous_session().await.unwrap();
    assert_eq!(tokens.list().len(), 2, "one token is enough");
    tokens.revoke(grant.id()).await.unwrap();
    assert!(tokens.verify(secret.expose()).is_err());
    tokens.open_anonymous_session().await.unwrap();
    assert_eq!(tokens.list().len(), 2, "another one is made");
}
