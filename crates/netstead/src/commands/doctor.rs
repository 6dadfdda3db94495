//! `netstead doctor`

use std::fmt::Write as _;

use netstead_client::types::{DoctorOutput, FindingOutput, FindingState};

use super::{Context, many, say};
use crate::{
    cli::Format,
    failure::Exit,
    output::{self, plain, style},
};

pub(crate) async fn doctor(context: &Context) -> anyhow::Result<Exit> {
    show_findings(context, &context.client.doctor().await?)
}

/// Prints findings, and says by the exit code whether one of them is a problem.
pub(super) fn show_findings(context: &Context, found: &DoctorOutput) -> anyhow::Result<Exit> {
    match context.format {
        Some(format @ (Format::Json | Format::Yaml)) => output::document(found, format)?,
        _ => style::emit(&render_findings(&found.findings))?,
    }
    let problems = found.findings.iter().filter(|finding| finding.state == FindingState::Problem).count();
    match problems {
        0 => say!("nothing is wrong"),
        count => say!("{}", many(count, "problem")),
    }
    Ok(if problems == 0 { Exit::Fine } else { Exit::Error })
}

/// Problems come last, where eyes are.
fn render_findings(findings: &[FindingOutput]) -> String {
    let wide = findings.iter().map(|finding| finding.about.chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    let mut sorted: Vec<&FindingOutput> = findings.iter().collect();
    sorted.sort_by_key(|finding| &finding.state);
    for finding in sorted {
        let (state, about) = (plain(finding.state.as_str()), plain(&finding.about));
        let line = format!("{state:<8} {about:<wide$}  {}", plain(&finding.text));
        let indent = wide + 11;
        let _ = writeln!(text, "{}", style::finding(&state, &style::fitted(&line, indent)));
        if let Some(hint) = &finding.hint {
            let line = format!("{:<indent$}{}", "", plain(hint));
            let _ = writeln!(text, "{}", style::fitted(&line, indent));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_problem_says_what_to_do_below_itself() {
        let findings = [
            FindingOutput::problem("dns.lan", "ns1 refuses these credentials", "correct the key"),
            FindingOutput::ok("store", "it takes changes"),
        ];
        let shown = anstream::adapter::strip_str(&render_findings(&findings)).to_string();
        insta::assert_snapshot!(shown, @r"
        ok       store    it takes changes
        problem  dns.lan  ns1 refuses these credentials
                          correct the key
        ");
    }
}
