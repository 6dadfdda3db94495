//! Takes back additions at names where foreign values are in the way.

use netstead_model::{RecordData, RecordSet, RecordType};

use super::{NameContext, NameDiff, Removal};
use crate::{
    Blocked, Cause, DesiredSet, DesiredValue, Drift, DriftKind, Mode,
    diff::{Input, Notes, ZoneIndex},
};

/// Takes back additions that would join foreign values without permission, or that cannot be there at all.
#[expect(clippy::too_many_arguments, reason = "it is one step of the comparison")]
pub(super) fn block_foreign<'a>(
    input: &Input<'a>,
    place: &NameContext<'a>,
    name: &mut NameDiff<'a>,
    sets: &'a [DesiredSet],
    found: &[&'a RecordSet],
    equal: &[&'a DesiredValue],
    zones: &ZoneIndex<'a>,
    notes: &mut Notes,
) {
    let apex = place.name == place.zone;
    let ours = |data: &RecordData| {
        name.ours.iter().any(|own| own.data == *data) || name.adopted.iter().any(|value| value.data == *data)
    };
    let values = found.iter().filter(|set| !(apex && set.kind == RecordType::Ns)).flat_map(|set| &set.values);
    let mut others: Vec<&'a RecordData> = values.filter(|data| !ours(data)).collect();
    let joined = found.iter().flat_map(|set| &set.values).any(ours);
    for set in &mut name.sets {
        let shared = set.before.is_some_and(|before| before.values.iter().any(|data| others.contains(&data)));
        if let Some(before) = set.before.filter(|_| shared) {
            // A set that also has foreign values keeps its TTL.
            set.keep_as(before);
        }
    }
    let wanted = sets.iter().any(|set| set.values.iter().any(|value| value.waiting.is_none()));
    if input.settings.mode == Mode::Authoritative && wanted {
        replace(name, found, &mut others);
    }
    let shares = !sets.is_empty() && sets.iter().all(|set| set.share);
    if joined && !shares {
        for data in &others {
            let (name, value) = (place.name.clone(), (*data).clone());
            notes.drift.push(Drift { name, value, kind: DriftKind::Foreign });
        }
    }
    let adds: Vec<RecordData> =
        name.sets.iter().flat_map(|set| &set.adds).map(|value| value.data.clone()).collect();
    let alias = |data: &RecordData| data.kind() == RecordType::Cname;
    let aliased = adds.iter().any(alias) || others.iter().any(|data| alias(data));
    let owner = zones.others.get(place.name.as_str()).copied();
    let mut blocked = |wanted: Vec<RecordData>, why: String, adopt: bool, share: bool| {
        let found = others.iter().map(|data| (*data).clone()).collect();
        let owner = owner.filter(|_| adopt).map(str::to_owned);
        // What belongs to a living installation is not adopted; that of a lost one is recovered.
        let adopt = adopt && owner.is_none();
        let blocked = Blocked::new(place.name.clone(), wanted, why);
        notes.blocked.push(Blocked { found, owner, adopt, share, ..blocked });
    };
    let stands = || match owner {
        Some(owner) => format!("it belongs to the Netstead installation `{owner}`"),
        None => "a record of another owner is there".into(),
    };
    if !equal.is_empty() && !shares && !others.is_empty() {
        let values = equal.iter().map(|value| value.data.clone()).collect();
        blocked(values, stands(), true, true);
    }
    if adds.is_empty() {
        return;
    }
    if place.below_cut {
        blocked(adds, "another server answers for it".into(), false, false);
    } else if apex && adds.iter().any(alias) {
        blocked(adds, "a CNAME cannot stand at the top of a zone".into(), false, false);
    } else if !others.is_empty() && (aliased || !(joined || shares)) {
        if equal.is_empty() || shares {
            blocked(adds, stands(), true, !aliased);
        }
    } else {
        return;
    }
    name.sets.iter_mut().for_each(|set| set.adds.clear());
}

/// A claim joins nothing that is kept for another workload.
pub(super) fn block_claims_beside_kept(name: &mut NameDiff<'_>, notes: &mut Notes) {
    let Some((found, why)) = name.kept_for.clone() else { return };
    let claims = |set: &super::SetDiff<'_>| set.adds.iter().any(|value| value.claim);
    if !name.sets.iter().any(claims) {
        return;
    }
    let mut wanted = Vec::new();
    for set in &mut name.sets {
        let (claims, rest): (Vec<_>, Vec<_>) = set.adds.iter().copied().partition(|value| value.claim);
        wanted.extend(claims.iter().map(|value| value.data.clone()));
        set.adds = rest;
    }
    let why = format!("what another workload has there is kept: {why}");
    let blocked = Blocked::new(name.name.clone(), wanted, why);
    notes.blocked.push(Blocked { found: vec![found], share: true, ..blocked });
}

/// In the mode `authoritative`, foreign addresses and aliases are replaced by what workloads ask for.
fn replace<'a>(name: &mut NameDiff<'a>, found: &[&'a RecordSet], others: &mut Vec<&'a RecordData>) {
    use RecordType::{A, Aaaa, Cname};
    let wanted: Vec<RecordType> = name.sets.iter().map(|set| set.kind).collect();
    let alias = wanted.contains(&Cname);
    others.retain(|data| {
        let kind = data.kind();
        if !matches!(kind, A | Aaaa | Cname) || !(wanted.contains(&kind) || alias || kind == Cname) {
            return true;
        }
        let before = found.iter().copied().find(|set| set.kind == kind);
        if !name.sets.iter().any(|set| set.kind == kind) {
            let ttl = before.map_or(0, |before| before.ttl);
            let proxied = before.and_then(|before| before.proxied);
            let (adds, removes) = (Vec::new(), Vec::new());
            name.sets.push(super::SetDiff { kind, before, ttl, proxied, adds, removes });
        }
        for set in name.sets.iter_mut().filter(|set| set.kind == kind) {
            let (cause, why) = (Cause::Updated, "the mode is authoritative".into());
            set.removes.push(Removal { data, cause, why, reasons: &[] });
        }
        false
    });
}
