//! A house of two tenants: whatever belongs to the second has `hidden` in its name, or an address in 10.2.0.0/24.

use std::sync::Arc;

use netstead_api::access::{NewToken, Role, Scopes};
use netstead_engine::{Setup, SourceSetup};
use netstead_ledger::LedgerSource;
use netstead_plan::Digest;
use serde_json::json;

use crate::{
    dns_server::{DnsServer, Seen, workload},
    support::House,
};

pub struct Tenants {
    pub house: House,
    pub shared: Arc<DnsServer>,
}

impl Tenants {
    /// Pool `a` in VRF `x` and pool `hidden`, each with a claim, a reservation, records set by hand, a name that has a
    /// foreign address on the server, a name that the server rejects, and a source.
    pub async fn open() -> Self {
        let shared = DnsServer::new(&["a.test", "hidden.test", "10.in-addr.arpa"]);
        for (name, address) in [("taken.a.test", "192.0.2.1"), ("taken.hidden.test", "192.0.2.2")] {
            shared.add(name, address);
        }
        let own = DnsServer::new(&["hidden-own.test"]);
        let house = House::with_setup(|ledger| {
            let ledger = Arc::new(LedgerSource::new("ledger".parse().unwrap(), ledger.clone()));
            let seen = Seen::new("seen", vec![workload("seen", "vm.a.test", "10.1.0.77")]);
            let hidden = Seen::new(
                "hidden-seen",
                vec![
                    workload("hidden-seen", "vm.hidden.test", "10.2.0.77"),
                    workload("hidden-seen", "mine.hidden.test", "10.2.0.78"),
                ],
            );
            Setup {
                sources: vec![SourceSetup::new(ledger, Digest::of(["ledger"])), seen.setup(), hidden.setup()],
                providers: vec![
                    shared.setup("shared", &["a.test", "hidden.test"]),
                    own.setup("hidden-dns", &["hidden-own.test"]),
                ],
                ..Setup::default()
            }
        })
        .await;
        let a = json!({"network": "10.1.0.0/24", "vrf": "x", "domain": "a.test", "labels": {"any": "1"}});
        let hidden = json!({"network": "10.2.0.0/24", "domain": "hidden.test", "labels": {"any": "1"}});
        house.pool("a", a).await;
        house.pool("hidden", hidden).await;
        // Pools whose claims have no name, one of them with the key of a claim of `a`.
        house.pool("hidden-bare", json!({"network": "10.2.9.0/24"})).await;
        house.claim("a", "mine").await;
        house.claim("hidden", "hidden-key").await;
        house.claim("hidden-bare", "mine").await;
        for (pool, range) in [("a", "10.1.0.100"), ("hidden", "10.2.0.100")] {
            let path = format!("/pools/{pool}/reservations/{pool}-r");
            house.put(&path).json(&json!({"range": range})).go().await.fine();
        }
        for (vrf, address) in [("x", "10.1.0.200"), ("default", "10.2.0.200")] {
            let seen = json!({"vrf": vrf, "seen": [{"address": address}]});
            house.put(&format!("/observations/scan-{vrf}")).json(&seen).go().await.fine();
        }
        for (domain, net) in [("a.test", 1), ("hidden.test", 2), ("hidden-own.test", 2)] {
            for (host, last) in [("www", 9), ("taken", 10), ("bad", 11)] {
                let path = format!("/records/{host}.{domain}/A");
                let values = json!({"values": [format!("10.{net}.0.{last}")]});
                house.put(&path).json(&values).go().await.fine();
            }
        }
        // Two claims wait for an address of either pool.
        for pool in ["full", "hidden-full"] {
            let net = if pool == "full" { 1 } else { 2 };
            let vrf = if pool == "full" { "x" } else { "default" };
            house.pool(pool, json!({"ranges": [format!("10.{net}.8.1")], "vrf": vrf})).await;
            house.claim(pool, "first").await;
        }
        for (key, pools) in [("late", ["full", "hidden-full"]), ("later", ["hidden-full", "full"])] {
            let claim = json!({"key": key, "any": pools, "claim": {"wait": "0s", "keep": true}});
            assert_eq!(house.post("/claims").json(&claim).go().await.status, 202);
        }
        house.post("/apply").json(&json!({})).go().await.fine();
        let pause = json!({"provider": "shared", "zone": "hidden.test", "reason": "hidden"});
        house.post("/pause").json(&pause).go().await.fine();
        Self { house, shared }
    }

    pub async fn token(&self, role: Role, scope: &str) -> String {
        let (kind, name) = scope.split_once('=').unwrap();
        let mut scopes = Scopes::default();
        match kind {
            "pool" => scopes.pools.extend([name.parse().unwrap(), "full".parse().unwrap()]),
            "vrf" => scopes.vrfs.push(name.parse().unwrap()),
            _ => scopes.zones.push(name.parse().unwrap()),
        }
        self.house.scoped(NewToken { scopes, ..NewToken::new("tenant", role) }).await
    }
}

/// Whether a text says something of the second tenant.
pub fn tells_hidden(text: &str) -> bool {
    ["hidden", "10.2.", ".2.10.in-addr"].iter().any(|word| text.contains(word))
}
