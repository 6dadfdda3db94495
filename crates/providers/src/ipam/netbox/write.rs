//! Writes objects: read right before they are changed, and changed together.

use std::collections::{BTreeMap, BTreeSet};

use netstead_model::{
    Fields, ObjectChange, ObjectKind, ObjectMark, ObjectWrite, ProviderError, UnitOutcome, WriteReply,
};
use netstead_wire::http::Method;
use serde_json::Value;

use super::{
    NetBox,
    batches::{BATCH, Member, Outcomes, of_provider},
    columns_of,
    create::KINDS,
    path_of,
    read::{VM_INTERFACE, fields_of},
    related::Missing,
};
use crate::netbox::{ApiError, Row, Version, id_of, marks_of, text_of};

/// So many changes are made one by one, each on condition that no other change came first. More go together.
const FEW: usize = 8;

/// A row as it is now, and its `ETag`.
type Now = (Row, Option<String>);

impl NetBox {
    pub(super) async fn write_all(&self, request: &ObjectWrite) -> Result<WriteReply, ProviderError> {
        let _alone = self.writing.lock().await;
        let mut outcomes = Outcomes::new(request.units.len());
        match self.write_units(request, &mut outcomes).await {
            Ok(()) => Ok(outcomes.all().into()),
            Err(error) => {
                let error = of_provider(error, self.api.server());
                if outcomes.is_empty() && !error.may_have_acted() {
                    return Err(error);
                }
                Ok(WriteReply { outcomes: outcomes.all(), stopped: Some(error) })
            }
        }
    }

    async fn write_units(&self, request: &ObjectWrite, outcomes: &mut Outcomes) -> Result<(), ApiError> {
        self.api.ensure_key_field(Some(&request.guard)).await?;
        let unread = self.known().version.is_none();
        if unread {
            let known = self.read_related().await?;
            *self.known() = known;
        }
        let missing = self.make_related(request).await?;
        for kind in &KINDS {
            let of = |wanted: fn(&ObjectChange) -> bool| -> Vec<usize> {
                let units = request.units.iter().enumerate();
                let units = units.filter(|(_, unit)| unit.key.kind == *kind && wanted(&unit.change));
                units.map(|(number, _)| number).collect()
            };
            for some in of(|change| matches!(change, ObjectChange::Delete { .. })).chunks(BATCH) {
                self.delete_some(request, kind, some, outcomes).await?;
            }
            for some in of(|change| matches!(change, ObjectChange::Update { .. })).chunks(BATCH) {
                self.update_some(request, kind, some, &missing, outcomes).await?;
            }
            for some in of(|change| matches!(change, ObjectChange::Create { .. })).chunks(BATCH) {
                self.create_some(request, kind, some, &missing, outcomes).await?;
            }
        }
        Ok(())
    }

    async fn update_some(
        &self,
        request: &ObjectWrite,
        kind: &ObjectKind,
        numbers: &[usize],
        missing: &Missing,
        outcomes: &mut Outcomes,
    ) -> Result<(), ApiError> {
        let mut rows = self.rows_now(request, kind, numbers).await?;
        let mut members = Vec::new();
        for number in numbers {
            let Some(unit) = request.units.get(*number) else { continue };
            let ObjectChange::Update { id, adopted, before, after } = &unit.change else { continue };
            let mark = ObjectMark { owner: request.fence.owner.clone(), key: unit.key.clone() };
            let Some((row, etag)) = id.parse().ok().and_then(|id: u64| rows.remove(&id)) else {
                outcomes.set(*number, UnitOutcome::Changed);
                continue;
            };
            match self.updated(&mark, *adopted, before, after, &row, missing) {
                Ok(Ok(body)) => members.push(Member { number: *number, id: id_of(&row, "id"), body, etag }),
                Ok(Err(outcome)) => outcomes.set(*number, outcome),
                Err(reason) => outcomes.reject(*number, reason),
            }
            // Objects that follow refer to it.
            if let Some(id) = id_of(&row, "id").filter(|_| *adopted) {
                self.known().remember(id, &mark);
            }
        }
        self.change_members(request, Method::PATCH, path_of(kind), members, outcomes).await
    }

