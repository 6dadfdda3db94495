//! Writes objects: one address per call, read right before it is changed and after every doubtful answer.

use std::sync::{Arc, atomic::Ordering};

use netstead_model::{
    Address, Cidr, FieldValue, Fields, ObjectChange, ObjectMark, ObjectUnit, ObjectWrite, ProviderError,
    UnitOutcome, WriteReply,
};
use netstead_wire::http::Method;
use serde_json::{Map, Value, json};

use super::{PhpIpam, address_of, objects::Known};
use crate::phpipam::{AddressRow, ApiError, CLAIM_DESCRIPTION, Marks, Subnet};

/// Fields that an object has by its place.
const PLACE: &[&str] = &["address", "subnet"];

type Outcome = Result<UnitOutcome, ProviderError>;

impl PhpIpam {
    pub(super) async fn write_all(&self, request: &ObjectWrite) -> Result<WriteReply, ProviderError> {
        let _alone = self.writing.lock().await;
        let mut outcomes = Vec::with_capacity(request.units.len());
        for unit in &request.units {
            match self.write_one(request, unit).await {
                Ok(outcome) => outcomes.push(outcome),
                Err(error) if outcomes.is_empty() && !error.may_have_acted() => return Err(error),
                Err(error) => {
                    outcomes.extend(WriteReply::failed(1, error.clone()).outcomes);
                    outcomes.resize(request.units.len(), UnitOutcome::NotTried);
                    return Ok(WriteReply { outcomes, stopped: Some(error) });
                }
            }
        }
        Ok(outcomes.into())
    }

    async fn write_one(&self, request: &ObjectWrite, unit: &ObjectUnit) -> Outcome {
        let Some(address) = address_of(&unit.key) else {
            return Ok(rejected(format!("`{}` is no address", unit.key.part)));
        };
        let mark = ObjectMark { owner: request.fence.owner.clone(), key: unit.key.clone() };
        let one = One { request, address, mark };
        match &unit.change {
            ObjectChange::Create { fields } => self.create(&one, fields).await,
            ObjectChange::Update { id, adopted, before, after } => {
                self.update(&one, id, *adopted, before, after).await
            }
            ObjectChange::Delete { id, before } => self.delete(&one, id, before).await,
        }
    }

    async fn create(&self, one: &One<'_>, fields: &Fields) -> Outcome {
        let subnet = match self.home(one, fields).await? {
            Ok(subnet) => subnet,
            Err(outcome) => return Ok(outcome),
        };
        let marks = Marks { object: Some(one.mark.clone()), claim: None, rest: self.beside(fields) };
        let mut body = Map::from_iter([
            ("ip".to_owned(), json!(one.address.to_string())),
            ("subnetId".to_owned(), json!(subnet)),
        ]);
        body.extend(sent(fields));
        body.insert(self.key_field.name().to_owned(), json!(marks.field()));
        one.request.guard.permit().await?;
        match self.api.change(Method::POST, &["addresses"], Some(&body)).await {
            Ok(answer) => self.prove(one, answer.made().as_deref()).await,
            // It is there, or something failed half way.
            Err(ApiError::Refused { code: 409 | 500.., message }) => {
                self.settle_create(one, &subnet, fields, message).await
            }
            // The subnet is gone.
            Err(ApiError::Refused { code: 404, .. }) => Ok(UnitOutcome::Changed),
            Err(ApiError::Refused { message, .. }) => Ok(self.refused(message)),
            Err(ApiError::Server(error)) => Err(error),
        }
    }

