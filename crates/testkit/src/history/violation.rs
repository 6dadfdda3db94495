//! The text about a history that is impossible.

use std::{fmt, sync::Arc};

use super::{Held, Operation, Outcome};

/// Counts of a history that is possible.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    pub operations: usize,
    pub unknown: usize,
    /// Told that it was certainly not done.
    pub failed: usize,
    /// Told that the pool had no address left.
    pub exhausted: usize,
    /// Different claims that were seen.
    pub holdings: usize,
}

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// At one moment an address had two holders.
    TwoHolders { address: Arc<str>, first: Held, second: Held },
    /// At one moment a key held two addresses: a repeat gave another one, or a claim was forgotten and made anew.
    TwoAddresses { key: Arc<str>, first: Held, second: Held },
    /// A read found nothing, or reported the end, though the address was held all the time.
    Missing { seen_by: Box<Operation>, held: Vec<Held> },
    /// It was seen after it had been released.
    StillThere { held: Held },
    /// One claim was released twice.
    ReleasedTwice { id: Arc<str> },
    /// One id stands for two holdings.
    ReusedId { first: Held, second: Held },
    /// The holding exists, and no claim can have made it.
    FromNowhere { held: Held },
    /// The answer is about something else than the question.
    WrongAnswer { operation: Box<Operation> },
    /// The address was refused, though no key can have held it.
    RefusedForNothing { operation: Box<Operation> },
    /// The pool was said to have no address left, and it always had one, or its key held one itself: then `held` is none.
    NotFull { operation: Box<Operation>, held: Option<usize>, size: usize },
    /// All that is in the list, and nothing else, was never there at one moment.
    TornList { operation: Box<Operation> },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TwoHolders { address, first, second } => {
                write!(f, "{address} is held by {first} and by {second} at the same time")
            }
            Self::TwoAddresses { key, first, second } => {
                write!(f, "{key} holds {first} and {second} at the same time")
            }
            Self::Missing { seen_by, held } => {
                let held: Vec<String> = held.iter().map(ToString::to_string).collect();
                write!(f, "{seen_by} though {} was held all the time", held.join(", then "))
            }
            Self::StillThere { held } => write!(f, "{held} was seen after its release was acknowledged"),
            Self::ReleasedTwice { id } => write!(f, "{id} was released twice"),
            Self::ReusedId { first, second } => write!(f, "one id for {first} and {second}"),
            Self::FromNowhere { held } => write!(f, "{held} is there and nobody asked for it"),
            Self::WrongAnswer { operation } => write!(f, "{operation}, which is no answer to that"),
            Self::RefusedForNothing { operation } => write!(f, "{operation} and nobody had it"),
            Self::NotFull { operation, held: Some(held), size } => {
                write!(
                    f,
                    "{operation} and at no moment more than {held} of {size} can have been held by others"
                )
            }
            Self::NotFull { operation, held: None, .. } => {
                write!(f, "{operation} and its key held an address all the time")
            }
            Self::TornList { operation } => write!(f, "{operation} was never true at one moment"),
        }
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {} (id {})", self.key, self.address, self.id)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { client, start, end, action, outcome } = self;
        write!(f, "client {client} [{start:?} to {end:?}] asked {action:?} and was told ")?;
        match outcome {
            Outcome::All(all) => write!(f, "a list of {}", all.len()),
            outcome => write!(f, "{outcome:?}"),
        }
    }
}