    /// The body of a change, or its outcome if there is nothing to send. An error is a sentence for people.
    fn updated(
        &self,
        mark: &ObjectMark,
        adopted: bool,
        before: &Fields,
        after: &Fields,
        row: &Row,
        missing: &Missing,
    ) -> Result<Result<Row, UnitOutcome>, String> {
        let kind = &mark.key.kind;
        let mut marks = marks_of(row, self.api.key_field().name());
        let is_ours = marks.object.as_ref() == Some(mark);
        let may_become_ours = adopted && marks.object.is_none();
        if !is_ours && !may_become_ours {
            return Ok(Err(UnitOutcome::Changed));
        }
        let now = fields_of(kind, row, &self.known()).unwrap_or_default();
        let names: Vec<&String> = before.keys().chain(after.keys()).collect();
        let is = |fields: &Fields| names.iter().all(|name| now.get(*name) == fields.get(*name));
        if is(after) && is_ours {
            return Ok(Err(UnitOutcome::Applied));
        }
        if !is(before) && !is(after) {
            return Ok(Err(UnitOutcome::Changed));
        }
        let mut body = self.emptied(kind, before.keys().filter(|name| !after.contains_key(*name)));
        body.extend(self.sent(kind, &mark.owner, after, missing)?);
        if !is_ours {
            marks.object = Some(mark.clone());
            self.marked(&mut body, &marks);
        }
        Ok(Ok(body))
    }

    async fn delete_some(
        &self,
        request: &ObjectWrite,
        kind: &ObjectKind,
        numbers: &[usize],
        outcomes: &mut Outcomes,
    ) -> Result<(), ApiError> {
        let mut rows = self.rows_now(request, kind, numbers).await?;
        let ids: Vec<u64> = rows.keys().copied().collect();
        let hanging = self.dependents(kind, &ids).await?;
        let (mut members, mut emptied) = (Vec::new(), Vec::new());
        // The machines of addresses that leave them, by the address.
        let mut unassigned = BTreeMap::new();
        for number in numbers {
            let Some(unit) = request.units.get(*number) else { continue };
            let ObjectChange::Delete { id, before } = &unit.change else { continue };
            let mark = ObjectMark { owner: request.fence.owner.clone(), key: unit.key.clone() };
            let Some((id, (row, etag))) = id.parse().ok().and_then(|id: u64| Some((id, rows.remove(&id)?)))
            else {
                outcomes.set(*number, UnitOutcome::Applied);
                continue;
            };
            let marks = marks_of(&row, self.api.key_field().name());
            if marks.object.as_ref() != Some(&mark) {
                outcomes.set(*number, UnitOutcome::Changed);
            } else if marks.claim.is_some() {
                let body = self.without_ours(&mark, before, &row);
                if body.contains_key("assigned_object_id") {
                    unassigned.extend(machine_of(&row).map(|machine| (id, machine)));
                }
                emptied.push(Member { number: *number, id: Some(id), body, etag });
            } else if let Some(what) = hanging.get(&id) {
                outcomes
                    .reject(*number, format!("{what} still hangs on it, and NetBox would remove that too"));
            } else {
                self.known().forget(id, &mark);
                members.push(Member { number: *number, id: Some(id), body: Row::new(), etag });
            }
        }
        self.unset_primaries(request, &unassigned).await?;
        self.change_members(request, Method::PATCH, path_of(kind), emptied, outcomes).await?;
        self.change_members(request, Method::DELETE, path_of(kind), members, outcomes).await
    }

    /// Takes addresses from the machines that have them as primary ones. NetBox lets no primary address leave its machine, but
    /// does so itself when an address is deleted.
    async fn unset_primaries(
        &self,
        request: &ObjectWrite,
        addresses: &BTreeMap<u64, u64>,
    ) -> Result<(), ApiError> {
        if addresses.is_empty() {
            return Ok(());
        }
        let path = path_of(&ObjectKind::MACHINE);
        let machines: BTreeSet<u64> = addresses.values().copied().collect();
        let machines: Vec<String> = machines.iter().map(u64::to_string).collect();
        let columns = ("fields", columns_of(&ObjectKind::MACHINE));
        let rows = self.api.list_by(path, &[columns], "id", &machines).await?;
        let mut bodies = Vec::new();
        for row in &rows {
            let is_left =
                |name: &&str| id_of(row, name).is_some_and(|address| addresses.contains_key(&address));
            let left: Vec<&str> = ["primary_ip4", "primary_ip6"].into_iter().filter(is_left).collect();
            if let Some(id) = id_of(row, "id").filter(|_| !left.is_empty()) {
                let mut body: Row = left.iter().map(|name| ((*name).to_owned(), Value::Null)).collect();
                body.insert("id".to_owned(), id.into());
                bodies.push(body);
            }
        }
        if bodies.is_empty() {
            return Ok(());
        }
        request.guard.permit().await?;
        match self.api.change_all(Method::PATCH, path, &bodies).await {
            // The addresses are refused too then, each with its reason.
            Err(ApiError::Refused { .. }) => Ok(()),
            done => done,
        }
    }

