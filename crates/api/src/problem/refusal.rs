//! Refusals of the ledger, with the facts a program can act on.

use std::time::Duration;

use axum::http::StatusCode;
use netstead_ledger::Refusal;

use super::Failure;

const CONFLICT: StatusCode = StatusCode::CONFLICT;

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let told = refusal.to_string();
        let conflict = |slug| Self::new(CONFLICT, slug, told.clone());
        match refusal {
            Refusal::NoSuchPool { pool } => Self::not_found("no-such-pool", told).fact("pool", pool),
            Refusal::NothingSelected { selector } => {
                Self::not_found("nothing-selected", told).fact("selector", selector)
            }
            Refusal::NoSuchClaim { pool, key } => {
                Self::not_found("no-such-claim", told).fact("pool", pool).fact("key", key)
            }
            Refusal::PoolExists { pool } => conflict("pool-exists").fact("pool", pool),
            Refusal::AddressHeld { address, pool, key, owner } => {
                conflict("address-held").held(&address, &pool, &key, &owner)
            }
            Refusal::KeyHeld { pool, key, owner, address } => {
                conflict("key-held").held(&address, &pool, &key, &owner)
            }
            Refusal::HoldsAnother { pool, key, held, asked } => conflict("holds-another")
                .fact("pool", pool)
                .fact("key", key)
                .fact("held", held)
                .fact("asked", asked),
            Refusal::Exhausted { pool, resting, next_free } => {
                let failure = conflict("exhausted").fact("pool", pool).fact("resting", resting);
                match next_free {
                    Some(next) => failure.fact("next_free", next).retry_after(next.into()),
                    None => failure,
                }
            }
            Refusal::Resting { address, key, owner, left } => conflict("resting")
                .fact("address", address)
                .fact("key", key)
                .fact("owner", owner)
                .fact("left", left)
                .retry_after(Duration::from(left)),
            Refusal::Observed { address, source_name, since, .. } => {
                conflict("observed").fact("address", address).fact("source", source_name).fact("since", since)
            }
            Refusal::NotInPool { address, pool } => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "not-in-pool", told)
                    .fact("address", address)
                    .fact("pool", pool)
            }
            Refusal::Withheld { address, pool, reason } => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "withheld", told)
                    .fact("address", address)
                    .fact("pool", pool)
                    .fact("reason", reason)
            }
            Refusal::Reserved { address, pool, key, owner } => {
                conflict("reserved").held(&address, &pool, &key, &owner)
            }
            Refusal::ForceDenied { address, pool, key, owner } => {
                Self::new(StatusCode::FORBIDDEN, "force-denied", told).held(&address, &pool, &key, &owner)
            }
            Refusal::Entry { place, refusal, .. } => Self::from(*refusal).fact("entry", place),
            Refusal::AlreadyGone { key, id, .. } => {
                Self::new(StatusCode::GONE, "already-gone", told).fact("key", key).fact("id", id)
            }
            Refusal::NotYours { pool, key, owner } => Self::new(StatusCode::FORBIDDEN, "not-yours", told)
                .fact("pool", pool)
                .fact("key", key)
                .fact("owner", owner),
            Refusal::WaitingForOther { pool, key, owner } => {
                conflict("waiting-for-other").fact("pool", pool).fact("key", key).fact("owner", owner)
            }
            Refusal::Paused => conflict("paused"),
            Refusal::Backend { pool, backend, kind, .. } => {
                conflict("backend-refuses").fact("pool", pool).fact("backend", backend).fact("kind", kind)
            }
            Refusal::Invalid { field, reason } => Self::impossible(field, reason),
            pools => about_pools(pools, told),
        }
    }
}

fn about_pools(refusal: Refusal, told: String) -> Failure {
    let conflict = |slug| Failure::new(CONFLICT, slug, told.clone());
    match refusal {
        Refusal::QuotaReached { pool, owner, held, most } => conflict("quota-reached")
            .fact("pool", pool)
            .fact("owner", owner)
            .fact("held", held)
            .fact("most", most),
        Refusal::Overlap { pool, other, vrf, at } => {
            conflict("overlap").fact("pool", pool).fact("other", other).fact("vrf", vrf).fact("at", at)
        }
        Refusal::WouldStrand { pool, address, key, owner } => {
            conflict("would-strand").held(&address, &pool, &key, &owner)
        }
        Refusal::PoolInUse { pool, claims, reservations } => conflict("pool-in-use")
            .fact("pool", pool)
            .fact("claims", claims)
            .fact("reservations", reservations),
        Refusal::CarriesPool { address, pool } => {
            conflict("carries-pool").fact("address", address).fact("pool", pool)
        }
        Refusal::PoolClosing { pool } => conflict("pool-closing").fact("pool", pool),
        Refusal::ReadOnly { pool } => conflict("read-only").fact("pool", pool),
        Refusal::VersionMismatch { pool, is, asked } => {
            Failure::new(StatusCode::PRECONDITION_FAILED, "version-mismatch", told)
                .fact("pool", pool)
                .fact("is", is)
                .fact("asked", asked)
        }
        _ => conflict("refused"),
    }
}

impl Failure {
    fn held(
        self,
        address: &dyn ToString,
        pool: &dyn ToString,
        key: &dyn ToString,
        owner: &dyn ToString,
    ) -> Self {
        self.fact("address", address.to_string())
            .fact("pool", pool.to_string())
            .fact("key", key.to_string())
            .fact("owner", owner.to_string())
    }
}
