//! external-dns' arguments as a configuration.

mod flags;
mod manifest;
mod provider;
mod source;

pub(crate) use self::flags::Flags;
use super::{
    Converted,
    draft::{Draft, Table, quoted},
};

/// The most words of a file.
const MOST_WORDS: usize = 10_000;

/// Flags that have no meaning here, and what does their work instead.
const INSTEAD: [(&str, &str); 20] = [
    ("always-publish-not-ready-addresses", "the Service says so itself: `publishNotReadyAddresses`"),
    ("batch-change-interval", "changes are paced by themselves"),
    ("batch-change-size", "changes are split by themselves"),
    ("events", "changes are always followed"),
    ("events-emit", "what becomes of names is said on the objects by itself"),
    ("exclude-unschedulable", "nodes that take no new Pods keep their names"),
    ("expose-internal-ipv6", "a node's internal addresses are published where it has no external ones"),
    ("listen-endpoint-events", "EndpointSlices are always followed"),
    (
        "metrics-address",
        "`[api]` answers /healthz, /readyz and /metrics; `probes` sets another address for /metrics",
    ),
    ("min-event-sync-interval", "changes are collected by themselves"),
    ("once", "`netstead plan` shows what would change, and `netstead apply` does it now"),
    ("provider-cache-time", "a zone is read again when its serial has changed"),
    ("request-timeout", "every call has a time limit"),
    ("traefik-disable-legacy", "only the group traefik.io is read"),
    ("traefik-disable-new", "only the group traefik.io is read"),
    ("traefik-enable-legacy", "only the group traefik.io is read"),
    ("txt-cache-interval", "what is ours is known from the store"),
    ("txt-new-format-only", "marks of both forms are read"),
    ("webhook-provider-read-timeout", "`timeout` of the table is 30s unless set"),
    ("webhook-provider-write-timeout", "`timeout` of the table is 30s unless set"),
];

/// Every kind of ours that the flags can become, with its section.
#[cfg(test)]
pub(crate) fn kinds() -> Vec<(&'static str, &'static str)> {
    let providers = provider::KINDS.iter().map(|(_, kind, _)| ("dns", *kind));
    providers.chain([("source", source::KIND)]).collect()
}

/// A configuration that means the same, as far as there is one, with a comment for everything else. It is always valid.
pub(crate) fn convert(flags: &Flags) -> Converted {
    let mut draft = Draft::default();
    draft.remark(
        "Made by `netstead import external-dns`. What could not be carried over is here as a comment.",
    );
    if flags.is_on("webhook-server") {
        draft.warn("--webhook-server", "a webhook server has no source; its provider is carried over", None);
    }
    log(&mut draft, flags);
    source::add(&mut draft, flags);
    provider::add(&mut draft, flags);
    adoption(&mut draft, flags);
    remain(&mut draft, flags);
    draft.finish()
}

fn log(draft: &mut Draft, flags: &Flags) {
    let mut table = Table::top("log", "--log-level, --log-format");
    let level = match flags.text("log-level").unwrap_or("info") {
        "panic" | "fatal" | "error" => "error",
        "warning" | "warn" => "warn",
        level @ ("debug" | "trace") => level,
        _ => "info",
    };
    table.text("level", level);
    table.text("format", if flags.text("log-format") == Some("json") { "json" } else { "text" });
    draft.table(table);
}

/// How the records that external-dns made become ours.
fn adoption(draft: &mut Draft, flags: &Flags) {
    let registry = flags.text("registry").unwrap_or("txt");
    let owner = flags.text("txt-owner-id").unwrap_or("default");
    let mut words = vec![format!("netstead adopt --from external-dns --id {}", shell(owner))];
    for (flag, option) in [
        ("txt-prefix", "--txt-prefix"),
        ("txt-suffix", "--txt-suffix"),
        ("txt-wildcard-replacement", "--txt-wildcard"),
    ] {
        words.extend(flags.text(flag).map(|value| format!("{option}={}", shell(value))));
    }
    let key = flags.secret("txt-encrypt-aes-key");
    if flags.is_on("txt-encrypt-enabled") || key.is_some() {
        words.push("--txt-key-file FILE".to_owned());
    }
    let migrated = flags.text("migrate-from-txt-owner");
    draft.space();
    if registry != "txt" {
        let remark =
            format!("the registry `{registry}` is not read: equal records are taken over by `adopt = true`");
        draft.warn("--registry", &remark, None);
        return;
    }
    draft.remark("The records that external-dns made become Netstead's, and its marks are removed, with this. Stop external-dns");
    draft.remark("before; --dry-run shows what would be taken over.");
    draft.remark(&format!("  {}", words.join(" ")));
    if key.is_some() {
        draft.remark("FILE has the text of --txt-encrypt-aes-key.");
    }
    if let Some(other) = migrated {
        draft.remark(&format!(
            "Marks with the owner `{other}`, which were not migrated yet, need the same with --id {}.",
            shell(other)
        ));
    }
}

/// A word as a shell takes it.
fn shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn remain(draft: &mut Draft, flags: &Flags) {
    let unread = flags.unread();
    if !unread.is_empty() {
        draft.space();
        draft.remark("Left out, because the value is only known in the cluster; write it where it belongs:");
    }
    for (name, line) in unread {
        draft.remark(&format!("  {line}"));
        let why = "it is not carried over: its value comes from a variable that is only known in the cluster; write it where it belongs";
        draft.warn_silently(&format!("--{name}"), why);
    }
    let left = flags.left();
    if left.is_empty() {
        return;
    }
    let provider = flags.text("provider").unwrap_or_default().to_owned();
    draft.space();
    draft.remark("Not carried over:");
    for (name, line) in left {
        let instead =
            INSTEAD.iter().find(|(flag, _)| *flag == name).map(|(_, instead)| (*instead).to_owned());
        let of_other = flags::PROVIDERS.iter().find(|(prefix, _)| name.starts_with(prefix));
        let why = match (instead, of_other) {
            (Some(instead), _) => instead,
            (None, Some((_, owner))) if !owner.split(' ').any(|owner| owner == provider) => {
                format!("it belongs to another provider than `{provider}`")
            }
            _ => "it has no equal here".to_owned(),
        };
        draft.remark(&format!("  {line}: {why}"));
        draft.warn_silently(&format!("--{name}"), &format!("it is not carried over: {why}"));
    }
}

/// Whether a table stays valid with this line; otherwise it says why the flag is left out.
fn add_if_valid(table: &mut Table, flag: &str, key: &str, value: &str) {
    match table.problem_with(key, value) {
        None => table.raw(key, value),
        Some(problem) => table.warn(&format!("--{flag} is not carried over: {problem}")),
    }
}

/// A list as TOML has it.
fn list(values: &[impl AsRef<str>]) -> String {
    let values: Vec<String> = values.iter().map(|value| quoted(value.as_ref())).collect();
    format!("[{}]", values.join(", "))
}
