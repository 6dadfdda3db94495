//! Makes objects, unless they are there.

use netstead_model::{
    Address, FieldValue, Fields, ObjectChange, ObjectKind, ObjectMark, ObjectWrite, UnitOutcome,
};
use netstead_wire::http::Method;
use serde_json::json;

use super::{
    MAC, NetBox,
    batches::{Member, Outcomes},
    columns_of, path_of,
    read::fields_of,
    related::Missing,
};
use crate::{
    netbox::{ApiError, Row, address_and_length, id_of, marks_of, name_of, text_of},
    phpipam::{CLAIM_DESCRIPTION, Marks},
};

impl NetBox {
    pub(super) async fn create_some(
        &self,
        request: &ObjectWrite,
        kind: &ObjectKind,
        numbers: &[usize],
        missing: &Missing,
        outcomes: &mut Outcomes,
    ) -> Result<(), ApiError> {
        let unit = |number: &usize| {
            let unit = request.units.get(*number)?;
            let ObjectChange::Create { fields } = &unit.change else { return None };
            let owner = request.fence.owner.clone();
            Some((*number, ObjectMark { owner, key: unit.key.clone() }, fields))
        };
        let units: Vec<(usize, ObjectMark, &Fields)> = numbers.iter().filter_map(unit).collect();
        let there = self.rows_there(kind, &units).await?;
        let (mut members, mut marks) = (Vec::new(), std::collections::BTreeMap::new());
        for (number, mark, fields) in units {
            match self.judge(kind, &mark, fields, &there) {
                Judgement::Is(outcome) => outcomes.set(number, outcome),
                Judgement::Claimed(row) => {
                    self.fill_claimed(request, number, &mark, fields, row, missing, outcomes).await?;
                }
                Judgement::Free => match self.new_body(kind, &mark, fields, missing) {
                    Ok(body) => {
                        members.push(Member { number, id: None, body, etag: None });
                        marks.insert(number, mark);
                    }
                    Err(reason) => outcomes.reject(number, reason),
                },
            }
        }
        let mut made = Vec::new();
        let ended = self.create_members(request, path_of(kind), members, outcomes, &mut made).await;
        let (mut lost, field) = (Vec::new(), self.api.key_field().name());
        for (member, row) in made {
            let (Some(id), Some(mark)) = (id_of(&row, "id"), marks.get(&member.number)) else { continue };
            if marks_of(&row, field).object.as_ref() == Some(mark) {
                self.known().remember(id, mark);
                outcomes.set(member.number, UnitOutcome::Applied);
            } else {
                lost.push(Member { id: Some(id), body: Row::new(), ..member });
            }
        }
        ended?;
        // An object without our key could never be found again.
        let numbers: Vec<usize> = lost.iter().map(|member| member.number).collect();
        self.change_members(request, Method::DELETE, path_of(kind), lost, outcomes).await?;
        for number in numbers {
            outcomes.reject(number, format!("{} have no custom field `{field}` for our keys", kind.as_str()));
        }
        Ok(())
    }

    /// Everything that is where the units want to be. Filters are hints: the caller compares.
    async fn rows_there(
        &self,
        kind: &ObjectKind,
        units: &[(usize, ObjectMark, &Fields)],
    ) -> Result<Vec<Row>, ApiError> {
        let field = |name: &str| {
            let values = units.iter().filter_map(|(_, _, fields)| Some(fields.get(name)?.to_string()));
            values.collect::<Vec<String>>()
        };
        let (filter, values) = match kind.as_str() {
            "machine" => ("name__ie", field("name")),
            "interface" => {
                let known = self.known();
                let machines = units.iter().filter_map(|(_, mark, fields)| match fields.get("machine")? {
                    FieldValue::Ref(target) => known.id(&mark.owner, target),
                    _ => None,
                });
                let machines: std::collections::BTreeSet<u64> = machines.collect();
                ("virtual_machine_id", machines.iter().map(u64::to_string).collect())
            }
            "mac" => ("mac_address", field("mac")),
            _ => ("address", units.iter().map(|(_, mark, _)| mark.key.part.clone()).collect()),
        };
        self.api.list_by(path_of(kind), &[("fields", columns_of(kind))], filter, &values).await
    }

