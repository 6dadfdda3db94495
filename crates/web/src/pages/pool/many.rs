//! Acts on many claims of a pool at once: release and label.

use std::fmt::Write as _;

use askama::Template;
use axum::{extract::Path, response::Response};
use netstead_client::types::{
    BulkEntry, BulkInput, BulkOutput, ClaimInput, ClaimOutput, Problem, TargetInput, TokenRole,
};
use serde_json::json;

use super::{Asked, again};
use crate::{
    calls::{Target, Trouble},
    form::Form,
    pages::history::encoded,
    same::Same,
    shell::{Section, Shell},
    visit::Visit,
};

/// Most claims of one act.
const MOST: usize = 500;

#[derive(Debug, Template)]
#[template(path = "release_many.html")]
struct ReleasePage {
    shell: Shell,
    pool: String,
    href: String,
    claims: Vec<Doomed>,
    same: Same,
}

/// A claim that would end, with the names that end with it.
#[derive(Debug)]
struct Doomed {
    key: String,
    address: String,
    names: Vec<String>,
    /// For the form: the id, so that a later claim of the same key is not released, and the key.
    line: String,
}

pub(super) fn same(visit: &Visit, pool: &str) -> [Same; 2] {
    let release = json!({"entries": [{"release": {"pool": pool, "key": "KEY"}}]});
    let label = json!({"labels": {"site": "ams"}});
    [
        Same::new(visit, "many", &["release", pool, "KEY"], "POST", &Target::of(["bulk"]), Some(&release)),
        Same::new(
            visit,
            "many",
            &["claim", pool, "KEY", "--label", "site=ams"],
            "PUT",
            &Target::of(["pools", pool, "claims", "KEY"]),
            Some(&label),
        ),
    ]
}

pub(crate) async fn act(visit: Visit, Path(pool): Path<String>, form: Form) -> Response {
    if let Some(refused) = visit.refusal(&TokenRole::Claim) {
        return refused;
    }
    let lines = form.all("line");
    if lines.is_empty() || lines.len() > MOST {
        let told = if lines.is_empty() {
            "choose the claims first: tick them in the table".to_owned()
        } else {
            format!("at most {MOST} claims at a time")
        };
        let problem = Problem { status: 422, detail: told, ..Problem::default() };
        return again(&visit, &pool, &Asked::with("", &problem), &problem).await;
    }
    match (form.text("act"), form.is_set("sure")) {
        ("label", _) => label(&visit, &pool, lines, form.text("label")).await,
        (_, true) => release(&visit, &pool, lines).await,
        _ => ask(&visit, &pool, lines).await,
    }
}

/// Shows what would end, and which names with it.
async fn ask(visit: &Visit, pool: &str, keys: &[String]) -> Response {
    let mut claims = Vec::new();
    for key in keys {
        let target = Target::of(["pools", pool, "claims", key]);
        match visit.calls.look::<ClaimOutput>(target).await {
            Ok(claim) => claims.push(Doomed {
                line: format!("{}\t{}", claim.id.unwrap_or_default(), claim.key),
                key: claim.key,
                address: claim.address.unwrap_or_default(),
                names: claim.names,
            }),
            // It has ended meanwhile.
            Err(problem) if problem.status == 404 => {}
            Err(problem) => return visit.trouble(&problem),
        }
    }
    let visit = visit.at(format!("/pools/{}", encoded(pool)));
    visit.page(&ReleasePage {
        shell: visit.shell(Section::Addresses, "Release"),
        href: format!("{}/pools/{}", visit.base(), encoded(pool)),
        same: same(&visit, pool).into_iter().next().unwrap_or_default(),
        pool: pool.to_owned(),
        claims,
    })
}

async fn release(visit: &Visit, pool: &str, lines: &[String]) -> Response {
    let entry = |line: &String| {
        let (id, key) = line.split_once('\t').unwrap_or_default();
        let id = Some(id.to_owned()).filter(|id| !id.is_empty());
        BulkEntry::Release(TargetInput { pool: pool.to_owned(), key: key.to_owned(), id })
    };
    let input = BulkInput { entries: lines.iter().map(entry).collect() };
    let output = match visit.calls.post::<BulkOutput>(Target::of(["bulk"]), &input).await {
        Ok(output) => output,
        Err(problem) => return again(visit, pool, &Asked::with("", &problem), &problem).await,
    };
    match output.at_fault() {
        None => {
            let said = format!("{} are released", claims(lines.len()));
            visit.done(&format!("/pools/{}", encoded(pool)), &said)
        }
        Some((place, problem)) => {
            let key = lines.get(place).and_then(|line| line.split_once('\t')).map_or("", |(_, key)| key);
            let mut problem = problem.clone();
            problem.detail = format!("{key}: {}. Claims of the same commit stay as they are", problem.detail);
            again(visit, pool, &Asked::with("", &problem), &problem).await
        }
    }
}

/// Sets one label of each; the others stay.
async fn label(visit: &Visit, pool: &str, keys: &[String], label: &str) -> Response {
    let mut done = 0;
    let labelled = async {
        let told = "write a label as `site=ams`; `site=` takes it away";
        let wrong = || Box::new(Problem { status: 422, detail: told.to_owned(), ..Problem::default() });
        let (name, value) =
            label.split_once('=').filter(|(name, _)| !name.trim().is_empty()).ok_or_else(wrong)?;
        for key in keys {
            let target = Target::of(["pools", pool, "claims", key]);
            let claim: ClaimOutput = visit.calls.get(target.clone()).await?;
            let mut labels = claim.labels;
            match value.trim() {
                "" => labels.remove(name.trim()),
                value => labels.insert(name.trim().to_owned(), value.to_owned()),
            };
            // Of its owner still: a claim does not change hands by a label.
            let owner = Some(claim.owner).filter(|owner| *owner != visit.session.subject);
            let input = ClaimInput { labels: Some(labels), owner, ..ClaimInput::default() };
            visit.calls.put::<ClaimOutput>(target, &input).await?;
            done += 1;
        }
        Ok::<_, Trouble>(())
    };
    match labelled.await {
        Ok(()) => {
            visit.done(&format!("/pools/{}", encoded(pool)), &format!("{} have {label} now", claims(done)))
        }
        Err(mut problem) => {
            if done > 0 {
                let _ = write!(problem.detail, "; {} were labelled before", claims(done));
            }
            again(visit, pool, &Asked::with("", &problem), &problem).await
        }
    }
}

fn claims(count: usize) -> String {
    if count == 1 { "1 claim".to_owned() } else { format!("{count} claims") }
}