    /// Sees once that an object of ours has our key: phpIPAM may take an object without a field that it does not know.
    async fn prove(&self, one: &One<'_>, made: Option<&str>) -> Outcome {
        if self.key_field.is_note() || self.proven.load(Ordering::Relaxed) {
            return Ok(UnitOutcome::Applied);
        }
        let rows = self.rows(one.address).await?;
        let made = rows.iter().find(|row| Some(row.id.as_str()) == made);
        match made {
            Some(row) if row.marks.object.as_ref() == Some(&one.mark) => {
                self.proven.store(true, Ordering::Relaxed);
                Ok(UnitOutcome::Applied)
            }
            Some(row) => {
                one.request.guard.permit().await?;
                let removed = self.api.change(Method::DELETE, &["addresses", &row.id], None).await;
                removed.map_err(|error| error.unexpected(self.api.server()))?;
                Ok(rejected(self.key_field.missing()))
            }
            None => Ok(UnitOutcome::Changed),
        }
    }

    /// Decides about an object that could not be made, by what is there.
    async fn settle_create(&self, one: &One<'_>, subnet: &str, fields: &Fields, message: String) -> Outcome {
        let rows = self.rows(one.address).await?;
        let Some(row) = rows.into_iter().find(|row| row.subnet == subnet) else {
            return Ok(self.refused(message));
        };
        let own = one.mark.owner.as_str();
        match (&row.marks.object, &row.marks.claim) {
            (Some(mark), _) if *mark == one.mark => {
                let label = fields.get("subnet").map(ToString::to_string).unwrap_or_default();
                let same = self.fields_of(&row, label) == *fields;
                Ok(if same { UnitOutcome::Applied } else { UnitOutcome::Changed })
            }
            (Some(mark), _) => Ok(rejected(format!(
                "{} is there already, for {} of `{}`",
                one.address, mark.key, mark.owner
            ))),
            (None, Some(claim)) if claim.split_once('/').is_some_and(|(owner, _)| owner == own) => {
                self.fill_claimed(one, &row, fields).await
            }
            (None, Some(claim)) => Ok(rejected(format!("{} is claimed as `{claim}`", one.address))),
            (None, None) => Ok(rejected(format!("{} is there already, with the id {}", one.address, row.id))),
        }
    }

    /// Gives an address that a pool backend claimed for us our mark, and fills its empty fields.
    async fn fill_claimed(&self, one: &One<'_>, row: &AddressRow, fields: &Fields) -> Outcome {
        let ours = |name: &str| match row.field(name) {
            None => true,
            Some(value) => name == "description" && value.starts_with(CLAIM_DESCRIPTION),
        };
        let mut wanted = fields.clone();
        wanted.retain(|name, _| name == "tag" || ours(name));
        let mut marks = row.marks.clone();
        marks.object = Some(one.mark.clone());
        if marks.rest.is_empty() {
            marks.rest = self.beside(fields);
        }
        self.patch(one, row, &sent(&wanted), Some(&marks)).await
    }

    async fn update(
        &self,
        one: &One<'_>,
        id: &str,
        adopted: bool,
        before: &Fields,
        after: &Fields,
    ) -> Outcome {
        let Some(row) = self.row(one.address, id).await? else { return Ok(UnitOutcome::Changed) };
        let is_ours = row.marks.object.as_ref() == Some(&one.mark);
        let is_adopted = adopted && row.marks.object.is_none();
        if !is_ours && !is_adopted {
            return Ok(UnitOutcome::Changed);
        }
        let now = self.fields_of(&row, self.known().label(&row.subnet).unwrap_or_default());
        let names: Vec<&String> = before.keys().chain(after.keys()).collect();
        let is = |fields: &Fields| names.iter().all(|name| now.get(*name) == fields.get(*name));
        if is(after) && is_ours {
            return Ok(UnitOutcome::Applied);
        }
        if !is(before) && !is(after) {
            return Ok(UnitOutcome::Changed);
        }
        if names.iter().any(|name| PLACE.contains(&name.as_str()) && before.get(*name) != after.get(*name)) {
            return Ok(rejected("phpIPAM moves no address into another subnet; remove it there".to_owned()));
        }
        let mut body: Map<String, Value> = before.keys().map(|name| (name.clone(), json!(""))).collect();
        body.extend(sent(after));
        body.retain(|name, _| !PLACE.contains(&name.as_str()));
        if before.contains_key("tag") && !after.contains_key("tag") {
            body.insert("tag".to_owned(), json!(self.config.tag.get::<i64>()));
        }
        let mut marks = row.marks.clone();
        marks.object = Some(one.mark.clone());
        if names.iter().any(|name| *name == self.key_field.name()) {
            marks.rest = self.beside(after);
        }
        self.patch(one, &row, &body, Some(&marks).filter(|marks| **marks != row.marks)).await
    }

