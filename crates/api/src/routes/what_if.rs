//! Plans that are only shown (*what-if*): what another configuration would change.

use std::{sync::Arc, time::Duration};

use axum::http::StatusCode;
use netstead_client::types::{WhatIfInput, WhatIfOutput};
use netstead_engine::{Engine, WhatIfPlan};
use netstead_plan::{Case, Now};

use crate::{
    ConfigReader, convert,
    http::{
        answer::Answer,
        body::Json,
        path::ProviderPath,
        query::{NoParams, Query},
        session::{Read, Session, Write},
    },
    openapi::{Changing, Looking},
    problem::Failure,
};

/// Shows everything that a provider's plan is made of now, with the plan: a case for the tests of planning. Labels and tags
/// of workloads are left out.
#[utoipa::path(get, path = "/plans/{provider}/case", tag = "names", operation_id = "get_case",
    params(("provider" = String, Path, description = "The provider")),
    responses((status = 200, description = "The case", body = Value), Looking))]
pub(crate) async fn case(
    session: Session<Read>,
    ProviderPath(provider): ProviderPath,
    Query(NoParams {}): Query<NoParams>,
) -> Result<Answer<Case>, Failure> {
    session.check_unscoped()?;
    let engine = session.engine()?;
    let case = tokio::time::timeout(session.time_left(), engine.case(&provider)).await;
    Ok(Answer::ok(case.map_err(|_| too_late())??))
}

/// Says what another configuration would change, from what is known now. Nothing is written; no secret and no file that
/// it names is read, and no server is asked but those that are configured already. One is answered at a time.
#[utoipa::path(post, path = "/what-if", tag = "names", operation_id = "what_if", request_body = WhatIfInput,
    responses((status = 200, description = "What it would change, or why it would be refused", body = WhatIfOutput),
        Changing))]
pub(crate) async fn what_if(
    session: Session<Write>,
    Query(NoParams {}): Query<NoParams>,
    Json(input): Json<WhatIfInput>,
) -> Result<Answer<WhatIfOutput>, Failure> {
    session.check_unscoped()?;
    let engine = session.engine()?;
    let told = "this server reads no configuration";
    let missing = || Failure::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", told);
    let reader = session.app.reader.clone().ok_or_else(missing)?;
    let turn =
        tokio::time::timeout(session.time_left(), Arc::clone(&session.app.what_if_turn).acquire_owned());
    let turn = turn.await.map_err(|_| busy())?.map_err(Failure::internal)?;
    let now = engine.now();
    // It goes on to its end whatever becomes of the caller, and the next one waits for that: a caller that gives up and
    // asks again has no second one running.
    let work = tokio::spawn(async move {
        let output = plan(reader, engine, input, now).await;
        drop(turn);
        output
    });
    let output = tokio::time::timeout(session.time_left(), work).await.map_err(|_| too_late())?;
    Ok(Answer::ok(output.map_err(Failure::internal)??))
}

/// Reads the file beside all other work, because that may take long, and plans for each of its providers.
async fn plan(
    reader: Arc<dyn ConfigReader>,
    engine: Engine,
    input: WhatIfInput,
    now: Now,
) -> Result<WhatIfOutput, Failure> {
    let WhatIfInput { config, name } = input;
    let read = move || reader.read_config(name.as_deref().unwrap_or("netstead.toml"), &config);
    let understood = match tokio::task::spawn_blocking(read).await.map_err(Failure::internal)? {
        Ok(understood) => understood,
        Err(problems) => return Ok(WhatIfOutput { problems, ..WhatIfOutput::default() }),
    };
    let plans = engine.plan_what_if(understood.imagined).await?;
    let mut notes = understood.notes;
    notes.extend(plans.iter().filter(|plan| !plan.asked).map(unasked));
    let plans = plans.into_iter().map(|one| convert::plan::output(one.plan, None, now, true)).collect();
    Ok(WhatIfOutput { problems: Vec::new(), plans, notes })
}

fn unasked(plan: &WhatIfPlan) -> String {
    format!(
        "The server of `{}` is not in force yet and was not asked: its zones are taken to be there and empty.",
        plan.plan.provider
    )
}

/// Another one has its turn for longer than this one may wait.
fn busy() -> Failure {
    let told = "another configuration is being planned, and one is at a time: ask again in a moment";
    Failure::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", told).retry_after(Duration::from_secs(5))
}

fn too_late() -> Failure {
    let told = "reading the file, or what the servers hold, takes longer than the request may";
    Failure::new(StatusCode::GATEWAY_TIMEOUT, "too-late", told)
}
