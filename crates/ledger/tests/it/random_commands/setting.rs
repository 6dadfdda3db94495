//! How a step of small numbers becomes a command.

use std::sync::Arc;

use netstead_ledger::{Caller, Command, Report, Sighting};
use netstead_model::{ClaimId, ClaimRef, ClaimRequest, Ident, Key, Labels, PoolChoice, Range, Span, Want};

use super::{Aim, Ask, Step, Who};
use crate::random_pools;

/// Facts that turn a step into a command.
pub(crate) struct Setting<'a> {
    pub theme: &'a [usize],
    /// Every id there ever was.
    pub ids: &'a [ClaimId],
    /// The last event, to make versions out of.
    pub seq: u64,
    pub keys: u8,
}

impl Setting<'_> {
    fn pool(&self, number: u8) -> usize {
        self.theme[usize::from(number) % self.theme.len()]
    }

    fn name(&self, number: u8) -> Ident {
        random_pools::name(self.pool(number))
    }

    fn key(&self, number: u8) -> Key {
        format!("k{}", number % self.keys).parse().unwrap()
    }

    fn target(&self, aim: Aim) -> ClaimRef {
        let id = match (aim.id % 3, self.ids.len()) {
            (0, _) | (_, 0) => None,
            (_, count) => self.ids.get(usize::from(aim.id) % count).copied(),
        };
        ClaimRef { pool: self.name(aim.pool), key: self.key(aim.key), id }
    }

    fn request(&self, ask: &Ask) -> ClaimRequest {
        let first = self.pool(ask.pools[0]);
        let choice = ask.length.filter(|length| random_pools::is_prefix(first) || *length == 0);
        let length = choice.map(|choice| random_pools::length(first, choice));
        let step = random_pools::is_prefix(first).then(|| length.unwrap_or(random_pools::length(first, 2)));
        let offset = if step.is_some() { ask.offset % 5 } else { ask.offset };
        let wanted = random_pools::address(first, offset, step);
        let names = ask.pools.iter().map(|pool| self.name(*pool));
        ClaimRequest {
            key: self.key(ask.key),
            from: match ask.select {
                Some(selector) => PoolChoice::Select(selector.parse().unwrap()),
                None => PoolChoice::Pools(names.collect()),
            },
            want: [Want::Any, Want::Exact(wanted), Want::Prefer(wanted)][usize::from(ask.want)],
            length,
            ttl: ask.ttl.map(Span::from_secs),
            labels: ask.label.map(|l| Labels::new([("run".to_owned(), l.to_string())]).unwrap()),
            hostnames: None,
            description: None,
            adopt: ask.adopt,
            force: ask.force,
            wait: ask.wait.then_some(Span::ZERO),
            keep: ask.keep,
        }
    }

    /// The command of a step, and who asks; a step of passing time has none.
    pub fn command(&self, step: &Step) -> Option<(Caller, Command)> {
        let nobody = Caller::new("admin");
        let version = |stale: &bool| stale.then_some(self.seq);
        Some(match step {
            Step::Pass(_) => return None,
            Step::Create(pool, shape) => {
                (nobody, Command::CreatePool(random_pools::spec(self.pool(*pool), *shape).into()))
            }
            Step::Update { pool, shape, stale } => {
                let spec = random_pools::spec(self.pool(*pool), *shape).into();
                (nobody, Command::UpdatePool { spec, if_version: version(stale) })
            }
            Step::Delete { pool, force, stale } => {
                let (name, force) = (self.name(*pool), force.then(|| "it goes".to_owned()));
                (nobody, Command::DeletePool { name, force, if_version: version(stale) })
            }
            Step::Claim(who, ask) => (who.caller(), Command::Claim(self.request(ask).into())),
            Step::Release(who, aim) => (who.caller(), Command::Release(self.target(*aim))),
            Step::Renew(who, aim, ttl) => {
                let ttl = ttl.map(Span::from_secs);
                (who.caller(), Command::Renew { target: self.target(*aim), ttl })
            }
            Step::Move(who, aim, to, owner) => {
                let (target, owner) = (self.target(*aim), owner.map(owner_name));
                (who.caller(), Command::Move { target, key: self.key(*to), owner })
            }
            Step::Reserve(who, pool, number, offset, length, words) => {
                let first = random_pools::address(self.pool(*pool), *offset, None);
                let last = first.checked_add(u128::from(*length)).unwrap();
                let (pool, range) = (self.name(*pool), Range::new(first, last).unwrap());
                let description = words.map(ToOwned::to_owned);
                (who.caller(), Command::Reserve { pool, key: self.key(*number), range, description })
            }
            Step::Unreserve(who, pool, number) => {
                (who.caller(), Command::Unreserve { pool: self.name(*pool), key: self.key(*number) })
            }
            Step::Observe { source, pool, complete, seen, grace, ttl } => {
                let pool = self.pool(*pool);
                let sighting = |(offset, note): &(u8, u8)| Sighting {
                    address: random_pools::address(pool, *offset, None),
                    note: (*note > 0).then(|| format!("note {note}")),
                };
                let report = Report {
                    source: format!("source-{source}").parse().unwrap(),
                    vrf: random_pools::vrf(pool),
                    complete: *complete,
                    seen: seen.iter().map(sighting).collect(),
                    grace: Span::from_secs(*grace),
                    ttl: ttl.filter(|ttl| *ttl > 0).map(Span::from_secs),
                };
                (nobody, Command::Observe(report))
            }
            Step::Abandon(who, pool, number) => {
                (who.caller(), Command::Abandon { pool: self.name(*pool), key: self.key(*number) })
            }
            Step::Bulk(who, steps) => {
                let commands = steps.iter().filter_map(|step| self.command(step)).map(|(_, command)| command);
                (who.caller(), Command::Bulk(commands.collect()))
            }
            Step::Resume => (nobody, Command::Resume),
        })
    }
}

impl Who {
    fn caller(self) -> Caller {
        let mut caller = Caller::new(&owner_name(self.owner));
        caller.manager = self.manager;
        caller.behalf = self.behalf.then(|| owner_name(self.owner + 1));
        caller.request = self.manager.then(|| "of a manager".into());
        caller
    }
}

fn owner_name(number: u8) -> Arc<str> {
    ["ann", "bob", "cid", "ann"][usize::from(number)].into()
}
