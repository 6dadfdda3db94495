//! The definitions of Netstead's own kinds, for `kubectl apply`.

/// As YAML; several documents have `---` between.
pub const DEFINITIONS: &str = include_str!("definitions/dnsrecords.yaml");

#[cfg(test)]
mod tests {
    use netstead_model::RecordType;
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_type_of_record_can_be_declared() {
        let definition: Value = serde_saphyr::from_str(DEFINITIONS).unwrap();
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let types = schema["properties"]["spec"]["properties"]["type"]["enum"].as_array().unwrap();
        let types: Vec<&str> = types.iter().filter_map(Value::as_str).collect();
        assert_eq!(types, RecordType::ALL.map(RecordType::as_str));
    }
}
