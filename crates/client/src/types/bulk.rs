//! Several requests in one commit.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ClaimFrom, ClaimOutput, Problem, ReleaseOutput};

/// The kind of problem for entries of a refused commit that are not at fault.
const NOT_DONE: &str = "not-done";

/// Several requests in one commit, all or none; more than 64 are several commits, each repeatable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkInput {
    pub entries: Vec<BulkEntry>,
}

/// One entry of a bulk request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum BulkEntry {
    Claim(ClaimFrom),
    Release(TargetInput),
    Renew(BulkRenew),
    Move(BulkMove),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetInput {
    #[schema(format = "identifier")]
    pub pool: String,
    pub key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkRenew {
    pub target: TargetInput,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "time-span")]
    pub ttl: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkMove {
    pub target: TargetInput,
    pub key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// The answers to a bulk request, in its order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkOutput {
    pub results: Vec<BulkResult>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum BulkResult {
    /// One claim, or one per pool of `each`.
    Claimed(Vec<ClaimOutput>),
    Released(ReleaseOutput),
    Renewed(ClaimOutput),
    Moved(ClaimOutput),
    /// The commit this entry belongs to was refused; nothing of that commit was done.
    Failed(Problem),
}

impl BulkOutput {
    /// The entry because of which a commit was refused, and why. The others of that commit only share its fate.
    pub fn at_fault(&self) -> Option<(usize, &Problem)> {
        let failed = self.results.iter().enumerate().filter_map(|(place, result)| match result {
            BulkResult::Failed(problem) => Some((place, problem)),
            _ => None,
        });
        // A commit that failed as a whole is told to all of its entries alike.
        failed.clone().find(|(_, problem)| problem.slug() != NOT_DONE).or_else(|| failed.clone().next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(slug: &str) -> BulkResult {
        BulkResult::Failed(Problem { kind: format!("urn:netstead:{slug}"), ..Problem::default() })
    }

    /// Which one is at fault, and why.
    fn at_fault(results: Vec<BulkResult>) -> Option<(usize, String)> {
        let output = BulkOutput { results };
        output.at_fault().map(|(place, problem)| (place, problem.slug().to_owned()))
    }

    #[test]
    fn the_entry_at_fault_is_named_and_not_those_that_share_its_fate() {
        let done = || BulkResult::Claimed(Vec::new());
        assert_eq!(at_fault(vec![done(), done()]), None);
        let one = vec![done(), failed("not-done"), failed("exhausted"), failed("not-done")];
        assert_eq!(at_fault(one), Some((2, "exhausted".into())));
        let two = vec![failed("not-done"), failed("address-held"), failed("exhausted"), failed("not-done")];
        assert_eq!(at_fault(two), Some((1, "address-held".into())), "of two commits, the first");
        let whole = vec![done(), failed("unavailable"), failed("unavailable")];
        assert_eq!(at_fault(whole), Some((1, "unavailable".into())));
    }
}
