//! `[domain."home.example.com"]`: which addresses have names in it, and how those are made.

use std::collections::{BTreeMap, HashMap};

use netstead_model::{Cidr, Name};
use netstead_plan::{DomainRule, Network};

use netstead_settings::{KeyDefault, KeyInfo, Problems, Section, Shape, Table, Value, ValueOrigin};

/// The keys, described by hand: a network is text or a table.
pub(super) fn keys() -> Vec<KeyInfo> {
    vec![
        KeyInfo {
            name: "networks",
            help: "networks, each as `\"10.0.3.0/24\"` or `{ cidr = \"10.0.3.0/24\", shared_name = \"nodes\" }`; the \
                   longest that holds an address decides; a shared name with a dot at its end, `nodes.example.net.`, \
                   is a full one"
                .into(),
            shape: Shape::List(Box::new(Shape::AnyOf(vec![Shape::Text, Shape::Table]))),
            default: KeyDefault::Unset { meaning: "none" },
        },
        KeyInfo {
            name: "template",
            help: "how a name is made; `{name}`, `{domain}`, `{source}`, `{kind}` and `{id}` stand for what they say"
                .into(),
            shape: Shape::Text,
            default: KeyDefault::Value(Value::from("{name}.{domain}")),
        },
        KeyInfo {
            name: "ipv6_inherit",
            help: "an IPv6 address that lies in no network is called like the IPv4 address of the same interface".into(),
            shape: Shape::Flag,
            default: KeyDefault::Value(Value::from(false)),
        },
    ]
}

/// The rule, unless what is written cannot be one.
pub(super) fn read(
    name: &str,
    place: &ValueOrigin,
    table: &Table,
    problems: &mut Problems,
) -> Option<DomainRule> {
    let hint = "write `[domain.\"home.example.com\"]`";
    let domain: Name = problems.name(place, name, Some(hint))?;
    let path = format!("domain.\"{name}\"");
    let known: Vec<_> = keys().iter().map(|key| key.name).collect();
    let mut section = Section::new(&path, Some(table), &known, problems);
    let template = section.parsed("template").unwrap_or_default();
    let ipv6_inherit = section.flag("ipv6_inherit").unwrap_or_default();
    let mut rule = DomainRule { domain, networks: Vec::new(), template, ipv6_inherit };
    rule.networks = networks(&mut section, &rule);
    Some(rule)
}

/// Each is a network, or `{ cidr = "10.0.3.0/24", shared_name = "nodes" }`.
fn networks(section: &mut Section<'_, '_>, rule: &DomainRule) -> Vec<Network> {
    let mut networks = Vec::new();
    for (place, value) in section.values("networks") {
        match &value {
            Value::Text(text) | Value::Plain(text) => match text.parse::<Cidr>() {
                Ok(cidr) => networks.push(Network { cidr, shared_name: None }),
                Err(error) => section.wrong_at(place, "networks", &error.to_string(), None),
            },
            Value::Table(table) => {
                networks.extend(network(section.inner("networks", table, &["cidr", "shared_name"]), rule));
            }
            other => {
                let told = format!("a network is wanted here, and this is {}", other.noun());
                let hint = "write `{ cidr = \"10.0.3.0/24\", shared_name = \"nodes\" }`, or just the network";
                section.wrong_at(place, "networks", &told, Some(hint));
            }
        }
    }
    networks
}

fn network(mut section: Section<'_, '_>, rule: &DomainRule) -> Option<Network> {
    let shared_name = section.text("shared_name").map(str::to_owned);
    if let Some(Err(error)) = shared_name.as_ref().map(|name| rule.shared_name(name)) {
        section.wrong("shared_name", &error.to_string(), None);
    }
    section.needed("cidr", "write `cidr = \"10.0.3.0/24\"`")?;
    Some(Network { cidr: section.parsed("cidr")?, shared_name })
}

/// One network in two domains would leave it to chance which of them an address gets.
pub(super) fn check_together(rules: &[(&ValueOrigin, DomainRule)], problems: &mut Problems) {
    let mut seen: HashMap<Cidr, Vec<(usize, &DomainRule)>> = HashMap::new();
    for (number, (place, rule)) in rules.iter().enumerate() {
        // Each earlier rule that has a network of this one, with the first of them.
        let mut common: BTreeMap<usize, (&DomainRule, Cidr)> = BTreeMap::new();
        for network in &rule.networks {
            for (earlier, other) in seen.get(&network.cidr).into_iter().flatten() {
                common.entry(*earlier).or_insert((other, network.cidr));
            }
        }
        for (other, cidr) in common.values() {
            let message = format!("`{cidr}` is in `{}` and in `{}`", other.domain, rule.domain);
            problems.add(place, message, Some("leave it in one of them".into()));
        }
        for network in &rule.networks {
            seen.entry(network.cidr).or_default().push((number, rule));
        }
    }
}
