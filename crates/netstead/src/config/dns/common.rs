//! The keys that all kinds of DNS provider share.

use netstead_model::{Address, Ident, Name, RecordType, Span};
use netstead_plan::{DomainMatch, Limits, Mode, OwnerId, ProviderTarget, Settings};
use netstead_settings::{
    Number, OneOrMore, Parsed, Section, Setting, Settings as _, Shape, choice, macros::Json, macros::Map,
    table,
};
use netstead_sources::dynamic_target::{DynamicTarget, DynamicTargetConfig, LookupSettings};

table! {
    /// Keys that `[dns.NAME]` has for every kind.
    pub(in crate::config) struct CommonKeys {
        /// names it answers for: a domain with all below, a glob whose `*` spans dots, or a `/regex/`
        domains: Option<Vec<Parsed<DomainMatch>>>, unset "all for `builtin`, else needed";
        /// names it never touches; looked at first
        exclude_domains: Vec<Parsed<DomainMatch>>, unset "none";
        /// of the names of a proxy only those whose router is on one of these entry points, as Traefik's labels and files name
        /// them; names that no router has, and routers that name none, always count
        entrypoints: OneOrMore<String>, unset "all";
        /// `managed`; `additive` never deletes; `create-only`; `authoritative` replaces what others have at names that are
        /// asked for; `observe` plans and never writes
        mode: ModeWord, default "managed";
        /// where names point, instead of each workload's own addresses: addresses, or one name; `public`: the address the
        /// world sees; `interface:NAME`: those of an interface of this machine
        target: OneOrMore<String>, unset;
        lookup: LookupSettings, all;
        /// make only `A`, `AAAA` or, with a name as target, `CNAME` of addresses
        record_type: Option<PointerType>, unset "all that fit";
        /// the only record types that are written there, such as `["A", "AAAA"]`
        types: Vec<RecordType>, unset "all it can hold";
        /// whether wildcard names are written there
        wildcard: bool, default true;
        /// whether names that are a zone's own are written there
        apex: bool, default true;
        /// seconds that resolvers may keep a record
        ttl: Number<1, 0x7fff_ffff>, default 300;
        /// how long something may be absent before its names are removed; two complete reports without it are needed, and the
        /// source is looked at again when the time is over
        grace: Span, default "5m";
        /// the same for something that was seen to end
        ended_grace: Span, default "30s";
        /// when changes wait for a person: `{ changes = 10, percent = 30, total = 200, window = "10m" }`
        breaker: Breaker, unset "as shown";
        /// take over equal records that others made
        adopt: bool, default false;
        /// add our values to names that have values of others
        share: bool, default false;
        /// keep PTR records where the server holds the reverse zone
        reverse: bool, default true;
        /// how often the server is looked at without a reason
        interval: Span, default "1m";
        /// how often everything is read though no serial changed
        full_interval: Span, default "1h";
        /// the id in the marks of this provider
        owner: Option<Parsed<OwnerId>>, unset "the one it began with, or was recovered under";
        /// the name it had before, to carry over what is ours there
        was: Option<Ident>, unset;
        /// several servers that shall hold the same, instead of `url`; each has a plan and a loop of its own
        urls: Vec<String>, unset;
    }
}

choice! {
    pub(in crate::config) enum ModeWord {
        Managed = "managed",
        Additive = "additive",
        CreateOnly = "create-only",
        Authoritative = "authoritative",
        Observe = "observe",
    }
}

choice! {
    pub(in crate::config) enum PointerType {
        A = "A",
        Aaaa = "AAAA",
        Cname = "CNAME",
    }
}

/// `breaker`, a table in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::config) struct Breaker(Limits);

impl Breaker {
    pub(in crate::config) fn limits(self) -> Limits {
        self.0
    }
}

impl Setting for Breaker {
    fn shape() -> Shape {
        Shape::Table
    }

