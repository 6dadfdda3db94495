//! `NetsteadIPPool`: a pool of Netstead's ledger.
//!
//! A name that leads elsewhere already is not given a second time: the claim would take part of another's visitors. It is left
//! out, and the claim says so.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use netstead_model::{
    BackendError, BackendErrorKind, BackendPoolInfo, Digest, Family, Key, Name, Range, RecordType,
};
use netstead_operator::{ExternalAddress, ExternalClaim, ExternalPool, Naming};
use serde::Deserialize;
use serde_json::Value;

use super::{
    given_names::{GivenNames, holder},
    ledger_access::{Held, Holder, LedgerAccess, LedgerPool, LedgerRequest, NameValue},
    read_spec,
};

/// The labels of claims in the ledger.
const MACHINE: &str = "machine";
const CLUSTER: &str = "cluster";
const CLAIM: &str = "claim";

#[derive(Deserialize)]
struct NetsteadSpec {
    pool: String,
}

pub(super) fn open(
    spec: &Value,
    ledger: Arc<dyn LedgerAccess>,
    given: &Arc<GivenNames>,
) -> Result<Arc<dyn ExternalPool>, String> {
    let NetsteadSpec { pool } = read_spec(spec)?;
    Ok(Arc::new(NetsteadPool { ledger, pool, given: Arc::clone(given), known: Mutex::default() }))
}

#[derive(Debug)]
struct NetsteadPool {
    ledger: Arc<dyn LedgerAccess>,
    pool: String,
    given: Arc<GivenNames>,
    /// As it was described last.
    known: Mutex<Option<LedgerPool>>,
}

/// The names that a claim gets, and why it does not get others.
#[derive(Debug, Default)]
struct Names {
    free: Vec<Name>,
    problem: Option<String>,
}

impl NetsteadPool {
    async fn look(&self) -> Result<LedgerPool, BackendError> {
        let mut found = self.ledger.pool(&self.pool).await?;
        let info = &mut found.info;
        if info.family == Family::Mac {
            let message = format!("pool `{}` hands out MAC addresses", self.pool);
            return Err(BackendError::new(BackendErrorKind::Refused, message));
        }
        if info.network.is_none() && info.family != Family::Prefix {
            let message = format!("pool `{}` has no network, whose length every IPAddress needs", self.pool);
            let hint = format!("netstead pool update {} --network CIDR", self.pool);
            return Err(BackendError::new(BackendErrorKind::Refused, message).hint(hint));
        }
        if info.ranges.is_empty() {
            info.ranges = info.network.map(Range::from).into_iter().collect();
        }
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(found.clone());
        Ok(found)
    }

    async fn known(&self) -> Result<LedgerPool, BackendError> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match known {
            Some(known) => Ok(known),
            None => self.look().await,
        }
    }

    /// Looks which of the wanted names lead nowhere yet.
    async fn free_names(&self, wanted: Wanted, naming: &Naming, key: &str) -> Result<Names, BackendError> {
        let holder = holder(naming, key);
        let mut names = Names { free: Vec::new(), problem: wanted.problem };
        for name in wanted.names {
            let user = match self.given.give(name.as_str(), &holder, key) {
                Ok(()) => self.user_of(&name, naming, key).await,
                Err(other) => Ok(Some(format!("{other} has it"))),
            };
            match user {
                Ok(None) => names.free.push(name),
                Ok(Some(user)) => {
                    self.given.take_back(name.as_str(), &holder);
                    let problem = format!(
                        "the name {name} is taken: {user}; choose another with the annotation netstead.io/hostname of a new claim"
                    );
                    names.problem.get_or_insert(problem);
                }
                Err(error) => {
                    self.given.take_back(name.as_str(), &holder);
                    return Err(error);
                }
            }
        }
        Ok(names)
    }

    /// Where a name leads, if it is not this claim's or its Machine's.
    async fn user_of(&self, name: &Name, naming: &Naming, key: &str) -> Result<Option<String>, BackendError> {
        let leads =
            |value: &NameValue| matches!(value.kind, RecordType::A | RecordType::Aaaa | RecordType::Cname);
        for value in self.ledger.values_of(name).await?.iter().filter(|value| leads(value)) {
            let holders = match value.address {
                Some(address) => self.ledger.holders_of(address).await?,
                None => Vec::new(),
            };
            let is_ours = |other: &Holder| {
                let same = |label: &str, own: &Option<String>| other.label(label) == own.as_deref();
                let of_machine = naming.machine.is_some()
                    && same(MACHINE, &naming.machine)
                    && same(CLUSTER, &naming.cluster);
                of_machine || (other.key == key && other.pool == self.pool)
            };
            if holders.iter().any(is_ours) {
                continue;
            }
            if let Some(other) = holders.iter().find(|holder| holder.names.contains(name)) {
                let Holder { pool, key, .. } = other;
                return Ok(Some(format!("it leads to {}, held by `{key}` in pool `{pool}`", value.text)));
            }
            // A claim that has it no more, or a value that comes or goes: a workload's is there the next time.
            let was_a_claim = |reason: &String| reason.starts_with("ledger/");
            let is_going =
                value.is_pending || (!value.reasons.is_empty() && value.reasons.iter().all(was_a_claim));
            if !is_going {
                let why = value.reasons.first().map(|why| format!(" ({why})")).unwrap_or_default();
                return Ok(Some(format!("it leads to {}{why}", value.text)));
            }
        }
        Ok(None)
    }
}

/// The names that a claim asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted {
    names: Vec<Name>,
    /// Why one of them is none.
    problem: Option<String>,
}

