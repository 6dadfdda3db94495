//! Batches of changes: NetBox takes all members or none, so those that it refuses are left out and the others sent again.

use netstead_model::{ObjectWrite, ProviderError, UnitOutcome};
use netstead_wire::http::Method;

use super::NetBox;
use crate::netbox::{ApiError, Row, refused_members};

/// Objects in one request.
pub(super) const BATCH: usize = 50;

/// One member of a batch.
#[derive(Debug, Clone)]
pub(super) struct Member {
    /// The number of its unit.
    pub(super) number: usize,
    /// None while it has none.
    pub(super) id: Option<u64>,
    pub(super) body: Row,
    pub(super) etag: Option<String>,
}

/// The outcomes of the units so far.
#[derive(Debug)]
pub(super) struct Outcomes(Vec<Option<UnitOutcome>>);

impl Outcomes {
    pub(super) fn new(count: usize) -> Self {
        Self(vec![None; count])
    }

    pub(super) fn set(&mut self, number: usize, outcome: UnitOutcome) {
        if let Some(slot) = self.0.get_mut(number) {
            *slot = Some(outcome);
        }
    }

    pub(super) fn reject(&mut self, number: usize, reason: impl Into<String>) {
        self.set(number, UnitOutcome::Rejected { reason: reason.into() });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// One for each unit; those that were not reached were not tried.
    pub(super) fn all(self) -> Vec<UnitOutcome> {
        self.0.into_iter().map(|outcome| outcome.unwrap_or(UnitOutcome::NotTried)).collect()
    }

    /// Notes an error of a request for these members.
    fn lost(&mut self, batch: &[Member], error: &ApiError) {
        if matches!(error, ApiError::Server(error) if error.may_have_acted()) {
            for member in batch {
                self.set(member.number, UnitOutcome::Unknown);
            }
        }
    }

    /// Rejects the members that a refusal names, and gives the batches that are to be tried next.
    fn after_refusal(
        &mut self,
        mut batch: Vec<Member>,
        message: &str,
        body: &serde_json::Value,
    ) -> Vec<Vec<Member>> {
        if let [one] = batch.as_slice() {
            let said = refused_members(body, &[one.id]).remove(&0).filter(|said| !said.is_empty());
            self.reject(one.number, said.unwrap_or_else(|| message.to_owned()));
            return Vec::new();
        }
        let ids: Vec<Option<u64>> = batch.iter().map(|member| member.id).collect();
        let named = refused_members(body, &ids);
        if named.is_empty() {
            let half = batch.split_off(batch.len() / 2);
            return vec![half, batch];
        }
        let mut rest = Vec::with_capacity(batch.len());
        for (number, member) in batch.into_iter().enumerate() {
            match named.get(&number) {
                Some(why) if why.is_empty() => self.reject(member.number, message),
                Some(why) => self.reject(member.number, why),
                None => rest.push(member),
            }
        }
        vec![rest]
    }
}

impl NetBox {
    /// Makes the members, and puts each with its object into `made`, also those before an error.
    pub(super) async fn create_members(
        &self,
        request: &ObjectWrite,
        path: &str,
        members: Vec<Member>,
        outcomes: &mut Outcomes,
        made: &mut Vec<(Member, Row)>,
    ) -> Result<(), ApiError> {
        let mut waiting = vec![members];
        while let Some(batch) = waiting.pop() {
            if batch.is_empty() {
                continue;
            }
            request.guard.permit().await?;
            let bodies: Vec<Row> = batch.iter().map(|member| member.body.clone()).collect();
            match self.api.create(path, &bodies).await {
                Ok(rows) => made.extend(batch.into_iter().zip(rows)),
                Err(ApiError::Refused { message, body, .. }) => {
                    waiting.extend(outcomes.after_refusal(batch, &message, &body));
                }
                Err(error) => {
                    outcomes.lost(&batch, &error);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Changes or removes the members: each with its `ETag`, or all in one request.
    pub(super) async fn change_members(
        &self,
        request: &ObjectWrite,
        method: Method,
        path: &str,
        members: Vec<Member>,
        outcomes: &mut Outcomes,
    ) -> Result<(), ApiError> {
        let (single, together): (Vec<Member>, Vec<Member>) =
            members.into_iter().partition(|member| member.etag.is_some());
        for member in single {
            request.guard.permit().await?;
            let Some(id) = member.id else { continue };
            let body = Some(&member.body).filter(|_| method != Method::DELETE);
            let changed = self
                .api
                .change_one(method.clone(), &format!("{path}{id}/"), body, member.etag.as_deref())
                .await;
            match changed {
                Ok(()) => outcomes.set(member.number, UnitOutcome::Applied),
                // It changed meanwhile: the next pass plans anew.
                Err(ApiError::Refused { code: 412, .. }) => outcomes.set(member.number, UnitOutcome::Changed),
                Err(ApiError::Refused { code: 404, .. }) => outcomes.set(member.number, gone(&method)),
                Err(ApiError::Refused { message, .. }) => outcomes.reject(member.number, message),
                Err(error) => {
                    outcomes.lost(&[member], &error);
                    return Err(error);
                }
            }
        }
        let mut waiting = vec![together];
        while let Some(batch) = waiting.pop() {
            if batch.is_empty() {
                continue;
            }
            request.guard.permit().await?;
            let with_id = |member: &Member| {
                let mut body = member.body.clone();
                body.extend(member.id.map(|id| ("id".to_owned(), id.into())));
                body
            };
            let bodies: Vec<Row> = batch.iter().map(with_id).collect();
            match self.api.change_all(method.clone(), path, &bodies).await {
                Ok(()) => batch.iter().for_each(|member| outcomes.set(member.number, UnitOutcome::Applied)),
                Err(ApiError::Refused { code: 404, .. }) if batch.len() == 1 => {
                    for member in &batch {
                        outcomes.set(member.number, gone(&method));
                    }
                }
                Err(ApiError::Refused { message, body, .. }) => {
                    waiting.extend(outcomes.after_refusal(batch, &message, &body));
                }
                Err(error) => {
                    outcomes.lost(&batch, &error);
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

/// The outcome for an object that is no longer there.
fn gone(method: &Method) -> UnitOutcome {
    if *method == Method::DELETE { UnitOutcome::Applied } else { UnitOutcome::Changed }
}

/// The error for the caller of the provider.
pub(super) fn of_provider(error: ApiError, server: &str) -> ProviderError {
    error.unexpected(server)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn refused_members_are_left_out_and_unnamed_ones_are_found_by_halving() {
        let member = |number| Member { number, id: None, body: Row::new(), etag: None };
        let batch = || (0..4).map(member).collect::<Vec<_>>();
        let numbers = |batches: &[Vec<Member>]| -> Vec<Vec<usize>> {
            batches.iter().map(|batch| batch.iter().map(|member| member.number).collect()).collect()
        };
        let mut outcomes = Outcomes::new(4);
        let named = json!({ "errors": [{ "index": 1, "errors": { "name": ["No."] } }] });
        let next = outcomes.after_refusal(batch(), "1 of 4", &named);
        assert_eq!(numbers(&next), [vec![0, 2, 3]]);
        assert_eq!(
            outcomes.all(),
            [
                UnitOutcome::NotTried,
                UnitOutcome::Rejected { reason: "name: No.".into() },
                UnitOutcome::NotTried,
                UnitOutcome::NotTried
            ]
        );
        let mut outcomes = Outcomes::new(4);
        let next = outcomes.after_refusal(batch(), "no", &json!({ "detail": "no" }));
        assert_eq!(numbers(&next), [vec![2, 3], vec![0, 1]]);
        assert!(outcomes.is_empty());
        assert!(outcomes.after_refusal(vec![member(3)], "no", &json!(null)).is_empty());
        assert_eq!(outcomes.all().pop(), Some(UnitOutcome::Rejected { reason: "no".into() }));
    }
}
