//! Keeps track of a write that may have been done although its answer was lost.
//!
//! 1. A client sends a claim. The server does it, and the answer is lost.
//! 2. The client sends the claim again. The server now answers 503: nothing can be done at the moment.
//! 3. That is true of the second request only. To report "nothing was changed" would be wrong, so the outcome is *unknown*.

use reqwest::Url;

use crate::{
    ClientError,
    types::{BulkOutput, BulkResult, Problem},
};

/// The end of a server's reason; it is true of a repetition alone.
const OF_ONE: &str = "; nothing was changed";

/// The first attempt of a call of which it is not known whether it was done.
#[derive(Debug, Default)]
pub(crate) struct UnknownOutcome(Option<String>);

impl UnknownOutcome {
    /// Remembers an attempt that may have been carried out.
    pub(super) fn note(&mut self, failure: &ClientError) {
        if let (None, ClientError::Unknown { reason, .. }) = (&self.0, failure) {
            self.0 = Some(reason.clone());
        }
    }

    /// The final error: the last failure, unless it leaves open what became of an attempt before it.
    pub(super) fn final_error(&self, last: ClientError, url: &Url) -> ClientError {
        let Some(first) = &self.0 else { return last };
        match &last {
            ClientError::Unknown { .. } => last,
            ClientError::Refused(problem) | ClientError::Denied { problem, .. }
                if is_final_decision(problem) =>
            {
                last
            }
            _ => ClientError::Unknown { url: url.clone(), reason: since(first, &last.to_string()) },
        }
    }

    /// The same for the entries of a bulk, each of which has an answer of its own.
    pub(crate) fn final_entries(&self, mut output: BulkOutput) -> BulkOutput {
        let Some(first) = &self.0 else { return output };
        for result in &mut output.results {
            if let BulkResult::Failed(problem) = result
                && !is_final_decision(problem)
                && problem.slug() != "unknown"
            {
                let reason = since(first, &problem.detail);
                *problem = Problem {
                    kind: "urn:netstead:unknown".into(),
                    title: "Unknown".into(),
                    status: 504,
                    detail: format!("it is unknown whether this was done: {reason}"),
                    ..problem.clone()
                };
            }
        }
        output
    }
}

/// Why a server does not know whether something was done, without its saying so: the error says it too.
pub(super) fn cause(told: &str) -> &str {
    let inner = told.strip_prefix("it is unknown whether this was done (");
    inner.and_then(|inner| inner.rsplit_once("): ")).map_or(told, |(cause, _)| cause)
}

/// A sentence with the first error, and the answer to the repetition.
fn since(first: &str, last: &str) -> String {
    format!("{first}; asked again: {}", last.replacen(OF_ONE, "", 1))
}

/// Whether this is the last word on a request, whatever became of it before: a decision against it by one who knew
/// everything that was done. Had it been done, a repetition would have been told so.
///
/// What is said before a decision settles nothing: a token that has ended since, a path that a proxy does not know, a
/// deadline, a server that cannot answer.
fn is_final_decision(problem: &Problem) -> bool {
    match problem.status {
        403 => matches!(problem.slug(), "not-yours" | "force-denied"),
        404 | 409 | 410 | 412 | 422 => !matches!(problem.slug(), "not-found" | "invalid"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_it_is_unknown_is_said_once() {
        let told = "it is unknown whether this was done (no majority (2 of 3)): ask again with the same key";
        assert_eq!(cause(told), "no majority (2 of 3)");
        assert_eq!(cause("because"), "because");
    }

    #[test]
    fn only_a_decision_settles_what_became_of_a_request() {
        let of = |status, slug: &str| Problem {
            kind: format!("urn:netstead:{slug}"),
            status,
            ..Problem::default()
        };
        for (status, slug) in [
            (409, "exhausted"),
            (409, "not-done"),
            (404, "no-such-pool"),
            (410, "already-gone"),
            (412, "version-mismatch"),
            (422, "not-in-pool"),
            (403, "not-yours"),
        ] {
            assert!(is_final_decision(&of(status, slug)), "{slug}");
        }
        for (status, slug) in [
            (503, "unavailable"),
            (503, "no-leader"),
            (504, "too-late"),
            (504, "still-running"),
            (500, "internal"),
            (401, "unauthenticated"),
            (403, "forbidden"),
            (404, "not-found"),
            (413, "too-large"),
            (400, "invalid"),
        ] {
            assert!(!is_final_decision(&of(status, slug)), "{slug}");
        }
    }
}