/// The names of a claim in a pool of this domain. A name of the annotation with a dot in it is a whole one; any other is one
/// in the domain.
fn wanted(naming: &Naming, domain: Option<&Name>) -> Wanted {
    let mut wanted = Wanted::default();
    if naming.asked.is_empty() {
        let Some(domain) = domain else { return wanted };
        match Name::join(&naming.own, domain) {
            Ok(name) => wanted.names.push(name),
            Err(error) => wanted.problem = Some(format!("`{}` is no name in {domain}: {error}", naming.own)),
        }
        return wanted;
    }
    for text in &naming.asked {
        let read = match domain {
            _ if text.contains('.') => text.parse::<Name>().map_err(|error| error.to_string()),
            Some(domain) => Name::join(text, domain).map_err(|error| error.to_string()),
            None => Err("the pool has no domain, so write a whole name".to_owned()),
        };
        match read {
            Ok(name) if !wanted.names.contains(&name) => wanted.names.push(name),
            Ok(_) => {}
            Err(error) => {
                wanted.problem.get_or_insert(format!("annotation netstead.io/hostname: `{text}`: {error}"));
            }
        }
    }
    wanted
}

/// A key as the ledger takes it: the end of one that is too long is a digest.
fn ledger_key(key: &str) -> String {
    if key.chars().count() <= Key::MAX {
        return key.to_owned();
    }
    let digest = Digest::of([key]).short();
    let begin: String = key.chars().take(Key::MAX - digest.len() - 1).collect();
    format!("{begin}.{digest}")
}

#[async_trait]
impl ExternalPool for NetsteadPool {
    async fn describe(&self) -> Result<BackendPoolInfo, BackendError> {
        Ok(self.look().await?.info)
    }

    async fn claim(&self, claim: &ExternalClaim) -> Result<ExternalAddress, BackendError> {
        let LedgerPool { info, domain } = self.known().await?;
        let naming = claim.naming.clone().unwrap_or_default();
        let key = ledger_key(&claim.key);
        let is_prefix = info.family == Family::Prefix;
        let wanted = if is_prefix { Wanted::default() } else { wanted(&naming, domain.as_ref()) };
        let held = self.ledger.look_up(&self.pool, &key).await?;
        let has_all = |held: &Held| {
            wanted.problem.is_none() && !wanted.names.is_empty() && held.hostnames == wanted.names
        };
        let (held, problem) = if let Some(held) = held.filter(has_all) {
            (held, None)
        } else {
            let names = self.free_names(wanted, &naming, &key).await?;
            let mut labels = vec![(CLAIM, claim.hostname.clone())];
            labels.extend(naming.machine.map(|machine| (MACHINE, machine)));
            labels.extend(naming.cluster.map(|cluster| (CLUSTER, cluster)));
            let description = format!("`{}` of Cluster API", claim.hostname);
            let request = LedgerRequest {
                pool: &self.pool,
                key: &key,
                want: claim.want,
                hostnames: &names.free,
                labels: &labels,
                description: &description,
            };
            (self.ledger.claim(&request).await?, names.problem)
        };
        Ok(ExternalAddress {
            address: held.address,
            network: held.length.map(|length| (length, None)),
            names: held.hostnames.iter().map(ToString::to_string).collect(),
            name_problem: problem,
        })
    }

    async fn release(&self, claim: &ExternalClaim) -> Result<(), BackendError> {
        let key = ledger_key(&claim.key);
        self.ledger.release(&self.pool, &key).await?;
        self.given.forget(&key);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naming(asked: &[&str], own: &str) -> Naming {
        Naming {
            asked: asked.iter().map(|name| (*name).to_owned()).collect(),
            own: own.to_owned(),
            ..Naming::default()
        }
    }

    #[test]
    fn a_claim_is_called_as_it_asks_else_after_its_machine_in_the_domain_of_the_pool() {
        let domain: Name = "lab.example.com".parse().unwrap();
        let names = |naming: &Naming, domain: Option<&Name>| {
            let wanted = wanted(naming, domain);
            let names: Vec<String> = wanted.names.iter().map(ToString::to_string).collect();
            (names.join(" "), wanted.problem)
        };
        let good = |text: &str| (text.to_owned(), None);
        assert_eq!(names(&naming(&[], "web-1"), Some(&domain)), good("web-1.lab.example.com"));
        // A dot in the name of an object does not lead out of the domain.
        assert_eq!(names(&naming(&[], "web.1"), Some(&domain)), good("web.1.lab.example.com"));
        assert_eq!(names(&naming(&[], "web-1"), None), good(""));
        let asked = naming(&["db", "db.example.net", "db"], "web-1");
        assert_eq!(names(&asked, Some(&domain)), good("db.lab.example.com db.example.net"));
        let (given, problem) = names(&asked, None);
        assert_eq!(given, "db.example.net");
        assert!(problem.unwrap().contains("`db`: the pool has no domain"));
        let (given, problem) = names(&naming(&["no name"], "web-1"), Some(&domain));
        assert_eq!(given, "");
        assert!(problem.unwrap().starts_with("annotation netstead.io/hostname: `no name`:"));
    }

    #[test]
    fn a_key_that_is_too_long_ends_with_a_digest() {
        let short = format!("capi/u/shop/{}", "a".repeat(200));
        assert_eq!(ledger_key(&short), short);
        let long = |last: &str| ledger_key(&format!("capi/u/shop/{}{last}", "a".repeat(253)));
        assert!(long("1").parse::<Key>().is_ok() && long("1") != long("2") && long("1") == long("1"));
    }
}
