//! [`GivenNames`]: names that were given a moment ago, before other systems show them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use netstead_model::Clock;
use netstead_operator::Naming;

/// How long a name is remembered. After that the other system shows it.
const MEMORY: Duration = Duration::from_mins(1);

/// Names that this process gave lately, so that of two claims that ask for one name at the same time only one gets it.
#[derive(Debug)]
pub(super) struct GivenNames {
    clock: Arc<dyn Clock>,
    names: Mutex<HashMap<String, Given>>,
}

#[derive(Debug)]
struct Given {
    holder: String,
    /// Of the claim.
    key: String,
    at: Duration,
}

impl GivenNames {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, names: Mutex::default() }
    }

    fn names(&self) -> MutexGuard<'_, HashMap<String, Given>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a name to a claim of a holder. The error is another holder that got it lately.
    pub(super) fn give(&self, name: &str, holder: &str, key: &str) -> Result<(), String> {
        let now = self.clock.monotonic();
        let mut names = self.names();
        names.retain(|_, given| now.saturating_sub(given.at) < MEMORY);
        match names.get(name) {
            Some(given) if given.holder != holder => Err(given.holder.clone()),
            _ => {
                let (holder, key) = (holder.to_owned(), key.to_owned());
                names.insert(name.to_owned(), Given { holder, key, at: now });
                Ok(())
            }
        }
    }

    /// Forgets the names of a claim that is released.
    pub(super) fn forget(&self, key: &str) {
        self.names().retain(|_, given| given.key != key);
    }

    /// Forgets a name, if this holder got it.
    pub(super) fn take_back(&self, name: &str, holder: &str) {
        let mut names = self.names();
        if names.get(name).is_some_and(|given| given.holder == holder) {
            names.remove(name);
        }
    }
}

/// The holder of the names of a claim: its Machine, whose claims share them, else the claim itself.
pub(super) fn holder(naming: &Naming, key: &str) -> String {
    match &naming.machine {
        Some(machine) => format!("the Machine {machine}"),
        None => format!("the claim `{key}`"),
    }
}

#[cfg(test)]
mod tests {
    use netstead_model::ManualClock;

    use super::*;

    #[test]
    fn a_name_is_given_to_one_holder_until_others_see_it() {
        let clock = ManualClock::default();
        let names = GivenNames::new(clock.shared());
        let give = |name: &str, holder: &str, key: &str| names.give(name, holder, key);
        assert_eq!(give("web.example.com", "a", "a-1"), Ok(()));
        // A second claim of the same Machine.
        assert_eq!(give("web.example.com", "a", "a-2"), Ok(()));
        assert_eq!(give("web.example.com", "b", "b-1"), Err("a".to_owned()));
        assert_eq!(give("db.example.com", "b", "b-1"), Ok(()));
        clock.advance(MEMORY);
        assert_eq!(give("web.example.com", "b", "b-1"), Ok(()));
        names.take_back("web.example.com", "a");
        assert!(give("web.example.com", "a", "a-1").is_err());
        names.take_back("web.example.com", "b");
        assert_eq!(give("web.example.com", "a", "a-1"), Ok(()));
        names.forget("a-1");
        assert_eq!(give("web.example.com", "b", "b-2"), Ok(()));
    }
}
