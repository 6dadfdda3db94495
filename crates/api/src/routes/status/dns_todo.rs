//! The part of the status that lists what a person must do about names.

use netstead_client::types::{PauseOutput, ProviderOutput, SourceOutput, SourceView};

/// One sentence per thing, with the command that helps.
pub(super) fn todo(sources: &[SourceOutput], providers: &[ProviderOutput]) -> Vec<String> {
    sources.iter().filter_map(of_source).chain(providers.iter().flat_map(of_provider)).collect()
}

/// Changes of names that happen by themselves later, one sentence each.
pub(super) fn waiting(sources: &[SourceOutput]) -> Vec<String> {
    let of_source =
        |source: &SourceOutput| Some(format!("Source `{}`: {}.", source.name, source.waiting.as_ref()?));
    sources.iter().filter_map(of_source).collect()
}

fn of_source(source: &SourceOutput) -> Option<String> {
    let name = &source.name;
    if let Some(suspect) = &source.suspect {
        return Some(format!(
            "Source `{name}` is suspect: {suspect}. `netstead get workloads --source {name}` shows what it brought."
        ));
    }
    let reason = source.reason.as_deref().filter(|_| !source.detached)?;
    let what = if source.view == SourceView::Failed { "sees nothing" } else { "does not see everything" };
    let retained = if source.scopes.is_empty() {
        "Until then none of its names is removed."
    } else {
        "Until then no name of what it cannot see is removed; `netstead get sources` lists its scopes."
    };
    let what = if source.scopes.is_empty() { what } else { "does not see everything" };
    Some(format!("Source `{name}` {what}: {reason}. {retained}"))
}

fn of_provider(provider: &ProviderOutput) -> Vec<String> {
    let name = &provider.name;
    let mut todo = Vec::new();
    if provider.detached && provider.owned > 0 {
        let values = many(provider.owned, if provider.ipam { "object" } else { "value" });
        todo.push(format!("Provider `{name}` is no longer configured, and {values} of ours stay there. Configure it again, or forget them with `netstead clean --provider {name} --forget`."));
    }
    for pause in &provider.paused {
        todo.push(paused(name, pause));
    }
    if let Some(error) = &provider.error {
        todo.push(format!("Provider `{name}` fails: {error}. It is tried again; `netstead apply --provider {name}` tries now."));
    }
    if let Some(parked) = &provider.parked {
        let changes = many(parked.changes, "change");
        let them = if parked.changes == 1 { "it" } else { "them" };
        todo.push(format!("A guard holds back {changes} on `{name}`. `netstead plan {name}` shows {them}, `netstead apply {}` does {them}.", parked.hash));
    }
    if provider.blocked > 0 {
        let names = many(provider.blocked, if provider.ipam { "object" } else { "name" });
        let are = if provider.blocked == 1 { "is" } else { "are" };
        todo.push(format!(
            "{names} {are} blocked on `{name}`. `netstead plan {name}` shows why, and the ways out."
        ));
    }
    if let Some(first) = provider.rejections.first() {
        let (names, at, reason) =
            (many(provider.rejected, "name"), &first.name, first.reason.trim_end_matches('.'));
        todo.push(format!(
            "`{name}` rejects {names}: {at}: {reason}. It is tried again; `netstead explain {at}` says why it is wanted."
        ));
    }
    if let Some(first) = provider.rejected_objects.first() {
        let (objects, reason) = (many(provider.rejected, "object"), first.reason.trim_end_matches('.'));
        todo.push(format!("`{name}` rejects {objects}: {}: {reason}. It is tried again.", first.object));
    }
    todo
}

fn paused(name: &str, pause: &PauseOutput) -> String {
    let zone = pause.zone.as_ref();
    let what = zone.map_or(format!("Provider `{name}`"), |zone| format!("Zone `{zone}` of `{name}`"));
    let by = pause.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    let reason = pause.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let until = pause.until.map(|until| format!(" It ends by itself at {until:.0}.")).unwrap_or_default();
    let provider = pause.provider.as_ref().map(|one| format!(" --provider {one}")).unwrap_or_default();
    let zone = zone.map(|zone| format!(" --zone {zone}")).unwrap_or_default();
    format!(
        "{what} is paused{by}{reason}. Nothing is written there until `netstead resume{provider}{zone}`.{until}"
    )
}

fn many(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use netstead_client::types::{ParkedOutput, RejectionOutput};

    use super::*;

    #[test]
    fn each_sentence_names_the_command_that_helps() {
        let source = |name: &str, view: &str, reason: Option<&str>, suspect: Option<&str>| SourceOutput {
            name: name.into(),
            kind: "hosts".into(),
            view: view.into(),
            reason: reason.map(str::to_owned),
            begun: None,
            workloads: 3,
            suspect: suspect.map(str::to_owned),
            waiting: None,
            detached: false,
            scopes: Vec::new(),
        };
        let provider = ProviderOutput {
            name: "lan".into(),
            group: None,
            kind: "powerdns".into(),
            server: "http://ns1:8081".into(),
            mode: "managed".into(),
            zones: Vec::new(),
            owned: 4,
            generation: 7,
            pass: None,
            in_sync: false,
            pending: 0,
            parked: Some(ParkedOutput { changes: 12, hash: "3f9a0c51d2e84b76".into(), since: None }),
            blocked: 1,
            rejected: 2,
            rejections: vec![RejectionOutput {
                zone: "home.test".into(),
                name: "mail.home.test".into(),
                reason: "non-hostname content".into(),
            }],
            rejected_objects: Vec::new(),
            drift: 0,
            paused: Vec::new(),
            error: Some("http://ns1:8081 cannot be reached: timed out".into()),
            budget: None,
            detached: false,
            ipam: false,
        };
        let gone = ProviderOutput {
            detached: true,
            parked: None,
            blocked: 0,
            rejections: Vec::new(),
            rejected_objects: Vec::new(),
            error: None,
            ..provider.clone()
        };
        let sources = [
            source("files", "failed", Some("no such file"), None),
            source("vms", "complete", None, Some("5 of 9 vanished at once")),
            source("fine", "complete", None, None),
        ];
        assert_snapshot!(todo(&sources, &[provider, gone]).join("\n"), @"
        Source `files` sees nothing: no such file. Until then none of its names is removed.
        Source `vms` is suspect: 5 of 9 vanished at once. `netstead get workloads --source vms` shows what it brought.
        Provider `lan` fails: http://ns1:8081 cannot be reached: timed out. It is tried again; `netstead apply --provider lan` tries now.
        A guard holds back 12 changes on `lan`. `netstead plan lan` shows them, `netstead apply 3f9a0c51d2e84b76` does them.
        1 name is blocked on `lan`. `netstead plan lan` shows why, and the ways out.
        `lan` rejects 2 names: mail.home.test: non-hostname content. It is tried again; `netstead explain mail.home.test` says why it is wanted.
        Provider `lan` is no longer configured, and 4 values of ours stay there. Configure it again, or forget them with `netstead clean --provider lan --forget`.
        ");
    }
}