    async fn delete(&self, one: &One<'_>, id: &str, before: &Fields) -> Outcome {
        let Some(row) = self.row(one.address, id).await? else { return Ok(UnitOutcome::Applied) };
        if row.marks.object.as_ref() != Some(&one.mark) {
            return Ok(UnitOutcome::Changed);
        }
        if row.marks.claim.is_some() {
            return self.empty_claimed(one, &row, before).await;
        }
        one.request.guard.permit().await?;
        match self.api.change(Method::DELETE, &["addresses", id], None).await {
            Ok(_) | Err(ApiError::Refused { code: 404, .. }) => Ok(UnitOutcome::Applied),
            Err(ApiError::Refused { message, .. }) => {
                let left = self.row(one.address, id).await?.is_some();
                Ok(if left { self.refused(message) } else { UnitOutcome::Applied })
            }
            Err(ApiError::Server(error)) => Err(error),
        }
    }

    /// Takes our mark and our fields from an address that a pool backend holds. The address itself is the backend's.
    async fn empty_claimed(&self, one: &One<'_>, row: &AddressRow, before: &Fields) -> Outcome {
        let still = |(name, value): &(&String, &FieldValue)| match value {
            FieldValue::Text(text) => row.field(name) == Some(text),
            _ => false,
        };
        let emptied = before.iter().filter(still).map(|(name, _)| (name.clone(), json!("")));
        let mut body: Map<String, Value> = emptied.collect();
        body.retain(|name, _| !PLACE.contains(&name.as_str()));
        let mut marks = row.marks.clone();
        marks.object = None;
        if body.contains_key(self.key_field.name()) {
            marks.rest = String::new();
        }
        self.patch(one, row, &body, Some(&marks)).await
    }

    /// Changes fields of an object. phpIPAM sets the tag `Used` where a change names none, so every change names it.
    async fn patch(
        &self,
        one: &One<'_>,
        row: &AddressRow,
        fields: &Map<String, Value>,
        marks: Option<&Marks>,
    ) -> Outcome {
        let mut body = fields.clone();
        body.remove(self.key_field.name());
        body.entry("tag").or_insert_with(|| json!(row.tag));
        if let Some(marks) = marks {
            body.insert(self.key_field.name().to_owned(), json!(marks.field()));
        }
        one.request.guard.permit().await?;
        match self.api.change(Method::PATCH, &["addresses", &row.id], Some(&body)).await {
            Ok(_) => Ok(UnitOutcome::Applied),
            Err(ApiError::Refused { code: 404, .. }) => Ok(UnitOutcome::Changed),
            Err(ApiError::Refused { code: 500.., message }) => match self.row(one.address, &row.id).await? {
                Some(now) if now == *row => Ok(self.refused(message)),
                _ => Ok(UnitOutcome::Unknown),
            },
            Err(ApiError::Refused { message, .. }) => Ok(self.refused(message)),
            Err(ApiError::Server(error)) => Err(error),
        }
    }

