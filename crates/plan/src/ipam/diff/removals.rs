//! Objects of ours that nothing wants.

use std::sync::Arc;

use netstead_model::{Fields, ObjectChange, ObjectKey, ObjectUnit};

use super::{Diff, IpamInput, Removal, subject};
use crate::{
    Cause, KeptReason, Line, Mode, Sign,
    ipam::{IpamDrift, IpamKept, IpamStep, desired::ClaimsView, subjects::is_of_claim},
};

impl<'a> Diff<'a> {
    /// Judges every object of ours that nothing wants.
    pub(super) fn removals(&mut self) {
        let IpamInput { desired, owned, .. } = self.input;
        for key in owned.0.keys() {
            let at = (key.source.clone(), key.workload.clone());
            let wanted = desired.objects.contains_key(key) || desired.kept.contains_key(key);
            if !wanted && !desired.waiting.contains_key(&at) && !self.ours.contains_key(key) {
                self.forgotten.push(key.clone());
            }
        }
        let mut unwanted: Vec<&ObjectKey> =
            self.ours.keys().copied().filter(|key| !desired.objects.contains_key(key)).collect();
        // Against the order of creation.
        unwanted.sort_by_key(|key| std::cmp::Reverse(self.rank(&key.kind)));
        for key in unwanted {
            match self.judge(key) {
                Ok((cause, why)) => self.remove(key, cause, why),
                Err(why) => self.kept.push(IpamKept { key: key.clone(), why }),
            }
        }
    }

    fn judge(&mut self, key: &'a ObjectKey) -> Result<(Cause, Arc<str>), KeptReason> {
        let IpamInput { desired, owned, settings, clean, .. } = self.input;
        if *clean {
            return Ok((Cause::Asked, "cleaned by a person".into()));
        }
        let at = (key.source.clone(), key.workload.clone());
        if let Some(why) = desired.kept.get(key).or_else(|| desired.waiting.get(&at)) {
            return Err(why.clone());
        }
        if !owned.0.contains_key(key) {
            let (field, found, wanted) = (None, None, None);
            self.drift.push(IpamDrift { key: key.clone(), field, found, wanted });
            return Err("it has our mark, and the store does not know it".into());
        }
        if matches!(settings.mode, Mode::Additive | Mode::CreateOnly) {
            return Err("the mode never removes".into());
        }
        if let Some((cause, why)) = desired.gone.get(&at) {
            return Ok((*cause, why.clone()));
        }
        if is_of_claim(key) {
            return match desired.claims {
                ClaimsView::Unasked => Err("no ledger can be asked whether the claim is released".into()),
                ClaimsView::Unwanted => Ok((Cause::Config, "claims are no longer written here".into())),
                ClaimsView::Complete => {
                    Ok((Cause::Asked, "the claim is released, or a workload has the address".into()))
                }
            };
        }
        if desired.present.contains(&at) {
            return Ok((Cause::Updated, "the workload no longer has it".into()));
        }
        if !settings.sources.is_empty() && !settings.sources.contains(&key.source) {
            return Ok((Cause::Config, "its source is no longer written here".into()));
        }
        if desired.settled.contains(&key.source) {
            let why = format!("{}/{} is not known", key.source, key.workload.as_str());
            return Ok((Cause::Unknown, why.into()));
        }
        Err(format!("source {} is detached, or has not said all", key.source).into())
    }

    fn remove(&mut self, key: &'a ObjectKey, cause: Cause, why: Arc<str>) {
        let Some(object) = self.ours.get(key).copied() else { return };
        let mut needs = Vec::new();
        for other in self.dependents.get(key).into_iter().flatten() {
            let Some(mark) = other.mark.as_ref().filter(|mark| self.removed.contains(&mark.key)) else {
                // Many systems remove what hangs on an object with it.
                let why = format!("{} {} still hangs on it", other.kind, other.id);
                self.kept.push(IpamKept { key: key.clone(), why: why.into() });
                return;
            };
            needs.push(mark.key.clone());
        }
        let owned = self.input.owned.0.get(key);
        let ours = owned.into_iter().flat_map(|owned| &owned.fields);
        let ours = ours.filter(|(name, field)| object.fields.get(*name) == Some(&field.value));
        let before: Fields = ours.map(|(name, field)| (name.clone(), field.value.clone())).collect();
        let line = Line { sign: Sign::Remove, kind: None, text: subject(key), why };
        let change = ObjectChange::Delete { id: object.id.clone(), before };
        let unit = ObjectUnit { key: key.clone(), change, needs };
        self.there.remove(key);
        self.removed.insert(key);
        self.leaving.entry((&key.kind, key.part.as_str())).or_default().push(key);
        let step = IpamStep { unit, lines: vec![line], counted: 0, approved: None };
        self.removals.push(Removal { step, cause });
    }
}
