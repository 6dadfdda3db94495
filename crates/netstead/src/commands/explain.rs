//! `netstead explain`

use std::fmt::Write as _;

use netstead_client::types::{AddressState, EventOutput, ExplainOutput, ExplainPlace};
use netstead_model::Name;
use netstead_plan::wrap;

use super::Context;
use crate::{
    cli::{
        Format,
        get::{Explain, Subject},
    },
    output::{self, Printer, WIDTH, plain},
};

pub(crate) async fn explain(context: &Context, args: &Explain) -> anyhow::Result<()> {
    match &args.of {
        Subject::Address(address) => of_address(context, &address.0).await,
        Subject::Name(name) => of_name(context, name).await,
    }
}

async fn of_name(context: &Context, name: &Name) -> anyhow::Result<()> {
    let answer = context.client.explain_name(name.as_str()).await?;
    match context.format {
        Some(format @ (Format::Json | Format::Yaml)) => output::document(&answer, format),
        Some(format) => output::list(&answer.records, Some(format), context.now()),
        None => {
            let mut text = format!("{}\n", plain(&answer.name));
            for why in &answer.why {
                let lines = wrap(&plain(why), 4, WIDTH);
                let _ = writeln!(text, "  {}", lines.join("\n").trim_start());
            }
            if !answer.records.is_empty() {
                text.push('\n');
                text += &Printer::new(Format::Table, context.now()).table(&answer.records);
            }
            output::emit(&text)
        }
    }
}

async fn of_address(context: &Context, address: &str) -> anyhow::Result<()> {
    let answer = context.client.explain(address).await?;
    match context.format {
        Some(format @ (Format::Json | Format::Yaml)) => output::document(&answer, format),
        Some(format) => {
            let addresses: Vec<_> = answer.places.into_iter().map(|place| place.address).collect();
            output::list(&addresses, Some(format), context.now())
        }
        None => output::emit(&render_explanation(&answer)),
    }
}

fn render_explanation(answer: &ExplainOutput) -> String {
    let mut text = String::new();
    if answer.places.is_empty() {
        let _ = writeln!(text, "{} is in no pool", plain(&answer.address));
    }
    for place in &answer.places {
        text += &render_place(place);
    }
    for why in &answer.left_out {
        let lines = wrap(&plain(why), 4, WIDTH);
        let _ = writeln!(text, "  {}", lines.join("\n").trim_start());
    }
    text
}

fn render_place(place: &ExplainPlace) -> String {
    let mut text = String::new();
    let address = &place.address;
    let pool = address.pool.as_ref().map(|pool| format!(" in pool {pool}")).unwrap_or_default();
    let vrf = if address.vrf == "default" { String::new() } else { format!(" (VRF {})", address.vrf) };
    // Where there is this and that, the sentences say what.
    let state = if address.state == AddressState::Mixed {
        String::new()
    } else {
        format!(" is {}", plain(address.state.as_str()))
    };
    let _ = writeln!(text, "{}{state}{pool}{vrf}", plain(&address.address));
    for why in &place.why {
        let _ = writeln!(text, "  {}", plain(why));
    }
    if let Some(claim) = &place.claim {
        let reason = plain(&claim.names_reason);
        let _ = match claim.names.as_slice() {
            [] if claim.domain.is_none() => Ok(()),
            [] => writeln!(text, "  it has no name: {reason}"),
            names => writeln!(text, "  its names are {} ({reason})", plain(&names.join(", "))),
        };
    }
    if !place.history.is_empty() {
        text += "  lately:\n";
    }
    for event in &place.history {
        let _ = writeln!(text, "    {}", render_event(event));
    }
    text
}

fn render_event(event: &EventOutput) -> String {
    let key = event.key.as_ref().map(|key| format!(" {key}")).unwrap_or_default();
    let reason = event.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    plain(&format!("{:.0}  {}{key} by {}{reason}", event.at, event.what, event.by))
}
