//! Parts that are broken on purpose, to see that a check finds it.

use netstead_ledger::Sabotage;
use netstead_store::simulated::Broken;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Store(Broken),
    Ledger(Sabotage),
    /// Watchers miss commits, and followers do not notice.
    Deafness,
    /// The judge wants to hear of events although they were trimmed, as it once did.
    Judge,
}

impl Fault {
    pub fn of_store(self) -> Option<Broken> {
        match self {
            Self::Store(broken) => Some(broken),
            Self::Deafness => Some(Broken::Watching),
            Self::Ledger(_) | Self::Judge => None,
        }
    }

    pub fn of_ledger(self) -> Option<Sabotage> {
        match self {
            Self::Ledger(sabotage) => Some(sabotage),
            Self::Deafness => Some(Sabotage::Gaps),
            Self::Store(_) | Self::Judge => None,
        }
    }

    /// By the name of what a ledger leaves out, or `Judge`.
    pub fn named(name: &str) -> Self {
        let named = |sabotage: &Sabotage| format!("{sabotage:?}") == name;
        match Sabotage::ALL.into_iter().find(named) {
            Some(sabotage) => Self::Ledger(sabotage),
            None if name == "Judge" => Self::Judge,
            None => panic!("nothing is called {name}: {:?}", Sabotage::ALL),
        }
    }
}

/// The seeds that once showed something, each with what brings it back.
pub(super) fn kept() -> Vec<(u64, Fault)> {
    let lines = include_str!("seeds.txt").lines().filter(|line| !line.starts_with('#'));
    let seed = |line: &str| {
        let mut words = line.split(' ');
        (words.next().unwrap().parse().unwrap(), Fault::named(words.next().unwrap()))
    };
    lines.map(seed).collect()
}