    /// Takes our mark and our fields from an address that a pool backend holds. The address itself is the backend's.
    fn without_ours(&self, mark: &ObjectMark, before: &Fields, row: &Row) -> Row {
        let now = fields_of(&mark.key.kind, row, &self.known()).unwrap_or_default();
        let still = before.iter().filter(|(name, value)| now.get(*name) == Some(value)).map(|(name, _)| name);
        let mut body = self.emptied(&mark.key.kind, still);
        let mut marks = marks_of(row, self.api.key_field().name());
        marks.object = None;
        self.marked(&mut body, &marks);
        body
    }

    /// The objects of units as they are now, by id: few with their `ETags`, many in one request.
    async fn rows_now(
        &self,
        request: &ObjectWrite,
        kind: &ObjectKind,
        numbers: &[usize],
    ) -> Result<BTreeMap<u64, Now>, ApiError> {
        let units = numbers.iter().filter_map(|number| request.units.get(*number));
        let ids: Vec<u64> = units
            .filter_map(|unit| match &unit.change {
                ObjectChange::Update { id, .. } | ObjectChange::Delete { id, .. } => id.parse().ok(),
                ObjectChange::Create { .. } => None,
            })
            .collect();
        let path = path_of(kind);
        let mut rows = BTreeMap::new();
        if ids.len() <= FEW && self.api.version().await? >= Version::ETAG {
            for id in ids {
                match self.api.get_with_etag(&format!("{path}{id}/"), &[]).await {
                    Ok((row, etag)) => drop(rows.insert(id, (row, etag))),
                    Err(ApiError::Refused { code: 404, .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            return Ok(rows);
        }
        let wanted: Vec<String> = ids.iter().map(u64::to_string).collect();
        let found = self.api.list_by(path, &[("fields", columns_of(kind))], "id", &wanted).await?;
        rows.extend(found.into_iter().filter_map(|row| Some((id_of(&row, "id")?, (row, None)))));
        rows.retain(|id, _| ids.contains(id));
        Ok(rows)
    }

    /// Finds what hangs on objects and would be removed with them, by the id of the object.
    async fn dependents(&self, kind: &ObjectKind, ids: &[u64]) -> Result<BTreeMap<u64, String>, ApiError> {
        let mut lists: Vec<Hanging> = Vec::new();
        match kind.as_str() {
            "machine" => lists.extend([
                (
                    path_of(&ObjectKind::INTERFACE),
                    "virtual_machine_id",
                    "interface",
                    on_machine as fn(&Row) -> _,
                ),
                ("/api/virtualization/virtual-disks/", "virtual_machine_id", "disk", on_machine),
                ("/api/ipam/services/", "virtual_machine_id", "service", on_machine),
            ]),
            "interface" => {
                lists.push((path_of(&ObjectKind::ADDRESS), "vminterface_id", "address", on_interface));
                let macs = (path_of(&super::MAC), "vminterface_id", "MAC", on_interface as fn(&Row) -> _);
                lists.extend(Some(macs).filter(|_| self.known().has_macs()));
            }
            _ => {}
        }
        let wanted: Vec<String> = ids.iter().map(u64::to_string).collect();
        let mut found = BTreeMap::new();
        for (path, filter, what, of) in lists {
            for row in self.api.list_by(path, &[], filter, &wanted).await? {
                if let Some(id) = of(&row).filter(|id| ids.contains(id)) {
                    found.entry(id).or_insert_with(|| format!("{what} {}", text_of(&row, "display")));
                }
            }
        }
        Ok(found)
    }
}

/// A list of objects that hang on others: its path, its filter, its name for people, and the id of the other.
type Hanging = (&'static str, &'static str, &'static str, fn(&Row) -> Option<u64>);

/// The machine that an interface, a disk or a service belongs to.
fn on_machine(row: &Row) -> Option<u64> {
    let is_machine = text_of(row, "parent_object_type") == "virtualization.virtualmachine";
    id_of(row, "parent_object_id").filter(|_| is_machine).or_else(|| id_of(row, "virtual_machine"))
}

/// The machine of the interface that an address is on.
fn machine_of(row: &Row) -> Option<u64> {
    row.get("assigned_object").and_then(Value::as_object).and_then(|on| id_of(on, "virtual_machine"))
}

/// The interface of a machine that an address or a MAC is on.
fn on_interface(row: &Row) -> Option<u64> {
    id_of(row, "assigned_object_id").filter(|_| text_of(row, "assigned_object_type") == VM_INTERFACE)
}