    /// The id of the subnet for a new object, which is made if that is allowed.
    async fn home(
        &self,
        one: &One<'_>,
        fields: &Fields,
    ) -> Result<Result<String, UnitOutcome>, ProviderError> {
        let mut known = self.known().clone();
        if known.subnets.is_empty() {
            let read = self.read_subnets().await.map_err(|error| error.unexpected(self.api.server()))?;
            known = Arc::new(read);
            *self.known() = known.clone();
        }
        let named = match fields.get("subnet") {
            Some(FieldValue::Text(label)) => known.by_label(label),
            _ => None,
        };
        let named = named.filter(|subnet| subnet.cidr.contains(one.address));
        if let Some(subnet) = named.or_else(|| known.longest(one.address)) {
            return Ok(Ok(subnet.id.clone()));
        }
        let (Some(cidr), Some(section)) = (self.new_subnet(one.address), &self.config.make_subnets) else {
            let reason = format!(
                "no subnet holds {}: add one to phpIPAM, name a section in `make_subnets`, or leave the address out with \
                 `networks`",
                one.address
            );
            return Ok(Err(rejected(reason)));
        };
        self.make_subnet(one, cidr, section, &known).await
    }

    async fn make_subnet(
        &self,
        one: &One<'_>,
        cidr: Cidr,
        section: &str,
        known: &Known,
    ) -> Result<Result<String, UnitOutcome>, ProviderError> {
        let found = known.sections.iter().find(|(id, name)| id == section || name == section);
        let Some((section_id, _)) = found else {
            return Ok(Err(rejected(format!(
                "there is no section `{section}` for a subnet of {}",
                one.address
            ))));
        };
        let description = "made by Netstead";
        let body = Map::from_iter([
            ("subnet".to_owned(), json!(cidr.network().to_string())),
            ("mask".to_owned(), json!(cidr.len().to_string())),
            ("sectionId".to_owned(), json!(section_id)),
            ("description".to_owned(), json!(description)),
        ]);
        one.request.guard.permit().await?;
        match self.api.post_once(&["subnets"], &body).await {
            Ok(answer) => {
                let Some(id) = answer.made() else {
                    return Err(self.api.malformed("no id in the answer to a new subnet"));
                };
                let mut subnets = known.subnets.clone();
                subnets.push(Subnet {
                    id: id.clone(),
                    section: section_id.clone(),
                    cidr,
                    description: description.to_owned(),
                    vrf: String::new(),
                    is_pool: false,
                    gateway: None,
                });
                let mut renewed = Known::new(subnets, known.sections.clone());
                renewed.placed.clone_from(&known.placed);
                *self.known() = Arc::new(renewed);
                Ok(Ok(id))
            }
            Err(ApiError::Refused { message, .. }) => {
                Ok(Err(rejected(format!("no subnet {cidr} can be made for {}: {message}", one.address))))
            }
            Err(ApiError::Server(error)) => Err(error),
        }
    }

    async fn rows(&self, address: Address) -> Result<Vec<AddressRow>, ProviderError> {
        let rows = self.api.search(address, &self.key_field).await;
        rows.map_err(|error| error.unexpected(self.api.server()))
    }

    async fn row(&self, address: Address, id: &str) -> Result<Option<AddressRow>, ProviderError> {
        Ok(self.rows(address).await?.into_iter().find(|row| row.id == id))
    }

    /// The text that stands beside our marks.
    fn beside(&self, fields: &Fields) -> String {
        fields.get(self.key_field.name()).map(ToString::to_string).unwrap_or_default()
    }

    fn refused(&self, message: String) -> UnitOutcome {
        let unknown_field = !self.key_field.is_note() && message.contains(self.key_field.name());
        rejected(if unknown_field { self.key_field.missing() } else { message })
    }
}

/// A unit on its way.
struct One<'a> {
    request: &'a ObjectWrite,
    address: Address,
    mark: ObjectMark,
}

fn rejected(reason: String) -> UnitOutcome {
    UnitOutcome::Rejected { reason }
}

/// Fields as they are sent, without those that an object has by its place.
fn sent(fields: &Fields) -> Map<String, Value> {
    let value = |value: &FieldValue| match value {
        FieldValue::Number(number) => json!(number),
        other => json!(other.to_string()),
    };
    let written = fields.iter().filter(|(name, _)| !PLACE.contains(&name.as_str()));
    written.map(|(name, field)| (name.clone(), value(field))).collect()
}
