//! The reviews that the API server sends, and the answers to them, of version v1.

use serde::Deserialize;
use serde_json::{Value, json};

use super::verdict::{self, Held, Refusal};
use crate::{
    conversion,
    object::{PoolKey, PoolObject},
};

/// The kind of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
    #[serde(other)]
    Other,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct GroupKind {
    pub(crate) group: String,
    pub(crate) kind: String,
}

/// `request` of an `AdmissionReview`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Request {
    uid: String,
    pub(crate) kind: GroupKind,
    /// Empty where the server makes the name.
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) namespace: String,
    pub(crate) operation: Operation,
    #[serde(default)]
    pub(crate) object: Option<PoolObject>,
    #[serde(default)]
    pub(crate) old_object: Option<PoolObject>,
}

impl Request {
    /// The name for messages.
    pub(crate) fn shown_name(&self) -> &str {
        let given = self.object.as_ref().map_or("", |object| object.metadata.name.as_str());
        if self.name.is_empty() { given } else { &self.name }
    }
}

#[derive(Debug, Deserialize)]
struct AdmissionReview {
    request: Request,
}

#[derive(Debug, Deserialize)]
struct ConversionReview {
    request: ConversionRequest,
}

#[derive(Debug, Deserialize)]
struct ConversionRequest {
    uid: String,
    #[serde(rename = "desiredAPIVersion")]
    wanted: String,
    #[serde(default)]
    objects: Vec<Value>,
}

/// Answers a review of the validating webhook.
pub(super) fn validate(
    body: &[u8],
    held: impl FnOnce(&PoolKey) -> Result<Held, Refusal>,
) -> Result<Value, serde_json::Error> {
    let AdmissionReview { request } = serde_json::from_slice(body)?;
    let response = match verdict::judge(&request, held) {
        Ok(warnings) if warnings.is_empty() => json!({ "uid": request.uid, "allowed": true }),
        Ok(warnings) => json!({ "uid": request.uid, "allowed": true, "warnings": warnings }),
        Err(refusal) => json!({ "uid": request.uid, "allowed": false, "status": status(&refusal) }),
    };
    Ok(admission(&response))
}

/// Answers a review of the defaulting webhook.
pub(super) fn default(body: &[u8]) -> Result<Value, serde_json::Error> {
    let AdmissionReview { request } = serde_json::from_slice(body)?;
    let Some(length) = verdict::default_length(&request) else {
        return Ok(admission(&json!({ "uid": request.uid, "allowed": true })));
    };
    let patch = json!([{ "op": "add", "path": "/spec/allocationPrefixLength", "value": length }]).to_string();
    let patch = data_encoding::BASE64.encode(patch.as_bytes());
    Ok(admission(&json!({ "uid": request.uid, "allowed": true, "patchType": "JSONPatch", "patch": patch })))
}

/// Answers a request to convert objects. One that cannot be converted fails all, as the API server wants it.
pub(super) fn convert(body: &[u8]) -> Result<Value, serde_json::Error> {
    let ConversionReview { request } = serde_json::from_slice(body)?;
    let converted: Result<Vec<Value>, _> =
        request.objects.into_iter().map(|object| conversion::convert(object, &request.wanted)).collect();
    let response = match converted {
        Ok(objects) => {
            json!({ "uid": request.uid, "convertedObjects": objects, "result": { "status": "Success" } })
        }
        Err(error) => {
            let result = json!({ "status": "Failure", "message": error.to_string() });
            json!({ "uid": request.uid, "convertedObjects": [], "result": result })
        }
    };
    Ok(json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response }))
}

fn admission(response: &Value) -> Value {
    json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response })
}

fn status(refusal: &Refusal) -> Value {
    let cause = |error: &crate::in_cluster::FieldError| {
        let message = format!("Invalid value: \"{}\": {}", error.value, error.problem);
        json!({ "reason": "FieldValueInvalid", "field": error.field, "message": message })
    };
    let mut status = json!({ "status": "Failure", "code": refusal.code, "reason": refusal.reason, "message": refusal.message });
    if let (false, Some(fields)) = (refusal.causes.is_empty(), status.as_object_mut()) {
        let causes: Vec<Value> = refusal.causes.iter().map(cause).collect();
        fields.insert("details".to_owned(), json!({ "causes": causes }));
    }
    status
}
