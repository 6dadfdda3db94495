//! The admin token that a server leaves for the user who started it.

use netstead_api::access::{NewToken, Role, Tokens};
use netstead_client::canonical_url;

use crate::credentials::Credentials;

/// The subject of that token, and so the owner of what is claimed with it.
pub(crate) const SUBJECT: &str = "admin";

/// Makes sure that a token which works with `tokens` is kept for all of `urls`. One that is there already stays.
pub(crate) async fn ensure(
    tokens: &Tokens,
    credentials: &Credentials,
    urls: &[String],
) -> anyhow::Result<()> {
    let urls: Vec<_> = urls.iter().map(|url| canonical_url(url)).collect::<Result<_, _>>()?;
    let mut wanting = Vec::new();
    for url in &urls {
        if !credentials.token(url)?.is_some_and(|token| works(tokens, &token)) {
            wanting.push(url.clone());
        }
    }
    if wanting.is_empty() {
        return Ok(());
    }
    // The same store may have been served at another address before.
    let known = credentials.tokens()?.into_iter().find(|token| works(tokens, token));
    let token = match known {
        Some(token) => token,
        None => create(tokens).await?,
    };
    credentials.save_token(&wanting, &token)
}

/// Any of the user's tokens that is an admin's here.
pub(crate) fn find(tokens: &Tokens, credentials: &[Credentials]) -> Option<String> {
    let all = credentials.iter().filter_map(|credentials| credentials.tokens().ok()).flatten();
    all.into_iter().find(|token| works(tokens, token))
}

fn works(tokens: &Tokens, token: &str) -> bool {
    tokens.verify(token).is_ok_and(|grant| grant.role() == Role::Admin)
}

async fn create(tokens: &Tokens) -> anyhow::Result<String> {
    let new = NewToken {
        description: Some("left for the user who started the server".into()),
        local_admin: true,
        ..NewToken::new(SUBJECT, Role::Admin)
    };
    let (_, secret) = tokens.create(new).await?;
    Ok(secret.expose().to_owned())
}
