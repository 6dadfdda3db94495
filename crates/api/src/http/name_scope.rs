//! The names that a token covers. What it may see and change in the DNS is decided here and nowhere else.
//!
//! - A token without scopes covers every name.
//! - A token with zones covers those zones and all names below them.
//! - A token that is limited to pools or VRFs, and has no zones, covers the domains of its pools and all names below them,
//!   and the reverse names of the addresses in its pools. A domain within them that is that of a pool out of its reach is not
//!   among them, and neither is an address that such a pool (of another VRF) has too: both would have the same name. Pools of
//!   MAC addresses and prefixes give no names.

use netstead_model::{Family, Name, NameSet, PoolSpec, Range};

use super::{session, zone_scope};
use crate::{access::Scopes, problem::Failure};

/// The names of one token, as of one moment.
#[derive(Debug, Clone)]
pub(crate) struct NameScope {
    scopes: Scopes,
    /// None if that is all of them.
    names: Option<NameSet>,
}

impl NameScope {
    /// Whether a token's names follow from the pools there are.
    pub(crate) fn depends_on_pools(scopes: &Scopes) -> bool {
        scopes.zones.is_empty() && scopes.limits_pools()
    }

    /// The names of a token with these scopes, while there are these pools. They are looked at only if
    /// [`NameScope::depends_on_pools`].
    pub(crate) fn new(scopes: &Scopes, pools: impl IntoIterator<Item = PoolSpec>) -> Self {
        let names = if Self::depends_on_pools(scopes) {
            Some(of_pools(scopes, pools))
        } else {
            (!scopes.zones.is_empty()).then(|| NameSet::new(scopes.zones.clone(), Vec::new()))
        };
        Self { scopes: scopes.clone(), names }
    }

    /// The names, unless that is all of them.
    pub(crate) fn names(&self) -> Option<&NameSet> {
        self.names.as_ref()
    }

    pub(crate) fn covers(&self, name: &Name) -> bool {
        self.names.as_ref().is_none_or(|names| names.contains(name))
    }

