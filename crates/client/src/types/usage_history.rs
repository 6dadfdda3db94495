//! The history of pools: how full they were, and how much changed.

use jiff::{Timestamp, civil::Date};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How full a pool was: per hour for a week, per day for two years. A time without samples is one in which no server ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PoolHistoryOutput {
    #[schema(format = "identifier")]
    pub pool: String,
    /// The oldest first; the last one is of this moment.
    pub hours: Vec<UsageSample>,
    /// The oldest first; the last one is today, as far as it has come.
    pub days: Vec<UsageDay>,
    /// When it will be full; missing if that cannot be said, or if it does not fill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<ForecastOutput>,
}

/// A pool at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageSample {
    #[schema(value_type = String, format = "date-time")]
    pub at: Timestamp,
    pub claims: u64,
    /// The part that was not free, in hundredths of a percent of the size: 0 to 10000.
    pub used_permyriad: u32,
}

/// A pool on one day, in UTC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageDay {
    #[schema(value_type = String, format = "date")]
    pub day: Date,
    /// Claims at its last hour.
    pub claims: u64,
    /// The largest part that was not free, in hundredths of a percent of the size.
    pub used_permyriad: u32,
    /// Claims that were made.
    pub claimed: u64,
    /// Claims that were released, or expired.
    pub ended: u64,
}

/// When a pool will be full, if it goes on as in the last week.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ForecastOutput {
    /// By so many claims it grows in a day.
    pub per_day: f64,
    pub days_left: u64,
}

/// How much changed per day, and which pools fill.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UsageOutput {
    /// The oldest first; the last one is today, up to the last full hour. Empty for tokens with scopes, which see those of
    /// their pools one by one.
    pub days: Vec<ChangesOfDay>,
    /// Pools that will be full within 30 days, the first one first.
    pub filling: Vec<FillingPool>,
}

/// Changes of one day, in UTC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangesOfDay {
    #[schema(value_type = String, format = "date")]
    pub day: Date,
    /// Claims that were made.
    pub claimed: u64,
    /// Claims that were released, or expired.
    pub ended: u64,
    /// Changes that DNS servers and IPAM systems took.
    pub applied: u64,
}

/// A pool that will be full soon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FillingPool {
    #[schema(format = "identifier")]
    pub pool: String,
    /// The free part now: a count.
    pub free: String,
    pub forecast: ForecastOutput,
}

impl ForecastOutput {
    /// `at 1.6 a day, full in about 80 days`
    pub fn sentence(&self) -> String {
        let days = if self.days_left == 1 { "day" } else { "days" };
        format!("at {:.1} a day, full in about {} {days}", self.per_day, self.days_left)
    }
}
