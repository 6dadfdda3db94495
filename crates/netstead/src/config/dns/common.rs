//! The keys that all types of provider share.

use netstead_model::{Address, Ident, Name, RecordType, Span};
use netstead_plan::{DomainMatch, Limits, Mode, OwnerId, ProviderTarget, Settings};
use serde::Serialize;

use super::{
    super::dynamic_target::{self, DynamicTargetConfig},
    Section,
};

pub(super) const KEYS: &[&str] = &[
    "type",
    "domains",
    "exclude_domains",
    "mode",
    "target",
    "target_endpoints",
    "target_interval",
    "record_type",
    "types",
    "wildcard",
    "apex",
    "ttl",
    "grace",
    "ended_grace",
    "breaker",
    "adopt",
    "share",
    "reverse",
    "interval",
    "full_interval",
    "owner",
    "was",
];

/// The longest time to live there is (RFC 2181, section 8).
const LONGEST_TTL: i64 = 0x7fff_ffff;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Common {
    pub(crate) domains: Vec<DomainMatch>,
    pub(crate) exclude_domains: Vec<DomainMatch>,
    pub(crate) mode: Mode,
    pub(crate) target: Option<ProviderTarget>,
    /// The target is found while the server runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) moving: Option<DynamicTargetConfig>,
    pub(crate) record_type: Option<RecordType>,
    /// Types that are written there; empty means all the server can hold.
    pub(crate) types: Vec<RecordType>,
    pub(crate) wildcard: bool,
    pub(crate) apex: bool,
    pub(crate) ttl: Option<u32>,
    pub(crate) grace: Option<Span>,
    pub(crate) ended_grace: Option<Span>,
    pub(crate) breaker: Limits,
    pub(crate) adopt: bool,
    pub(crate) share: bool,
    pub(crate) reverse: bool,
    pub(crate) interval: Span,
    pub(crate) full_interval: Span,
    pub(crate) owner: Option<OwnerId>,
    /// What it was called before.
    pub(crate) was: Option<Ident>,
}

impl Common {
    /// The defaults, for every name there is.
    pub(super) fn everything() -> Option<Self> {
        Some(Self {
            domains: vec!["*".parse().ok()?],
            exclude_domains: Vec::new(),
            mode: Mode::default(),
            target: None,
            moving: None,
            record_type: None,
            types: Vec::new(),
            wildcard: true,
            apex: true,
            ttl: None,
            grace: None,
            ended_grace: None,
            breaker: Limits::default(),
            adopt: false,
            share: false,
            reverse: true,
            interval: Span::from_secs(60),
            full_interval: Span::from_secs(3600),
            owner: None,
            was: None,
        })
    }

    /// As the plan wants it; `owner` is the installation's, unless the provider has one of its own.
    pub(crate) fn settings(&self, name: &Ident, owner: &OwnerId) -> Settings {
        let owner = self.owner.as_ref().unwrap_or(owner).clone();
        let mut settings = Settings::new(name.clone(), owner, self.domains.clone());
        settings.exclude_domains.clone_from(&self.exclude_domains);
        settings.mode = self.mode;
        settings.target.clone_from(&self.target);
        settings.kind = self.record_type;
        settings.types.clone_from(&self.types);
        (settings.wildcard, settings.apex) = (self.wildcard, self.apex);
        settings.ttl = self.ttl.unwrap_or(settings.ttl);
        settings.grace = self.grace.unwrap_or(settings.grace);
        settings.ended_grace = self.ended_grace.unwrap_or(settings.ended_grace);
        settings.breaker = self.breaker;
        (settings.adopt, settings.share, settings.reverse) = (self.adopt, self.share, self.reverse);
        settings
    }
}

