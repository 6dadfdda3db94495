//! Turns an object into a workload. No I/O.

use std::{collections::BTreeMap, fmt::Write as _};

use netstead_model::{Address, Content, Facts, Interface, Key, RecordData, Wish, Workload};
use sha2::{Digest as _, Sha256};

use super::{
    annotations,
    kinds::{
        Body, ObjectKind,
        asked::{Asked, Points},
        custom,
        definition::Definition,
        dns_endpoint, dns_record, ingress, ingress_route, node, pod, route, service,
    },
    object::{ObjectName, Stored},
    surroundings::Surroundings,
};
use crate::dialects::{
    Reading, RequestedContent, TargetSpec, WorkloadLabels,
    diagnostics::{Diagnostics, excerpt},
};

/// The workload of an object; none if the object asks for nothing and has no address that matters.
pub(super) fn workload(of: &Definition, object: &Stored, around: &Surroundings<'_>) -> Option<Workload> {
    let settings = around.settings;
    let id = id(of, &object.name)?;
    let base = Workload {
        namespace: Some(object.name.namespace.clone()).filter(|namespace| !namespace.is_empty()),
        created: object.created,
        facts: Facts { cluster: settings.cluster_name(), ..Facts::default() }.known(),
        ..Workload::new(around.source.clone(), id, of.word.clone(), object.name.name.clone())
    };
    let silent = |why: String, unclear| Some(Workload { why_not: vec![why], unclear, ..base.clone() });
    if let Body::Unreadable(why) = &object.body {
        return silent(format!("it cannot be read: {}", excerpt(why)), true);
    }
    if !settings.wants_annotations(&object.annotations) {
        return None;
    }
    let asked = ask(of.kind, object, around)?;
    if let Some(why) = &asked.unclear {
        return silent(why.clone(), true);
    }
    if let Some(why) = annotations::refused(object) {
        return silent(why, false);
    }
    let Asked { names, points, interfaces, shared, mut notes, annotated, .. } = asked;
    let labels = annotations::labels(object, annotated, &mut notes);
    let told = WorkloadLabels { name: &object.name.name, labels: &labels, environment: &BTreeMap::new() };
    let mut reading = around.reader.read_with(&told, names, notes);
    if reading.requests.is_empty() && !reading.unclear && !reading.silenced && annotated {
        reading = by_template(of, object, around, &told, reading);
    }
    let (unclear, pool) = (reading.unclear, reading.pool.clone());
    let points = settings.narrowed(points);
    point_at_name(&mut reading, &points);
    let (wishes, why_not) = reading.wishes(|target| match target {
        TargetSpec::Source if points.addresses.is_empty() => {
            Err(points.why.clone().unwrap_or_else(|| "it has none".into()))
        }
        TargetSpec::Source => Ok(points.addresses.clone()),
        other => Err(format!("`{other}` is no place in a cluster: write addresses or a name")),
    });
    let mut notes = Diagnostics::default();
    for why in why_not {
        notes.add(why);
    }
    let mut wishes = allowed(wishes, object, around, &mut notes);
    for wish in &mut wishes {
        wish.borrowed = shared || !has_all(&interfaces, &wish.content);
    }
    mark_main(&mut wishes);
    let why_not = notes.into_sentences();
    let seen = interfaces.iter().any(|interface| !interface.local);
    if wishes.is_empty() && why_not.is_empty() && !seen && !unclear {
        return None;
    }
    Some(Workload { interfaces, wishes, why_not, unclear, pool, labels, ..base })
}

/// The id of an object: its kind, namespace and name. An object that is made anew under its name is the same workload.
pub(super) fn id(of: &Definition, name: &ObjectName) -> Option<Key> {
    let text = format!("{}/{name}", of.word);
    if text.len() <= Key::MAX {
        return text.parse().ok();
    }
    // Names have up to 253 characters, and ids no more: the end is replaced by a digest of the whole.
    let mut short: String = text.chars().take(200).collect();
    short.push('~');
    for byte in Sha256::digest(&text).iter().take(12) {
        let _ = write!(short, "{byte:02x}");
    }
    short.parse().ok()
}

