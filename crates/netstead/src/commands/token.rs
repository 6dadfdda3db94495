//! `netstead token create|list|revoke`

use netstead_client::types::{TokenInput, TokenRole};

use super::{Context, say};
use crate::{
    cli::{
        Format,
        admin::{Role, Token, TokenCreate},
    },
    output,
};

pub(crate) async fn token(context: &Context, command: &Token) -> anyhow::Result<()> {
    match command {
        Token::Create(args) => create(context, args).await,
        Token::List => list(context).await,
        Token::Revoke(args) => {
            context.client.revoke_token(&args.id).await?;
            say!("token {} is revoked", args.id);
            Ok(())
        }
    }
}

pub(super) async fn list(context: &Context) -> anyhow::Result<()> {
    output::list(&context.client.tokens().await?.items, context.format, context.now())
}

async fn create(context: &Context, args: &TokenCreate) -> anyhow::Result<()> {
    let texts = |names: &[netstead_model::Ident]| names.iter().map(ToString::to_string).collect();
    let input = TokenInput {
        subject: args.subject.clone(),
        role: match args.role {
            Role::Read => TokenRole::Read,
            Role::Claim => TokenRole::Claim,
            Role::Write => TokenRole::Write,
            Role::Admin => TokenRole::Admin,
        },
        vrfs: texts(&args.vrfs),
        pools: texts(&args.pools),
        zones: args.zones.clone(),
        expires_in: Some(args.expires.to_string()),
        description: args.description.clone(),
    };
    let token = context.client.create_token(&input).await?;
    if let Some(format @ (Format::Json | Format::Yaml)) = context.format {
        return output::document(&token, format);
    }
    match token.expires {
        Some(expires) => {
            say!("token {} of {} for {}, until {expires:.0}", token.id, token.subject, token.role);
        }
        None => say!("token {} of {} for {}, for ever", token.id, token.subject, token.role),
    }
    say!("this is the only time its secret is shown:");
    output::emit(&(token.secret.unwrap_or_default() + "\n"))
}
