//! Pool backends in `/status` and `/doctor`: whether they answer, which are paused, and which pools cannot be compared.

use netstead_client::types::{BackendOutput, FindingOutput, UncomparedPoolOutput};
use netstead_ledger::DrawStatus;
use netstead_model::{Ident, PoolStatus};

/// The backends as far as a caller may see them: all for `all`, else those that these pools draw from.
pub(crate) fn outputs(status: &DrawStatus, pools: &[PoolStatus], all: bool) -> Vec<BackendOutput> {
    let mut outputs = Vec::new();
    for (name, health) in &status.backends {
        let draws = |status: &&PoolStatus| {
            status.pool.spec.upstream.as_ref().is_some_and(|upstream| upstream.backend == *name)
        };
        let drawing: Vec<&Ident> = pools.iter().filter(draws).map(|status| status.pool.name()).collect();
        if !all && drawing.is_empty() {
            continue;
        }
        let uncompared = drawing.into_iter().filter_map(|pool| {
            let reason = status.uncompared.get(pool)?.clone();
            Some(UncomparedPoolOutput { pool: pool.to_string(), reason })
        });
        outputs.push(BackendOutput {
            name: name.to_string(),
            paused: health.paused,
            error: health.error.clone(),
            uncompared: uncompared.collect(),
        });
    }
    outputs
}

/// One sentence per backend that needs a person.
pub(super) fn todo(backends: &[BackendOutput]) -> Vec<String> {
    let mut todo = Vec::new();
    for backend in backends {
        let name = &backend.name;
        if backend.paused {
            todo.push(format!(
                "Backend `{name}` is paused, and claims in its pools wait. End that with `netstead resume --backend {name}`."
            ));
        } else if let Some(error) = &backend.error {
            todo.push(format!(
                "Backend `{name}` does not answer: {error}. Claims in its pools wait; `netstead doctor` says more."
            ));
        } else {
            for UncomparedPoolOutput { pool, reason } in &backend.uncompared {
                todo.push(format!(
                    "Pool `{pool}` cannot be compared with backend `{name}`: {reason}. Mend that at the backend."
                ));
            }
        }
    }
    todo
}

/// A finding for each backend.
pub(crate) fn findings(backends: &[BackendOutput]) -> Vec<FindingOutput> {
    let mut findings = Vec::new();
    for backend in backends {
        let (name, about) = (&backend.name, format!("backend {}", backend.name));
        if backend.paused {
            let hint = format!("end that with `netstead resume --backend {name}`");
            findings.push(FindingOutput::note(about, "it is paused, and claims in its pools wait", hint));
            continue;
        }
        if let Some(error) = &backend.error {
            let hint = format!(
                "look at its address and credentials in `[backend.{name}]`, and at the server itself"
            );
            findings.push(FindingOutput::problem(about, format!("it does not answer: {error}"), hint));
            continue;
        }
        if backend.uncompared.is_empty() {
            findings.push(FindingOutput::ok(about.clone(), "nothing speaks against it"));
        }
        for UncomparedPoolOutput { pool, reason } in &backend.uncompared {
            let text = format!("pool `{pool}` cannot be compared with it: {reason}");
            let hint = "the credentials must be allowed to describe and to list that pool";
            findings.push(FindingOutput::problem(about.clone(), text, hint));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn backends() -> Vec<BackendOutput> {
        let well =
            BackendOutput { name: "branch".into(), paused: false, error: None, uncompared: Vec::new() };
        let refused = UncomparedPoolOutput { pool: "lan".into(), reason: "the token may not look".into() };
        vec![
            BackendOutput { name: "away".into(), error: Some("no route to host".into()), ..well.clone() },
            BackendOutput { name: "halted".into(), paused: true, ..well.clone() },
            BackendOutput { name: "office".into(), uncompared: vec![refused], ..well.clone() },
            well,
        ]
    }

    #[test]
    fn each_sentence_says_what_to_do() {
        assert_snapshot!(todo(&backends()).join("\n"), @"
        Backend `away` does not answer: no route to host. Claims in its pools wait; `netstead doctor` says more.
        Backend `halted` is paused, and claims in its pools wait. End that with `netstead resume --backend halted`.
        Pool `lan` cannot be compared with backend `office`: the token may not look. Mend that at the backend.
        ");
    }

    #[test]
    fn each_backend_has_a_finding() {
        let shown = findings(&backends());
        let shown: Vec<String> =
            shown.iter().map(|one| format!("{} {}: {}", one.state, one.about, one.text)).collect();
        assert_snapshot!(shown.join("\n"), @"
        problem backend away: it does not answer: no route to host
        note backend halted: it is paused, and claims in its pools wait
        problem backend office: pool `lan` cannot be compared with it: the token may not look
        ok backend branch: nothing speaks against it
        ");
    }
}