    fn read(section: &mut Section<'_, '_>, key: &str) -> Option<Self> {
        let limits = Limits::default();
        let mut section = section.section(key, &["changes", "percent", "total", "window"]);
        Some(Self(Limits {
            changes: section.number("changes", 0..=1_000_000).unwrap_or(limits.changes),
            percent: section.number("percent", 0..=100).unwrap_or(limits.percent),
            total: section.number("total", 0..=1_000_000).unwrap_or(limits.total),
            window: section.parsed("window").unwrap_or(limits.window),
        }))
    }

    fn unset() -> Option<Self> {
        Some(Self(Limits::default()))
    }

    fn shown(&self) -> Json {
        serde_json::to_value(self.0).unwrap_or_default()
    }
}

#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of the file")]
pub(crate) struct Common {
    pub(crate) domains: Vec<DomainMatch>,
    pub(crate) exclude_domains: Vec<DomainMatch>,
    /// Entry points of proxies whose names are written there; empty means all.
    pub(crate) entrypoints: Vec<String>,
    pub(crate) mode: Mode,
    pub(crate) target: Option<ProviderTarget>,
    /// The target is found while the server runs.
    pub(crate) moving: Option<DynamicTargetConfig>,
    pub(crate) record_type: Option<RecordType>,
    /// Types that are written there; empty means all the server can hold.
    pub(crate) types: Vec<RecordType>,
    pub(crate) wildcard: bool,
    pub(crate) apex: bool,
    pub(crate) ttl: u32,
    pub(crate) grace: Span,
    pub(crate) ended_grace: Span,
    pub(crate) breaker: Limits,
    pub(crate) adopt: bool,
    pub(crate) share: bool,
    pub(crate) reverse: bool,
    pub(crate) interval: Span,
    pub(crate) full_interval: Span,
    pub(crate) owner: Option<OwnerId>,
    /// The name it had before.
    pub(crate) was: Option<Ident>,
    /// The table, if it has several servers and this is one of them.
    pub(crate) group: Option<Ident>,
    /// As it is shown to people.
    pub(super) shown: Map<String, Json>,
}

impl Common {
    /// The defaults, for every name there is.
    pub(super) fn everything() -> Option<Self> {
        super::super::read_literally("dns.builtin", |section| read(section, true))
    }

    /// As the plan wants it; `owner` is the installation's, unless the provider has one of its own.
    pub(crate) fn settings(&self, name: &Ident, owner: &OwnerId) -> Settings {
        let owner = self.owner.as_ref().unwrap_or(owner).clone();
        let mut settings = Settings::new(name.clone(), owner, self.domains.clone());
        settings.exclude_domains.clone_from(&self.exclude_domains);
        settings.entrypoints.clone_from(&self.entrypoints);
        settings.mode = self.mode;
        settings.target.clone_from(&self.target);
        settings.kind = self.record_type;
        settings.types.clone_from(&self.types);
        (settings.wildcard, settings.apex) = (self.wildcard, self.apex);
        settings.ttl = self.ttl;
        settings.grace = self.grace;
        settings.ended_grace = self.ended_grace;
        settings.breaker = self.breaker;
        (settings.adopt, settings.share, settings.reverse) = (self.adopt, self.share, self.reverse);
        settings.group.clone_from(&self.group);
        settings
    }
}

