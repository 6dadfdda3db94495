//! `netstead_usage`: how full a pool is.

use async_trait::async_trait;

use super::claims;
use crate::{
    protocol::{Attribute, DataSource, Failed, Fields as _, Kind, Object, Schema, Value},
    session::{Session, told},
};

pub(super) struct Usage;

#[async_trait]
impl DataSource<Session> for Usage {
    fn name(&self) -> &'static str {
        "netstead_usage"
    }

    fn schema(&self) -> Schema {
        let count = |name, description| Attribute::computed(name, Kind::Text, description);
        Schema::new(
            "How full a pool is. Counts of addresses are text, because an IPv6 pool has more than a number can say; use `tonumber` \
             for IPv4.",
            vec![
                Attribute::required("pool", Kind::Text, "The pool.").check(claims::ident),
                count("size", "All addresses."),
                count("held", "Addresses that claims hold."),
                count("resting", "Released addresses that rest."),
                count("reserved", "Addresses that are reserved."),
                count("observed", "Addresses that are in use without a claim."),
                count("free", "Addresses that can be claimed now."),
                Attribute::computed("claims", Kind::Number, "Claims that hold an address."),
                Attribute::computed("waiting", Kind::Number, "Claims that wait for one."),
                Attribute::computed(
                    "used_percent",
                    Kind::Number,
                    "What is not free, in percent of the size.",
                ),
            ],
        )
    }

    fn example(&self) -> &'static str {
        include_str!("../../examples/netstead_usage.tf")
    }

    async fn read(&self, session: &Session, config: &Object) -> Result<Object, Failed> {
        let name = config.text("pool").unwrap_or_default();
        let pool = session.client()?.pool(name).await;
        let usage = pool
            .map_err(|error| told(format!("the pool `{name}` cannot be read"), &error).at("pool"))?
            .value
            .usage;
        let object = [
            ("size", Value::from(usage.size)),
            ("held", usage.held.into()),
            ("resting", usage.resting.into()),
            ("reserved", usage.reserved.into()),
            ("observed", usage.observed.into()),
            ("free", usage.free.into()),
            ("claims", usage.claims.into()),
            ("waiting", usage.waiting.into()),
            ("used_percent", Value::Float(f64::from(usage.used_permyriad) / 100.0)),
        ];
        Ok(object.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }
}
