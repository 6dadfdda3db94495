//! `netstead_address` as an ephemeral resource: an address that is held while Terraform runs.

use std::time::Duration;

use async_trait::async_trait;
use netstead_client::{
    Change, ClientError,
    types::{ClaimInput, ClaimOutput},
};
use netstead_model::Span;

use super::claims;
use crate::{
    protocol::{Attribute, Diagnostic, Ephemeral, Failed, Fields as _, Kind, Object, Opened, Schema},
    session::{OpenClaim, Session, told},
};

/// How long it stays held when Terraform is killed, unless `ttl` says it.
const TTL: Span = Span::from_secs(600);
const SHORTEST: Span = Span::from_secs(10);
/// In front of every key, so that no address of a resource has the same.
const PREFIX: &str = "run/";

pub(super) struct EphemeralAddress;

fn ttl(text: &str) -> Result<(), String> {
    let ttl: Span = text.parse().map_err(|error: <Span as std::str::FromStr>::Err| error.to_string())?;
    if ttl < SHORTEST { Err(format!("it is shorter than {SHORTEST}")) } else { Ok(()) }
}

/// Half of the time to live: a renewal that fails can be repeated.
fn until_renewal(ttl: Span) -> Duration {
    Duration::from(ttl) / 2
}

#[async_trait]
impl Ephemeral<Session> for EphemeralAddress {
    fn name(&self) -> &'static str {
        "netstead_address"
    }

    fn schema(&self) -> Schema {
        let mut attributes = vec![
            Attribute::required("pool", Kind::Text, "The pool.").check(claims::ident),
            Attribute::required(
                "key",
                Kind::Text,
                "A name for what the address is for. It is held under `run/KEY`, by one run of Terraform at a time. The plan and its apply get \
                 the same address while the pool is `sticky` and the address rests.",
            )
            .check(claims::key),
            Attribute::either("address", Kind::Text, "This address or none. Without it, the next free one.")
                .check(claims::address),
            Attribute::optional(
                "ttl",
                Kind::Text,
                "How long it stays held when Terraform is killed, `10m` by default. While Terraform runs it is renewed.",
            )
            .check(ttl),
        ];
        attributes.extend(claims::note_attributes());
        attributes.extend(claims::computed_attributes().into_iter().filter(|one| one.name != "id"));
        attributes.push(Attribute::computed(
            "prefix_length",
            Kind::Number,
            "The length of the pool's network: 24 of `10.0.3.0/24`.",
        ));
        Schema::new(
            "An address of a pool that is held while Terraform runs, and released at its end. No state and no plan file has it. A plan holds one \
             too, so the pool must exist already.",
            attributes,
        )
    }

    fn example(&self) -> &'static str {
        include_str!("../../examples/netstead_address_ephemeral.tf")
    }

    async fn open(&self, session: &Session, config: &Object) -> Result<Opened, Failed> {
        let client = session.client()?;
        let pool = config.owned("pool").unwrap_or_default();
        let key = format!("{PREFIX}{}", config.text("key").unwrap_or_default());
        let ttl = config.text("ttl").and_then(|text| text.parse().ok()).unwrap_or(TTL);
        if let Some(held) = claims::look_up(client, &pool, &key).await? {
            return Err(in_use(&held).into());
        }
        let input = ClaimInput {
            address: config.owned("address"),
            ttl: Some(ttl.to_string()),
            labels: config.text_map("labels"),
            description: config.owned("description"),
            ..ClaimInput::default()
        };
        let claimed = client.claim(&pool, &key, &input).await;
        let (claim, change) = claimed.map_err(|error| {
            told(format!("`{key}` gets no address from pool `{pool}`"), &error).at("pool")
        })?;
        let Some(id) = claim.id.clone().filter(|_| change == Change::Created) else {
            return Err(match change {
                Change::Queued => {
                    client.leave_queue(&pool, &key).await.ok();
                    let detail =
                        "It would have to wait. Make the pool larger, or release what is not needed.";
                    Diagnostic::error(format!("`{key}` gets no address from pool `{pool}`"), detail)
                        .at("pool")
                }
                // Another run was faster since the look above.
                _ => in_use(&claim),
            }
            .into());
        };
        let open = OpenClaim { pool, key, id, ttl };
        let private = serde_json::to_vec(&open).unwrap_or_default();
        session.remember(open);
        Ok(Opened { value: claims::values(&claim), private, renew_in: Some(until_renewal(ttl)) })
    }

    async fn renew(&self, session: &Session, private: &[u8]) -> Result<Option<Duration>, Failed> {
        let OpenClaim { pool, key, id, ttl } = opened(private)?;
        match session.client()?.renew(&pool, &key, &id, None).await {
            Ok(_) => Ok(Some(until_renewal(ttl))),
            // There is time to try again before it ends.
            Err(
                ClientError::Unreachable { .. }
                | ClientError::Unavailable { .. }
                | ClientError::Unknown { .. }
                | ClientError::BrokenOff { .. },
            ) => Ok(Some(until_renewal(ttl) / 4)),
            Err(error) => Err(told(format!("`{key}` of pool `{pool}` cannot be renewed"), &error).into()),
        }
    }

    async fn close(&self, session: &Session, private: &[u8]) -> Result<(), Failed> {
        session.release(&opened(private)?).await
    }
}

fn opened(private: &[u8]) -> Result<OpenClaim, Diagnostic> {
    serde_json::from_slice(private).map_err(|error| {
        Diagnostic::error(
            "the held address is not known",
            format!("What Terraform kept of it is no claim: {error}."),
        )
    })
}

fn in_use(held: &ClaimOutput) -> Diagnostic {
    let ClaimOutput { pool, key, owner, .. } = held;
    let address = held.address.as_deref().unwrap_or("an address");
    let until = held.until.map(|until| format!(" until {until}")).unwrap_or_default();
    Diagnostic::error(
        format!("`{key}` holds {address} of pool `{pool}` already"),
        format!(
            "It is held by `{owner}`{until}: another run of Terraform uses it, or one was killed. Wait for its end, use another `key`, or release \
             it: `netstead release {pool} {key}`."
        ),
    )
    .at("key")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_renewed_long_before_it_ends() {
        assert_eq!(until_renewal(TTL), Duration::from_mins(5));
        assert!(ttl("10m").is_ok());
        assert_eq!(ttl("9s").unwrap_err(), "it is shorter than 10s");
        assert!(ttl("soon").is_err());
        assert!(opened(b"{}").is_err());
    }
}
