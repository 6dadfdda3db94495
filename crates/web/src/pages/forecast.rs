//! When a pool will be full, if it goes on as in the last week.

use jiff::Timestamp;
use netstead_client::types::{EventKind, EventOutput, Page, PoolOutput};

use crate::{
    calls::{Calls, Target},
    parts::count,
};

/// Pools that are looked at: the fullest ones.
const POOLS: usize = 3;
/// The part of a pool that is in use before it is looked at, in hundredths of a percent.
const USED: u32 = 5000;
/// Days ahead that are looked at.
const HORIZON: f64 = 30.0;
const DAY: f64 = 86_400.0;

/// A pool that will be full soon.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Forecast {
    pub(super) pool: String,
    pub(super) text: String,
}

/// The pools that will be full within a month, out of those that are given in order of fullness.
pub(super) async fn forecasts(calls: &Calls, pools: &[&PoolOutput], now: Timestamp) -> Vec<Forecast> {
    let mut forecasts = Vec::new();
    let filling = pools.iter().filter(|pool| pool.usage.used_permyriad >= USED && pool.usage.free != "0");
    for pool in filling.take(POOLS) {
        let target = Target::of(["events"])
            .with("pool", &pool.name)
            .with("since", "7d")
            .with("order", "newest")
            .with("limit", "1000");
        let Ok(events) = calls.look::<Page<EventOutput>>(target).await else { continue };
        forecasts.extend(forecast(pool, &events.items, events.next.is_some(), now));
    }
    forecasts
}

/// `cut` says that there were more events than these, the newest.
#[expect(clippy::cast_precision_loss, reason = "a rough number for people")]
fn forecast(pool: &PoolOutput, events: &[EventOutput], cut: bool, now: Timestamp) -> Option<Forecast> {
    let net: i64 = events
        .iter()
        .map(|event| match event.what {
            EventKind::Claimed => 1,
            EventKind::Released | EventKind::Expired | EventKind::Abandoned => -1,
            _ => 0,
        })
        .sum();
    // A younger pool than a week, or more events than were listed, say more about a shorter time.
    let since = if cut { events.last()?.at } else { pool.created };
    let days = (now.duration_since(since).as_secs_f64() / DAY).min(7.0);
    // What was made an hour ago says nothing about next month.
    if days < 1.0 || net < 2 {
        return None;
    }
    let (rate, free) = (net as f64 / days, pool.usage.free.parse::<u128>().ok()? as f64);
    let left = free / rate;
    (left <= HORIZON).then(|| Forecast {
        pool: pool.name.clone(),
        text: format!(
            "{} left: at {rate:.1} a day, full in about {} {}",
            count(&pool.usage.free),
            left.ceil(),
            if left <= 1.0 { "day" } else { "days" }
        ),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pool(free: &str) -> PoolOutput {
        serde_json::from_value(json!({
            "name": "lan", "family": "ipv4", "vrf": "default", "ranges": [], "order": "lowest", "cooldown": "10m",
            "cooldown_min": "1m", "sticky": true, "origin": "api", "created": "2026-01-01T00:00:00Z", "version": 1,
            "usage": {"size": "200", "held": "0", "resting": "0", "reserved": "0", "observed": "0", "free": free,
                "claims": 0, "waiting": 0, "used_permyriad": 8000},
        }))
        .unwrap()
    }

    fn events(claimed: usize, released: usize) -> Vec<EventOutput> {
        let event = |what: &str| {
            let event = json!({"seq": 1, "at": "2026-11-18T00:00:00Z", "by": "ann", "what": what});
            serde_json::from_value(event).unwrap()
        };
        let claimed = (0..claimed).map(|_| event("claimed"));
        claimed.chain((0..released).map(|_| event("released"))).collect()
    }

    #[test]
    fn a_pool_that_fills_says_when_it_will_be_full() {
        let now = "2026-11-19T00:00:00Z".parse().unwrap();
        let said = |free, claimed, released, cut| {
            forecast(&pool(free), &events(claimed, released), cut, now).map(|forecast| forecast.text)
        };
        assert_eq!(said("40", 21, 7, false).as_deref(), Some("40 left: at 2.0 a day, full in about 20 days"));
        assert_eq!(said("100", 21, 7, false), None, "not within a month");
        assert_eq!(said("40", 7, 7, false), None, "it does not fill");
        assert_eq!(said("40", 40, 0, true).as_deref(), Some("40 left: at 40.0 a day, full in about 1 day"));
    }
}
