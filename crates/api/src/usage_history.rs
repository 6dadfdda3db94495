//! The history of pools: how full each was, and how much changed per day.
//!
//! The leader writes it, one batch per hour. It has a limit: a pool has one key with a sample for each hour of a week, and one
//! with a sample for each day of two years; one more key counts all changes per day.
//!
//! 1. The leader reads the samples that are there, and does nothing more if they are of this hour.
//! 2. It counts the events behind those that are counted already. Each key has the number of the last event that it counts, so
//!    a batch that landed in part, or was made by an earlier leader, counts nothing twice.
//! 3. It commits the samples on condition that it still leads. A commit that arrives late puts a key back to an earlier
//!    state, with its number; the next batch counts from there, and one sample is missing.
//!
//! - `samples`: the stored values. `recorder`: writes them. `reader`: reads them. `forecast`: when a pool will be full.

mod forecast;
mod reader;
mod recorder;
mod samples;

pub use self::recorder::{RecordError, UsageRecorder};
pub(crate) use self::{
    forecast::forecast,
    reader::{UsageCache, changes, of_pool},
};
