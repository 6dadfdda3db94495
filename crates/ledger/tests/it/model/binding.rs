//! Claims that have got their address.

use netstead_ledger::Caller;
use netstead_model::{Address, Claim, ClaimRequest, Details, Family, Span, Want};

use super::{Held, Model, claiming::FoundBlock, free_blocks};

impl Model {
    pub fn bind(&mut self, caller: &Caller, found: &FoundBlock, request: &ClaimRequest) -> Claim {
        let (name, start, length) = found;
        let pool = &self.pools[name];
        let address = Address::new(free_blocks::kind(pool), *start).unwrap();
        let length = (pool.spec.family == Family::Prefix).then_some(*length);
        // Who had it last is forgotten, and so is who last had another prefix that begins here.
        let here: Vec<_> =
            self.rests_in(pool).filter(|r| r.claim.address == address).map(|r| r.claim.id).collect();
        let vrf = pool.spec.vrf.clone();
        self.rests.retain(|rest| {
            let same = rest.vrf == vrf && rest.claim.address == address && rest.claim.length == length;
            !same && !here.contains(&rest.claim.id)
        });
        let claim = Claim {
            id: self.next_id(),
            pool: name.clone(),
            key: request.key.clone(),
            owner: caller.owner().clone(),
            address,
            length,
            fixed: matches!(request.want, Want::Exact(wanted) | Want::Prefer(wanted) if wanted == address),
            since: self.wall,
            ttl: lifetime(None, request.ttl),
            details: details(&Details::default(), request),
            drawn: None,
        };
        self.event();
        let held = self.leased(claim.clone());
        self.held.push(held);
        claim
    }

    /// With its full time before it.
    pub fn leased(&self, claim: Claim) -> Held {
        let ends = claim.ttl.map(|ttl| self.now + ttl.as_millis());
        Held { claim, ends }
    }
}

/// Nothing said leaves it as it was; zero means for ever.
pub fn lifetime(was: Option<Span>, asked: Option<Span>) -> Option<Span> {
    asked.map_or(was, |ttl| (ttl != Span::ZERO).then_some(ttl))
}

pub fn details(was: &Details, request: &ClaimRequest) -> Option<Box<Details>> {
    let mut details = was.clone();
    details.labels = request.labels.clone().unwrap_or(details.labels);
    details.hostnames = request.hostnames.clone().unwrap_or(details.hostnames);
    details.description = request.description.clone().or(details.description).filter(|text| !text.is_empty());
    (details != Details::default()).then(|| details.into())
}
