//! Plans that nobody carries out.

use axum::http::StatusCode;
use netstead_client::types::{WhatIfInput, WhatIfOutput};
use netstead_engine::WhatIfPlan;
use netstead_plan::Case;

use crate::{
    convert,
    http::{
        answer::Answer,
        body::Json,
        path::ProviderPath,
        query::{NoParams, Query},
        session::{Read, Session},
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
/// it names is read, and no server is asked but those that are configured already.
#[utoipa::path(post, path = "/what-if", tag = "names", operation_id = "what_if", request_body = WhatIfInput,
    responses((status = 200, description = "What it would change, or why it would be refused", body = WhatIfOutput),
        Changing))]
pub(crate) async fn what_if(
    session: Session<Read>,
    Query(NoParams {}): Query<NoParams>,
    Json(input): Json<WhatIfInput>,
) -> Result<Answer<WhatIfOutput>, Failure> {
    session.check_unscoped()?;
    let engine = session.engine()?;
    let reader = session.app.reader.as_ref();
    let told = "this server reads no configuration";
    let reader = reader.ok_or_else(|| Failure::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", told))?;
    let understood = match reader.read_config(input.name.as_deref().unwrap_or("netstead.toml"), &input.config)
    {
        Ok(understood) => understood,
        Err(problems) => return Ok(Answer::ok(WhatIfOutput { problems, ..WhatIfOutput::default() })),
    };
    let imagining = engine.plan_what_if(understood.imagined);
    let plans = tokio::time::timeout(session.time_left(), imagining).await.map_err(|_| too_late())??;
    let mut notes = understood.notes;
    notes.extend(plans.iter().filter(|plan| !plan.asked).map(unasked));
    let now = engine.now();
    let plans = plans.iter().map(|one| convert::plan::output(&one.plan, None, now)).collect();
    Ok(Answer::ok(WhatIfOutput { problems: Vec::new(), plans, notes }))
}

fn unasked(plan: &WhatIfPlan) -> String {
    format!(
        "The server of `{}` is not in force yet and was not asked: its zones are taken to be there and empty.",
        plan.plan.provider
    )
}

fn too_late() -> Failure {
    let told = "the servers take longer to say what they hold than the request may";
    Failure::new(StatusCode::GATEWAY_TIMEOUT, "too-late", told)
}
