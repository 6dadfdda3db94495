//! `netstead reserve` and `unreserve`

use netstead_client::types::{ReleaseOutcome, ReservationInput};

use super::{Context, say};
use crate::{
    cli::claim::{Reserve, Unreserve},
    output,
};

pub(crate) async fn reserve(context: &Context, args: &Reserve) -> anyhow::Result<()> {
    let input = ReservationInput { range: args.range.to_string(), description: args.description.clone() };
    let reservation = context.client.reserve(args.pool.as_str(), args.key.as_str(), &input).await?;
    say!("{} of pool `{}` is reserved as `{}`", reservation.range, reservation.pool, reservation.key);
    context.format.map_or(Ok(()), |format| output::one(&reservation, format, context.now()))
}

pub(crate) async fn unreserve(context: &Context, args: &Unreserve) -> anyhow::Result<()> {
    let answer = context.client.unreserve(args.pool.as_str(), args.key.as_str()).await?;
    if answer.outcome == ReleaseOutcome::Released {
        say!("`{}` of pool `{}` is no longer reserved", args.key, args.pool);
    } else {
        say!("nothing is reserved as `{}` in pool `{}`", args.key, args.pool);
    }
    Ok(())
}