/// A provider that may hold `every` name needs no domains.
pub(super) fn read(section: &mut Section<'_, '_>, every: bool) -> Option<Common> {
    let mut common = Common::everything()?;
    if section.origin_of("domains").is_some() {
        common.domains = section.list("domains");
        if section.texts("domains").is_empty() {
            section.wrong(
                "domains",
                "it names none",
                Some("write `[\"home.example.com\"]`, or `[\"*\"]` for all"),
            );
        }
    } else if !every {
        section.wrong(
            "domains",
            "it is missing",
            Some("write `domains = [\"home.example.com\"]`: itself and all below"),
        );
    }
    common.exclude_domains = section.list("exclude_domains");
    common.mode = mode(section);
    common.moving = dynamic_target::read(section);
    if common.moving.is_none() {
        common.target = target(section);
    }
    common.record_type = match section.choice("record_type", &["A", "AAAA", "CNAME"]) {
        Some("A") => Some(RecordType::A),
        Some("AAAA") => Some(RecordType::Aaaa),
        Some(_) => Some(RecordType::Cname),
        None => None,
    };
    let cname = common.record_type == Some(RecordType::Cname);
    if cname && !matches!(common.target, Some(ProviderTarget::Name(_))) {
        section.wrong("record_type", "a CNAME needs a name to point at", Some("set `target` to a name"));
    }
    common.types = types(section, common.record_type);
    common.wildcard = section.flag("wildcard").unwrap_or(common.wildcard);
    common.apex = section.flag("apex").unwrap_or(common.apex);
    common.ttl = section.number("ttl", 1..=LONGEST_TTL);
    common.grace = section.parsed("grace");
    common.ended_grace = section.parsed("ended_grace");
    common.breaker = breaker(section);
    common.adopt = section.flag("adopt").unwrap_or(common.adopt);
    common.share = section.flag("share").unwrap_or(common.share);
    common.reverse = section.flag("reverse").unwrap_or(common.reverse);
    common.interval = often(section, "interval", common.interval);
    common.full_interval = often(section, "full_interval", common.full_interval);
    common.owner = section.parsed("owner");
    common.was = section.parsed("was");
    Some(common)
}

/// The types that are written, of which what addresses become must be one.
fn types(section: &mut Section<'_, '_>, record_type: Option<RecordType>) -> Vec<RecordType> {
    let types: Vec<RecordType> = section.list("types");
    if section.origin_of("types").is_some() && section.texts("types").is_empty() {
        section.wrong("types", "it names none", Some("leave it out to write every type"));
    }
    if let Some(kind) = record_type.filter(|kind| !types.is_empty() && !types.contains(kind)) {
        section.wrong("types", &format!("it lacks {kind}, which is the `record_type`"), None);
    }
    types
}

fn mode(section: &mut Section<'_, '_>) -> Mode {
    match section.choice("mode", &["managed", "additive", "create-only", "authoritative", "observe"]) {
        Some("additive") => Mode::Additive,
        Some("create-only") => Mode::CreateOnly,
        Some("authoritative") => Mode::Authoritative,
        Some("observe") => Mode::Observe,
        _ => Mode::Managed,
    }
}

/// Addresses, or one name.
fn target(section: &mut Section<'_, '_>) -> Option<ProviderTarget> {
    let texts = section.one_or_more("target");
    if texts.is_empty() {
        return None;
    }
    let addresses: Vec<Address> = texts.iter().filter_map(|text| text.parse().ok()).collect();
    if addresses.len() == texts.len() && addresses.iter().all(|address| address.to_ip().is_some()) {
        return Some(ProviderTarget::Addresses(addresses));
    }
    let hint =
        Some("write addresses, one name with its domain (`lb.example.com`), `public` or `interface:NAME`");
    match texts.as_slice() {
        // A bare word is more likely a mistake than a name at the root.
        [text] if addresses.is_empty() && text.trim_end_matches('.').contains('.') => {
            match text.parse::<Name>() {
                Ok(name) => return Some(ProviderTarget::Name(name)),
                Err(error) => section.wrong("target", &error.to_string(), hint),
            }
        }
        _ => section.wrong("target", &format!("`{}` is no target", texts.join("`, `")), hint),
    }
    None
}

fn breaker(section: &mut Section<'_, '_>) -> Limits {
    let limits = Limits::default();
    let mut section = section.section("breaker", &["changes", "percent", "total", "window"]);
    Limits {
        changes: section.number("changes", 0..=1_000_000).unwrap_or(limits.changes),
        percent: section.number("percent", 0..=100).unwrap_or(limits.percent),
        total: section.number("total", 0..=1_000_000).unwrap_or(limits.total),
        window: section.parsed("window").unwrap_or(limits.window),
    }
}

fn often(section: &mut Section<'_, '_>, key: &str, default: Span) -> Span {
    let span: Span = section.parsed(key).unwrap_or(default);
    if span < Span::from_secs(1) {
        section.wrong(key, &format!("`{span}` is too often"), Some("a second is the least"));
    }
    span
}