/// The kind in an id.
pub(super) fn kind_of(id: &Key) -> Option<&str> {
    id.as_str().split('/').next()
}

fn ask(kind: ObjectKind, object: &Stored, around: &Surroundings<'_>) -> Option<Asked> {
    let settings = around.settings;
    match &object.body {
        Body::Ingress(ingress) => ingress::ask(object, ingress, settings),
        Body::Service(service) => service::ask(object, service, around),
        Body::Route(route) => Some(route::ask(kind, object, route, around)),
        Body::IngressRoute(route) => ingress_route::ask(object, route, settings),
        Body::DnsEndpoint(endpoint) => Some(dns_endpoint::ask(endpoint)),
        Body::DnsRecord(record) => Some(dns_record::ask(record)),
        Body::Node(node) => Some(node::ask(object, node)),
        Body::Pod(pod) => Some(pod::ask(object, pod, around)),
        Body::Custom(custom) => Some(custom::ask(object, custom)),
        Body::Gateway(_) | Body::EndpointSlice(_) | Body::Unreadable(_) => None,
    }
}

/// The names that the template of the source makes for an object that asks for none itself.
fn by_template(
    of: &Definition,
    object: &Stored,
    around: &Surroundings<'_>,
    told: &WorkloadLabels<'_>,
    before: Reading,
) -> Reading {
    let Some(template) = &around.settings.template else { return before };
    if of.kind.is_record() {
        return before;
    }
    let mut asked = Asked::default();
    before.why_not.into_iter().for_each(|why| asked.notes.add(why));
    for host in template.fill(&of.word, object) {
        asked.ask(&host, "template");
    }
    around.reader.read_with(told, asked.names, asked.notes)
}

/// Names that point wherever the object does become aliases of its load balancer's name, if it has a name and no address.
fn point_at_name(reading: &mut Reading, points: &Points) {
    let Some(name) = points.name.as_ref().filter(|_| points.addresses.is_empty()) else { return };
    for request in &mut reading.requests {
        if let RequestedContent::Points { target: target @ TargetSpec::Source, .. } = &mut request.content {
            *target = TargetSpec::Name(name.clone());
        }
    }
}

/// The wishes that the settings allow: names that the namespace may claim, and addresses in the wanted networks.
fn allowed(
    wishes: Vec<Wish>,
    object: &Stored,
    around: &Surroundings<'_>,
    notes: &mut Diagnostics,
) -> Vec<Wish> {
    let settings = around.settings;
    let mut kept = Vec::new();
    for mut wish in wishes {
        if !settings.claims.allows(&object.name.namespace, &wish.name) {
            notes.add(format!(
                "{}: the namespace `{}` may not claim it (`claims` of the source)",
                wish.name, object.name.namespace
            ));
            continue;
        }
        let had = match &mut wish.content {
            Content::Addresses(addresses) => {
                let had = !addresses.is_empty();
                addresses.retain(|address| settings.wants_address(*address));
                had && addresses.is_empty()
            }
            Content::Records { values, .. } => {
                values.retain(|value| {
                    value.to_address().is_none_or(|ip| settings.wants_address(Address::from(ip)))
                });
                values.is_empty()
            }
        };
        if had {
            notes.add(format!("{}: none of its addresses is in `target_networks`", wish.name));
            continue;
        }
        kept.push(wish);
    }
    kept
}

/// Whether every address here is one of the object's own.
fn has_all(interfaces: &[Interface], content: &Content) -> bool {
    let has = |address: Address| interfaces.iter().any(|one| one.addresses.contains(&address));
    match content {
        Content::Addresses(addresses) => addresses.iter().all(|address| has(*address)),
        Content::Records { values, .. } => {
            values.iter().filter_map(RecordData::to_address).all(|ip| has(ip.into()))
        }
    }
}

/// The first name of the object's own addresses is what they are called.
fn mark_main(wishes: &mut [Wish]) {
    let of_itself = |wish: &&mut Wish| {
        let some = matches!(&wish.content, Content::Addresses(addresses) if !addresses.is_empty());
        some && !wish.borrowed && !wish.name.is_wildcard()
    };
    if let Some(wish) = wishes.iter_mut().find(of_itself) {
        wish.main = true;
    }
}
