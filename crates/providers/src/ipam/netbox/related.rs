//! Makes what objects refer to and is missing: clusters, tenant and VRF if the configuration allows it, and our own tags.

use std::collections::{BTreeMap, BTreeSet};

use netstead_model::{FieldValue, ObjectChange, ObjectWrite, ProviderError};
use serde_json::{Value, json};

use super::{Made, NetBox, known::slug};
use crate::netbox::{ApiError, Row, id_of, text_of};

const CLUSTER_TYPES: &str = "/api/virtualization/cluster-types/";

/// Objects that could not be made, and why.
#[derive(Debug, Default)]
pub(super) struct Missing(BTreeMap<(&'static str, String), String>);

impl Missing {
    /// The sentence for an object that needs it.
    pub(super) fn of(&self, what: &'static str, name: &str) -> String {
        match self.0.get(&(what, name.to_owned())) {
            Some(why) => format!("there is no {what} `{name}`, and it cannot be made: {why}"),
            None if what == "tag" => format!("there is no tag `{name}`"),
            None => format!("there is no {what} `{name}`: add it to NetBox, or write `make = [\"{what}\"]`"),
        }
    }
}

impl NetBox {
    /// Makes what the units of a request refer to. A refusal is kept for the units that need it.
    pub(super) async fn make_related(&self, request: &ObjectWrite) -> Result<Missing, ApiError> {
        let mut missing = Missing::default();
        let (clusters, tags) = self.wanted(request);
        let may = |made: Made| self.config.make.contains(&made);
        for cluster in clusters.iter().filter(|_| may(Made::Cluster)) {
            match self.make_cluster(request, cluster).await {
                Ok(id) => drop(self.known().clusters.insert(cluster.clone(), id)),
                Err(error) => missing.note("cluster", cluster, error)?,
            }
        }
        for tag in &tags {
            let body = [("name", json!(tag)), ("slug", json!(tag))];
            match self.make_one(request, "/api/extras/tags/", &body).await {
                Ok(_) => drop(self.known().tags.insert(tag.to_lowercase(), tag.clone())),
                Err(error) => missing.note("tag", tag, error)?,
            }
        }
        let (tenant, vrf) = {
            let known = self.known();
            (known.tenant, known.vrf)
        };
        if let Some(name) = self.config.tenant.as_ref().filter(|_| tenant.is_none() && may(Made::Tenant)) {
            let body = [("name", json!(name)), ("slug", json!(slug(name)))];
            match self.make_one(request, "/api/tenancy/tenants/", &body).await {
                Ok(id) => self.known().tenant = Some(id),
                Err(error) => missing.note("tenant", name, error)?,
            }
        }
        if let Some(name) = self.config.vrf.as_ref().filter(|_| vrf.is_none() && may(Made::Vrf)) {
            match self.make_one(request, "/api/ipam/vrfs/", &[("name", json!(name))]).await {
                Ok(id) => self.known().vrf = Some(id),
                Err(error) => missing.note("vrf", name, error)?,
            }
        }
        Ok(missing)
    }

    /// The clusters and tags that units name and NetBox has not.
    fn wanted(&self, request: &ObjectWrite) -> (BTreeSet<String>, BTreeSet<String>) {
        let known = self.known();
        let (mut clusters, mut tags) = (BTreeSet::new(), BTreeSet::new());
        for unit in &request.units {
            let fields = match &unit.change {
                ObjectChange::Create { fields } => fields,
                ObjectChange::Update { after, .. } => after,
                ObjectChange::Delete { .. } => continue,
            };
            if let Some(FieldValue::Text(cluster)) = fields.get("cluster") {
                clusters.extend(Some(cluster.clone()).filter(|name| !known.clusters.contains_key(name)));
            }
            if let Some(FieldValue::Set(named)) = fields.get("tags") {
                tags.extend(named.iter().filter(|tag| known.tag(tag).is_none()).cloned());
            }
        }
        (clusters, tags)
    }

    async fn make_cluster(&self, request: &ObjectWrite, name: &str) -> Result<u64, ApiError> {
        let kind = self.config.cluster_type.as_str();
        let found = self.api.list(CLUSTER_TYPES, &[("fields", "id,name"), ("name", kind)]).await?;
        let there = found.iter().find(|row| text_of(row, "name") == kind).and_then(|row| id_of(row, "id"));
        let kind = match there {
            Some(id) => id,
            None => {
                self.make_one(request, CLUSTER_TYPES, &[("name", json!(kind)), ("slug", json!(slug(kind)))])
                    .await?
            }
        };
        let body = [("name", json!(name)), ("type", json!(kind))];
        self.make_one(request, "/api/virtualization/clusters/", &body).await
    }

    async fn make_one(
        &self,
        request: &ObjectWrite,
        path: &str,
        body: &[(&str, Value)],
    ) -> Result<u64, ApiError> {
        request.guard.permit().await?;
        let body: Row = body.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let made = self.api.create_one(path, &body).await?;
        id_of(&made, "id").ok_or_else(|| self.api.malformed("a new object without an id").into())
    }
}

impl Missing {
    /// Keeps a refusal; any other error ends the write.
    fn note(&mut self, what: &'static str, name: &str, error: ApiError) -> Result<(), ApiError> {
        let why = match error {
            ApiError::Refused { message, .. } => message,
            ApiError::Server(ProviderError::Denied { reason, .. }) => reason,
            other @ ApiError::Server(_) => return Err(other),
        };
        self.0.insert((what, name.to_owned()), why);
        Ok(())
    }
}
