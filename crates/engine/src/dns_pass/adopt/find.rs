//! Finds the values on the server that an adoption is about.

use netstead_model::{Name, ProviderError, RecordData, RecordType};
use netstead_plan::{
    Actual, ActualZone, Origin, OwnedValue, OwnerId,
    marks::{
        Mark, Tool, adoptable, catalogues, external_dns::Naming, is_mark, mark_name, recover, superseded,
    },
};

use super::{AdoptedValue, Adoption, AdoptionCandidates, LeftValue};
use crate::{
    dns_pass::{DnsPass, zone_cache::with_timeout},
    provider_loop::Worker,
};

impl Worker<DnsPass> {
    pub(super) async fn find_adoptable(&self, take: &Adoption) -> Result<AdoptionCandidates, ProviderError> {
        match take {
            Adoption::Name { name, kind } => self.adoptable_at_name(name, *kind).await,
            Adoption::Tool { tool, id, naming, zone } => {
                self.adoptable_of_tool(*tool, id.as_deref(), naming, zone.as_ref()).await
            }
            Adoption::Marks(owner) => self.adoptable_by_marks(owner).await,
        }
    }

    async fn adoptable_at_name(
        &self,
        name: &Name,
        kind: Option<RecordType>,
    ) -> Result<AdoptionCandidates, ProviderError> {
        let (actual, errors) = self.read_zones(Some(name), None, |zone| name.is_subdomain_of(zone)).await?;
        let mut found = AdoptionCandidates { left: unread(errors), ..AdoptionCandidates::default() };
        let zone = actual.zones.iter().max_by_key(|zone| zone.name.as_str().len());
        // What could not be read may be nearer to the name.
        let Some(zone) = zone.filter(|_| found.left.is_empty()) else { return Ok(found) };
        let sets = zone.sets.iter().flatten().filter(|set| set.name == *name);
        let sets = sets.filter(|set| kind.is_none_or(|kind| set.kind == kind));
        let sets = sets.filter(|set| !(set.kind == RecordType::Ns && zone.name == *name));
        for data in sets.flat_map(|set| &set.values) {
            if self.state.owned.get(name, data).is_some() {
                continue;
            }
            match other_owner(zone, name, data, &self.state.settings.owner) {
                Some(owner) => {
                    let why = format!("it belongs to the Netstead installation `{owner}`");
                    found.left.push(LeftValue { name: name.clone(), data: Some(data.clone()), why });
                }
                None => found.add_value(name, data, None),
            }
        }
        Ok(found)
    }

    async fn adoptable_of_tool(
        &self,
        tool: Tool,
        id: Option<&str>,
        naming: &Naming,
        zone: Option<&Name>,
    ) -> Result<AdoptionCandidates, ProviderError> {
        let wanted = |name: &Name| zone.is_none_or(|zone| zone == name);
        let (actual, errors) = self.read_zones(zone, Some(tool), wanted).await?;
        let mut found = AdoptionCandidates { left: unread(errors), ..AdoptionCandidates::default() };
        let mut all = adoptable(&actual, naming);
        all.retain(|one| one.tool == tool && id.is_none_or(|id| one.id.as_deref() == Some(id)));
        all.retain(|one| {
            let ours = self.state.settings.answers_for(&one.name);
            if !ours {
                let (name, data) = (one.name.clone(), Some(one.data.clone()));
                let why = format!("{} does not answer for it", self.name());
                found.left.push(LeftValue { name, data, why });
            }
            ours
        });
        for one in &all {
            if self.state.owned.get(&one.name, &one.data).is_none() {
                found.add_value(&one.name, &one.data, Some(one.by()));
            }
            found.puts.push(one.discarded());
        }
        if id.is_none() {
            self.add_values_of_place(tool, zone, &mut found).await?;
        }
        if tool == Tool::Dnsweaver {
            found.puts.extend(catalogues(&actual, &all));
            // Where a server holds no marks, dnsweaver takes what is equal to its wishes for its own.
            if !self.state.settings.marks && id.is_none() {
                self.add_equal_values(&actual, &mut found);
            }
        }
        Ok(found)
    }

