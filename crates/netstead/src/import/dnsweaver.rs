//! What dnsweaver's variables mean here.

mod provider;
mod sources;

use super::{Variables, draft::Draft};

/// Settings of dnsweaver that have no meaning here, and what does their work instead.
const INSTEAD: [(&str, &str); 13] = [
    ("LOG_FILE", "logs go to stderr; let the service manager or Docker keep and rotate them"),
    ("LOG_MAX_SIZE", "see LOG_FILE"),
    ("LOG_MAX_BACKUPS", "see LOG_FILE"),
    ("LOG_MAX_AGE", "see LOG_FILE"),
    ("LOG_COMPRESS", "see LOG_FILE"),
    ("OWNERSHIP_TRACKING", "what is ours is always known, in the store and as TXT marks"),
    ("SHUTDOWN_TIMEOUT", "a stop is bounded by itself"),
    ("HEALTH_PORT", "health is at /healthz and /readyz of the API"),
    ("HEALTH_ADDRESS", "see [api] listen"),
    ("HEALTH_ALLOW_NETWORK", "see [api] listen"),
    ("INSTANCE_ID", "every installation draws an id of its own; `netstead adopt` reads dnsweaver's marks"),
    ("VALIDATE_ONLY", "`netstead config check` does that"),
    ("DOCKER_GID", "the image finds the socket's group by itself"),
];

/// A configuration that means the same, as far as there is one, with a comment for everything else. It is always
/// valid: `netstead config check` accepts it.
pub(crate) fn convert(variables: &Variables) -> String {
    let mut draft = Draft::default();
    draft.remark(
        "Made by `netstead import dnsweaver`. What could not be carried over stands here as a comment.",
    );
    log(&mut draft, variables);
    sources::add(&mut draft, variables);
    let mut instances = variables.list("INSTANCES");
    instances.extend(variables.list("PROVIDERS"));
    if instances.is_empty() {
        draft.space();
        draft.remark("dnsweaver has no instances here (DNSWEAVER_INSTANCES), so there is no DNS server.");
    }
    for instance in instances {
        provider::add(&mut draft, variables, instance);
    }
    // Read by all providers; there may be none.
    for shared in ["DEFAULT_TTL", "DRY_RUN", "CLEANUP_ORPHANS", "ADOPT_EXISTING", "RECONCILE_INTERVAL"] {
        let _ = variables.get(shared);
    }
    remain(&mut draft, variables);
    draft.into_text()
}

fn log(draft: &mut Draft, variables: &Variables) {
    let mut table = super::draft::Table::top("log");
    match variables.get("LOG_LEVEL").map(str::to_ascii_lowercase).as_deref() {
        Some(level @ ("debug" | "info" | "warn" | "error")) => table.text("level", level),
        Some(level) => table.remark(&format!("DNSWEAVER_LOG_LEVEL={level} is not known")),
        None => {}
    }
    let format = variables.get("LOG_FORMAT").unwrap_or("json");
    table.text("format", if format == "text" { "text" } else { "json" });
    draft.table(&table);
}

fn remain(draft: &mut Draft, variables: &Variables) {
    let mut told = Vec::new();
    for (name, instead) in INSTEAD {
        if variables.is_set(name) {
            told.extend(variables.below(name).into_iter().map(|line| format!("{line}: {instead}")));
        }
    }
    let left = variables.left();
    if told.is_empty() && left.is_empty() {
        return;
    }
    draft.space();
    draft.remark("Not carried over:");
    for line in told {
        draft.remark(&format!("  {line}"));
    }
    for line in left {
        draft.remark(&format!("  {line}: it has no meaning here, or dnsweaver did not know it either"));
    }
}
