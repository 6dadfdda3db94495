//! Damage that was found in what is stored.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most parts that are remembered.
const MOST: usize = 64;

/// A part of the stored data that cannot be read, or cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The damaged key, or the last key that can be read before the damage; empty where no key is known.
    pub key: String,
    /// Description of the damage, for people.
    pub reason: String,
}

impl Damage {
    pub fn new(key: &[u8], reason: impl Into<String>) -> Self {
        Self { key: String::from_utf8_lossy(key).into_owned(), reason: reason.into() }
    }

    /// The first two components of the key, `ledger/event`: damage is remembered once for each.
    pub fn part(&self) -> &str {
        let end = self.key.match_indices('/').nth(1).map_or(self.key.len(), |(end, _)| end);
        self.key.get(..end).unwrap_or(&self.key)
    }
}

/// The damage found so far, by whatever read it: a request, a check, a backup, or work in the background.
///
/// Cheap to clone; clones are the same log. It is kept in memory: a new process finds again what it reads.
#[derive(Debug, Clone, Default)]
pub struct DamageLog(Arc<Mutex<Vec<Damage>>>);

impl DamageLog {
    /// Remembers `damage` unless damage of the same part is known. Says whether it is new.
    pub fn note(&self, damage: Damage) -> bool {
        let mut known = self.lock();
        let new = known.len() < MOST && !has(&known, &damage);
        if new {
            report(&damage);
            known.push(damage);
        }
        new
    }

    /// Everything that is known, in the order in which it was found.
    pub fn all(&self) -> Vec<Damage> {
        self.lock().clone()
    }

    /// Replaces what is known by what a look at every key found.
    pub fn replace(&self, found: impl IntoIterator<Item = Damage>) {
        let mut known = self.lock();
        let former = std::mem::take(&mut *known);
        for damage in found {
            if known.len() < MOST && !has(&known, &damage) {
                if !has(&former, &damage) {
                    report(&damage);
                }
                known.push(damage);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Damage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn has(known: &[Damage], damage: &Damage) -> bool {
    known.iter().any(|one| one.part() == damage.part())
}

fn report(damage: &Damage) {
    tracing::error!(key = damage.key, reason = damage.reason, "Stored data is damaged.");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_remembered_once_until_a_whole_look_says_otherwise() {
        let log = DamageLog::default();
        let damage = |key: &str| Damage::new(key.as_bytes(), "a block is bad");
        assert!(log.note(damage("ledger/event/1")));
        assert!(!log.note(damage("ledger/event/2")), "the same part");
        assert!(log.note(damage("ledger/head")));
        assert_eq!(log.all(), [damage("ledger/event/1"), damage("ledger/head")]);
        log.clone().replace([damage("ledger/event/7"), damage("ledger/event/9")]);
        assert_eq!(log.all(), [damage("ledger/event/7")]);
        log.replace([]);
        assert_eq!(log.all(), []);
    }
}