    /// Adds the values that the tool keeps in a place of its own: the place says whose they are.
    async fn add_values_of_place(
        &self,
        tool: Tool,
        zone: Option<&Name>,
        found: &mut AdoptionCandidates,
    ) -> Result<(), ProviderError> {
        let (server, tool_name) = (self.setup.provider.server(), tool.to_string());
        let all = with_timeout(&server, self.setup.provider.left_by(&tool_name)).await?;
        for (name, data) in
            all.into_iter().filter(|(name, _)| zone.is_none_or(|zone| name.is_subdomain_of(zone)))
        {
            if !self.state.settings.answers_for(&name) {
                let why = format!("{} does not answer for it", self.name());
                found.left.push(LeftValue { name, data: Some(data), why });
                continue;
            }
            if self.state.owned.get(&name, &data).is_none() {
                found.add_value(&name, &data, Some(tool.to_string()));
            }
            found.moves.push((name, data));
        }
        Ok(())
    }

    /// Adds the values that are exactly what is asked for here.
    fn add_equal_values(&self, actual: &Actual, found: &mut AdoptionCandidates) {
        let desired = self.snapshot.read().desired.clone();
        for set in actual.zones.iter().filter_map(|zone| zone.sets.as_ref()).flatten() {
            let wanted = desired.of(&set.name).iter().find(|wanted| wanted.kind == set.kind);
            let equal = |data: &&RecordData| wanted.is_some_and(|wanted| wanted.has(data));
            for data in set.values.iter().filter(equal) {
                if self.state.owned.get(&set.name, data).is_none() {
                    found.add_value(&set.name, data, Some("dnsweaver, which has no marks there".to_owned()));
                }
            }
        }
    }

    async fn adoptable_by_marks(&self, owner: &OwnerId) -> Result<AdoptionCandidates, ProviderError> {
        let (actual, errors) = self.read_zones(None, None, |_| true).await?;
        let mut found = AdoptionCandidates { left: unread(errors), ..AdoptionCandidates::default() };
        let recovered = recover(owner, &actual);
        for (name, values) in recovered.owned.iter() {
            for value in values.iter().filter(|value| self.state.owned.get(name, &value.data).is_none()) {
                let by = Some(format!("netstead {owner}"));
                found.values.push(AdoptedValue { name: name.clone(), data: value.data.clone(), by });
                found.puts.push((name.clone(), value.clone()));
            }
        }
        if *owner != self.state.settings.owner {
            found.puts.extend(superseded(&self.state.settings.owner, &self.state.owned, &actual));
        }
        let why = "a mark that fits no record there";
        let loose = |name| LeftValue { name, data: None, why: why.into() };
        found.left.extend(recovered.loose.into_iter().map(loose));
        Ok(found)
    }
}

impl AdoptionCandidates {
    fn add_value(&mut self, name: &Name, data: &RecordData, by: Option<String>) {
        // Two marks may mean one value.
        let known = self.values.iter().any(|value| value.name == *name && value.data == *data);
        if !known {
            self.values.push(AdoptedValue { name: name.clone(), data: data.clone(), by });
        }
        let (data, reasons, origin) = (data.clone(), Vec::new(), Origin::Adopted);
        self.puts.push((name.clone(), OwnedValue { data, reasons, origin, pending: false }));
    }
}

fn unread(errors: Vec<(Name, String)>) -> Vec<LeftValue> {
    let left =
        |(name, error)| LeftValue { name, data: None, why: format!("the zone could not be read: {error}") };
    errors.into_iter().map(left).collect()
}

/// The other installation whose mark covers a value.
fn other_owner(zone: &ActualZone, name: &Name, data: &RecordData, own: &OwnerId) -> Option<OwnerId> {
    let texts = zone.sets.iter().flatten().filter(|set| set.kind == RecordType::Txt);
    let mut marks = texts.filter_map(|set| Some((set, is_mark(set.name.as_str())?)));
    marks.find_map(|(set, owner)| {
        let owner: OwnerId = owner.parse().ok().filter(|owner| owner != own)?;
        let at = |delegation| mark_name(&owner, name, &zone.name, delegation) == set.name.as_str();
        let covers = || set.values.iter().filter_map(Mark::parse).any(|mark| mark.covers(name, data));
        ((at(false) || at(true)) && covers()).then_some(owner)
    })
}