/// Reads the shared keys. A provider that may hold `every` name needs no domains.
pub(super) fn read(section: &mut Section<'_, '_>, every: bool) -> Option<Common> {
    let keys = CommonKeys::read(section);
    if section.origin_of("domains").is_none() && !every {
        let hint = "write `domains = [\"home.example.com\"]`: itself and all below";
        section.wrong("domains", "it is missing", Some(hint));
    }
    let keys = keys?;
    if keys.domains.is_some() && section.texts("domains").is_empty() {
        let hint = "write `[\"home.example.com\"]`, or `[\"*\"]` for all";
        section.wrong("domains", "it names none", Some(hint));
    }
    let matches = |list: Vec<Parsed<DomainMatch>>| list.into_iter().map(|one| one.0).collect::<Vec<_>>();
    let mut shown = Map::new();
    keys.shown(&mut shown);
    if keys.urls.is_empty() {
        shown.remove("urls");
    }
    if let Err(error) = keys.lookup.check() {
        section.wrong(error.key, &error.problem, error.hint.as_deref());
    }
    let moving = moving_target(section, &keys);
    let target = if moving.is_none() { fixed_target(section, &keys.target) } else { None };
    let record_type = keys.record_type.map(|word| match word {
        PointerType::A => RecordType::A,
        PointerType::Aaaa => RecordType::Aaaa,
        PointerType::Cname => RecordType::Cname,
    });
    if record_type == Some(RecordType::Cname) && !matches!(target, Some(ProviderTarget::Name(_))) {
        section.wrong("record_type", "a CNAME needs a name to point at", Some("set `target` to a name"));
    }
    if section.origin_of("types").is_some() && section.texts("types").is_empty() {
        section.wrong("types", "it names none", Some("leave it out to write every type"));
    }
    let lacks = |kind: &RecordType| !keys.types.is_empty() && !keys.types.contains(kind);
    if let Some(kind) = record_type.filter(lacks) {
        section.wrong("types", &format!("it lacks {kind}, which is the `record_type`"), None);
    }
    for (key, span) in [("interval", keys.interval), ("full_interval", keys.full_interval)] {
        if span < Span::from_secs(1) {
            section.wrong(key, &format!("`{span}` is too often"), Some("a second is the least"));
        }
    }
    Some(Common {
        domains: match keys.domains {
            Some(domains) => matches(domains),
            None => vec!["*".parse().ok()?],
        },
        exclude_domains: matches(keys.exclude_domains),
        entrypoints: keys.entrypoints.to_vec(),
        mode: match keys.mode {
            ModeWord::Managed => Mode::Managed,
            ModeWord::Additive => Mode::Additive,
            ModeWord::CreateOnly => Mode::CreateOnly,
            ModeWord::Authoritative => Mode::Authoritative,
            ModeWord::Observe => Mode::Observe,
        },
        target,
        moving,
        record_type,
        types: keys.types,
        wildcard: keys.wildcard,
        apex: keys.apex,
        ttl: keys.ttl.get(),
        grace: keys.grace,
        ended_grace: keys.ended_grace,
        breaker: keys.breaker.0,
        adopt: keys.adopt,
        share: keys.share,
        reverse: keys.reverse,
        interval: keys.interval,
        full_interval: keys.full_interval,
        owner: keys.owner.map(|owner| owner.0),
        was: keys.was,
        group: None,
        shown,
    })
}

/// The target that is found while the server runs, if `target` is one.
fn moving_target(section: &mut Section<'_, '_>, keys: &CommonKeys) -> Option<DynamicTargetConfig> {
    let place = match &*keys.target {
        [text] if text == "public" => DynamicTarget::Public,
        [text] => {
            let name = text.strip_prefix("interface:")?;
            if name.is_empty() {
                section.wrong("target", "it names no interface", Some("write `interface:eth0`"));
            }
            DynamicTarget::Interface(name.to_owned())
        }
        _ => return None,
    };
    if !keys.lookup.target_endpoints.is_empty() && place != DynamicTarget::Public {
        section.wrong("target_endpoints", "only `target = \"public\"` asks them", None);
    }
    Some(keys.lookup.of(&place))
}

/// Addresses, or one name.
fn fixed_target(section: &mut Section<'_, '_>, texts: &[String]) -> Option<ProviderTarget> {
    if texts.is_empty() {
        return None;
    }
    let addresses: Vec<Address> = texts.iter().filter_map(|text| text.parse().ok()).collect();
    if addresses.len() == texts.len() && addresses.iter().all(|address| address.to_ip().is_some()) {
        return Some(ProviderTarget::Addresses(addresses));
    }
    let hint =
        Some("write addresses, one name with its domain (`lb.example.com`), `public` or `interface:NAME`");
    match texts {
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
