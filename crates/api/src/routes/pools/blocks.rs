//! The map of a pool: how full each part of a block is.

use netstead_client::types::{BlockOutput, BlocksOutput};
use netstead_ledger::Refusal;
use netstead_model::{Address, Cidr};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::{
    convert,
    http::{
        answer::Answer,
        path::PoolPath,
        query::{FreshParams, ReadQuery},
        session::{Read, Session, check_pool_scope},
    },
    openapi::Looking,
    problem::Failure,
};

/// Bits by which the parts are smaller than the block: 256 parts at most.
const FINER: u8 = 8;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct BlocksParams {
    /// The block: a CIDR.
    within: String,
}

/// Counts what a pool has in each of up to 256 equal parts of a block.
#[utoipa::path(get, path = "/pools/{pool}/blocks", tag = "pools", operation_id = "list_pool_blocks",
    params(("pool" = String, Path, description = "Its name"), BlocksParams, FreshParams),
    responses((status = 200, description = "The parts in order", body = BlocksOutput), Looking))]
pub(crate) async fn list(
    session: Session<Read>,
    PoolPath(pool): PoolPath,
    ReadQuery { params, freshness }: ReadQuery<BlocksParams>,
) -> Result<Answer<BlocksOutput>, Failure> {
    let within: Cidr = convert::parse("within", &params.within)?;
    let parts = parts(within);
    let scopes = session.scopes();
    let look = |book: &netstead_ledger::Book| {
        check_pool_scope(book, scopes, &pool)?;
        let missing = || Refusal::NoSuchPool { pool: pool.clone() };
        Ok::<_, Failure>(book.usage_of_blocks(&pool, &parts).ok_or_else(missing)?)
    };
    let seen = session.read(freshness, look).await?.transpose()?;
    let output = |usage: Vec<Option<_>>| {
        let each = parts.iter().zip(usage);
        let block = |(block, usage): (&Cidr, Option<_>)| BlockOutput {
            block: block.to_string(),
            usage: usage.as_ref().map(convert::pool::usage),
        };
        BlocksOutput { blocks: each.map(block).collect() }
    };
    Ok(Answer::from_read(seen.map(output), freshness))
}

fn parts(within: Cidr) -> Vec<Cidr> {
    let length = within.len().saturating_add(FINER).min(within.kind().bits());
    let step = 1_u128.checked_shl(u32::from(within.kind().bits() - length)).unwrap_or(u128::MAX);
    let begin = |number: u32| {
        let address: Address = within.first().checked_add(step.saturating_mul(u128::from(number)))?;
        Cidr::new(address, length).ok()
    };
    (0..1_u32 << (length - within.len())).filter_map(begin).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_256_parts_or_as_many_as_it_has_addresses() {
        let parts_of = |text: &str| parts(text.parse().unwrap());
        let slash16 = parts_of("10.0.0.0/16");
        assert_eq!((slash16.len(), slash16[255].to_string()), (256, "10.0.255.0/24".to_owned()));
        assert_eq!(parts_of("10.0.3.0/28").len(), 16);
        assert_eq!(parts_of("10.0.3.7/32").len(), 1);
        assert_eq!(parts_of("fd00::/16").len(), 256);
        assert_eq!(parts_of("::/0")[1].to_string(), "100::/8");
    }
}