    /// Refuses a zone in which a name is not covered.
    pub(crate) fn check_zone(&self, zone: &Name) -> Result<(), Failure> {
        match &self.names {
            Some(names) if !names.contains_all_below(zone) => {
                Err(self.refusal(names, &format!("all of `{zone}`")))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a name that is not covered; whether there is such a name is not said.
    pub(crate) fn check(&self, name: &Name) -> Result<(), Failure> {
        match &self.names {
            Some(names) if !names.contains(name) => Err(self.refusal(names, &format!("`{name}`"))),
            _ => Ok(()),
        }
    }

    /// Refusal of something other than a name that the token does not reach; `what` names it.
    pub(crate) fn refuse(&self, what: &str) -> Failure {
        self.refusal(self.names.as_ref().unwrap_or(&NameSet::default()), what)
    }

    fn refusal(&self, names: &NameSet, what: &str) -> Failure {
        if !self.scopes.zones.is_empty() {
            return zone_scope::out_of_zones(&self.scopes, what);
        }
        let domains: Vec<String> = names.domains().iter().map(|domain| format!("`{domain}`")).collect();
        let covered = if domains.is_empty() {
            "which have no domain and so no name but the reverse names of their addresses".to_owned()
        } else {
            format!("and so for the names in {} and the reverse names of their addresses", domains.join(", "))
        };
        session::out_of_pools(&self.scopes, &format!("{covered}, and not for {what}"))
    }
}

/// The names that these pools give to a token of pools or VRFs.
pub(crate) fn of_pools(scopes: &Scopes, pools: impl IntoIterator<Item = PoolSpec>) -> NameSet {
    let ((mut own, mut others), (mut domains, mut foreign)) =
        <((Vec<_>, Vec<_>), (Vec<_>, Vec<_>))>::default();
    for pool in pools.into_iter().filter(has_names) {
        let reached = scopes.allows_pool(&pool.name, &pool.vrf);
        (if reached { &mut own } else { &mut others }).extend(pool.extent());
        (if reached { &mut domains } else { &mut foreign }).extend(pool.domain);
    }
    NameSet::new(domains, without(own, others)).without(foreign)
}

/// Whether claims of a pool have names.
pub(crate) fn has_names(pool: &PoolSpec) -> bool {
    !matches!(pool.family, Family::Mac | Family::Prefix)
}

/// Removes `holes` from `ranges` and returns the rest.
fn without(ranges: Vec<Range>, holes: Vec<Range>) -> Vec<Range> {
    let holes = Range::joined(holes);
    let mut left = Vec::new();
    for range in Range::joined(ranges) {
        let from = holes.partition_point(|hole| hole.last() < range.first());
        let within = holes.get(from..).unwrap_or_default().iter().take_while(|hole| hole.overlaps(range));
        let mut rest = vec![range];
        for hole in within {
            // Holes are in order, so all but the last piece stay as they are.
            if let Some(last) = rest.pop() {
                rest.extend(last.without(*hole));
            }
        }
        left.extend(rest);
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(name: &str, vrf: &str, domain: Option<&str>, ranges: &str) -> PoolSpec {
        let ranges: Vec<Range> = ranges.split(' ').map(|range| range.parse().unwrap()).collect();
        let family = match ranges[0].kind() {
            netstead_model::Kind::V4 => Family::Ipv4,
            netstead_model::Kind::V6 => Family::Ipv6,
            netstead_model::Kind::Mac => Family::Mac,
        };
        let mut spec = PoolSpec::new(name.parse().unwrap(), family);
        (spec.vrf, spec.ranges) = (vrf.parse().unwrap(), ranges);
        spec.domain = domain.map(|domain| domain.parse().unwrap());
        spec
    }

    fn pools() -> Vec<PoolSpec> {
        let mut prefixes = pool("prefixes", "x", None, "10.8.0.0/16");
        prefixes.family = Family::Prefix;
        vec![
            pool("a", "x", Some("a.test"), "10.1.0.0/24 10.1.2.0/24"),
            pool("b", "default", Some("b.test"), "10.2.0.0/24"),
            pool("c", "x", None, "fd00::/64"),
            pool("macs", "x", Some("macs.test"), "52:54:00:00:00:00-52:54:00:00:00:ff"),
            // Another VRF has some addresses of `a` too.
            pool("twin", "default", None, "10.1.2.0-10.1.2.127"),
            prefixes,
            pool("inner", "default", Some("inner.a.test"), "10.3.0.0/24"),
        ]
    }

    fn scopes(pools: &[&str], vrfs: &[&str], zones: &[&str]) -> Scopes {
        Scopes {
            pools: pools.iter().map(|name| name.parse().unwrap()).collect(),
            vrfs: vrfs.iter().map(|name| name.parse().unwrap()).collect(),
            zones: zones.iter().map(|name| name.parse().unwrap()).collect(),
        }
    }

    #[test]
    fn a_token_covers_its_zones_or_the_names_of_its_pools() {
        let every = [
            "a.test",
            "www.a.test",
            "www.b.test",
            "x.macs.test",
            "7.0.1.10.in-addr.arpa",
            "0.1.10.in-addr.arpa",
            "1.10.in-addr.arpa",
            "7.2.1.10.in-addr.arpa",
            "200.2.1.10.in-addr.arpa",
            "2.1.10.in-addr.arpa",
            "7.0.2.10.in-addr.arpa",
            "7.0.8.10.in-addr.arpa",
            "0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa",
            "www.inner.a.test",
        ];
        let a = [0, 1, 4, 5, 8];
        for (scopes, covered) in [
            (scopes(&[], &[], &[]), (0..every.len()).collect::<Vec<_>>()),
            (scopes(&["a"], &[], &[]), a.to_vec()),
            (scopes(&["b"], &[], &[]), vec![2, 10]),
            (scopes(&["c"], &[], &[]), vec![12]),
            (scopes(&["gone"], &[], &[]), vec![]),
            (scopes(&["a", "b"], &["x"], &[]), a.to_vec()),
            (scopes(&[], &["x"], &[]), vec![0, 1, 4, 5, 8, 12]),
            (scopes(&["macs"], &[], &[]), vec![]),
            // A pool that is out of reach has a domain within `a.test`.
            (scopes(&["inner"], &[], &[]), vec![13]),
            (scopes(&["a", "twin"], &[], &[]), vec![0, 1, 4, 5, 7, 8, 9]),
            (scopes(&[], &[], &["b.test"]), vec![2]),
            // Zones go before pools.
            (scopes(&["a"], &[], &["b.test", "0.1.10.in-addr.arpa"]), vec![2, 4, 5]),
        ] {
            let scope = NameScope::new(&scopes, pools());
            let covers = |at: &usize| scope.covers(&every[*at].parse().unwrap());
            let found: Vec<usize> = (0..every.len()).filter(covers).collect();
            assert_eq!(found, covered, "{scopes:?}");
            for (at, name) in every.iter().enumerate() {
                assert_eq!(scope.check(&name.parse().unwrap()).is_ok(), covered.contains(&at), "{name}");
            }
        }
    }

    #[test]
    fn a_refusal_says_what_is_covered() {
        let told = |scopes: &Scopes| {
            let failure =
                NameScope::new(scopes, pools()).check(&"x.other.test".parse().unwrap()).unwrap_err();
            let problem = failure.problem(None);
            (problem.status, problem.detail, problem.facts.get("scope").cloned().unwrap_or_default())
        };
        let zone = NameScope::new(&scopes(&["a"], &[], &[]), pools()).check_zone(&"a.test".parse().unwrap());
        assert!(zone.unwrap_err().problem(None).detail.ends_with(", and not for all of `a.test`"));
        let pools = "your token is for the pools `a`, and so for the names in `a.test` and the reverse names of their \
                     addresses, and not for `x.other.test`";
        assert_eq!(told(&scopes(&["a"], &[], &[])), (403, pools.into(), "pools=a".into()));
        let bare = "your token is for the pools `c`, which have no domain and so no name but the reverse names of their \
                    addresses, and not for `x.other.test`";
        assert_eq!(told(&scopes(&["c"], &[], &[])), (403, bare.into(), "pools=c".into()));
        let zones = "your token is for the zones `b.test` and not for `x.other.test`";
        assert_eq!(told(&scopes(&["a"], &[], &["b.test"])), (403, zones.into(), "zones".into()));
    }
}