    fn judge<'r>(
        &self,
        kind: &ObjectKind,
        mark: &ObjectMark,
        fields: &Fields,
        there: &'r [Row],
    ) -> Judgement<'r> {
        let value = |name: &str| fields.get(name).map(ToString::to_string).unwrap_or_default();
        let known = self.known();
        let machine = match fields.get("machine") {
            Some(FieldValue::Ref(target)) => known.id(&mark.owner, target),
            _ => None,
        };
        let vrf = known.vrf;
        drop(known);
        let in_vrf = |row: &Row| !self.lacks_vrf(vrf) && id_of(row, "vrf") == vrf;
        let address = mark.key.part.parse::<Address>().ok();
        let is_there = |row: &&Row| match kind.as_str() {
            "machine" => {
                text_of(row, "name").to_lowercase() == value("name").to_lowercase()
                    && name_of(row, "cluster") == value("cluster")
            }
            "interface" => {
                machine.is_some()
                    && id_of(row, "virtual_machine") == machine
                    && text_of(row, "name") == value("name")
            }
            // MACs of others do no harm.
            "mac" => false,
            _ => {
                let found = address_and_length(&text_of(row, "address")).map(|(address, _)| address);
                found.is_some() && found == address && in_vrf(row)
            }
        };
        let field = self.api.key_field().name();
        // One of another VRF is of a time when the configuration named that.
        let ours = there
            .iter()
            .filter(|row| *kind != ObjectKind::ADDRESS || in_vrf(row))
            .find(|row| marks_of(row, field).object.as_ref() == Some(mark));
        if let Some(row) = ours {
            if let Some(id) = id_of(row, "id") {
                self.known().remember(id, mark);
            }
            let now = fields_of(kind, row, &self.known()).unwrap_or_default();
            let same = fields.iter().all(|(name, value)| now.get(name) == Some(value));
            return Judgement::Is(if same { UnitOutcome::Applied } else { UnitOutcome::Changed });
        }
        let Some(row) = there.iter().find(is_there) else { return Judgement::Free };
        let Marks { object, claim, .. } = marks_of(row, field);
        let what = if *kind == ObjectKind::ADDRESS {
            mark.key.part.clone()
        } else {
            format!("{kind} {}", value("name"))
        };
        let reason = match (object, claim) {
            (Some(other), _) => format!("{what} is there already, for {} of `{}`", other.key, other.owner),
            (None, Some(claim)) if claim.split_once('/').is_some_and(|(owner, _)| owner == mark.owner) => {
                return Judgement::Claimed(row);
            }
            (None, Some(claim)) => format!("{what} is claimed as `{claim}`"),
            (None, None) => format!("{what} is there already, with the id {}", text_of(row, "id")),
        };
        Judgement::Is(UnitOutcome::Rejected { reason })
    }

    fn new_body(
        &self,
        kind: &ObjectKind,
        mark: &ObjectMark,
        fields: &Fields,
        missing: &Missing,
    ) -> Result<Row, String> {
        let mut body = self.sent(kind, &mark.owner, fields, missing)?;
        if *kind == ObjectKind::ADDRESS {
            match (&self.config.vrf, self.known().vrf) {
                (None, _) => {}
                (Some(_), Some(vrf)) => drop(body.insert("vrf".to_owned(), json!(vrf))),
                (Some(name), None) => return Err(missing.of("vrf", name)),
            }
        }
        self.marked(&mut body, &Marks { object: Some(mark.clone()), ..Marks::default() });
        Ok(body)
    }

    /// Gives an address that a pool backend claimed for us our mark, and fills its empty fields.
    #[expect(clippy::too_many_arguments, reason = "each is one thing of one unit")]
    async fn fill_claimed(
        &self,
        request: &ObjectWrite,
        number: usize,
        mark: &ObjectMark,
        fields: &Fields,
        row: &Row,
        missing: &Missing,
        outcomes: &mut Outcomes,
    ) -> Result<(), ApiError> {
        let now = fields_of(&mark.key.kind, row, &self.known()).unwrap_or_default();
        let ours = |name: &str| match now.get(name) {
            None => true,
            Some(value) => {
                matches!(name, "status" | "address")
                    || name == "description" && value.to_string().starts_with(CLAIM_DESCRIPTION)
            }
        };
        let wanted: Fields = fields
            .iter()
            .filter(|(name, _)| ours(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let mut body = match self.sent(&mark.key.kind, &mark.owner, &wanted, missing) {
            Ok(body) => body,
            Err(reason) => {
                outcomes.reject(number, reason);
                return Ok(());
            }
        };
        let mut marks = marks_of(row, self.api.key_field().name());
        marks.object = Some(mark.clone());
        self.marked(&mut body, &marks);
        let Some(id) = id_of(row, "id") else { return Ok(()) };
        self.known().remember(id, mark);
        let member = Member { number, id: Some(id), body, etag: None };
        self.change_members(request, Method::PATCH, path_of(&mark.key.kind), vec![member], outcomes).await
    }
}

/// The state of the place where a new object wants to be.
enum Judgement<'r> {
    Free,
    Is(UnitOutcome),
    /// An address that a pool backend claimed for us.
    Claimed(&'r Row),
}

/// The kinds in which objects are written, whatever the request has.
pub(super) const KINDS: [ObjectKind; 4] =
    [ObjectKind::MACHINE, ObjectKind::INTERFACE, MAC, ObjectKind::ADDRESS];
