//! The document, and that it tells the truth.

use insta::assert_snapshot;
use reqwest::Method;
use serde_json::Value;

use crate::support::{Answer, House};

pub(crate) async fn document(house: &House) -> Value {
    let answer = Answer::of(house.bare(Method::GET, "/api/v1/openapi.json")).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, "application/json"));
    answer.body
}

/// Method, path and description of each.
pub(crate) fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let paths = document["paths"].as_object().unwrap();
    let all = paths.iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().unwrap().iter();
        methods.map(|(method, operation)| (method.to_uppercase(), path.clone(), operation.clone()))
    });
    all.collect()
}

#[tokio::test]
async fn the_list_of_routes() {
    let house = House::open().await;
    let document = document(&house).await;
    let mut lines: Vec<String> = operations(&document)
        .iter()
        .map(|(method, path, operation)| {
            let statuses: Vec<_> = operation["responses"].as_object().unwrap().keys().cloned().collect();
            format!(
                "{method:6} {path} {} [{}]",
                operation["operationId"].as_str().unwrap(),
                statuses.join(" ")
            )
        })
        .collect();
    lines.sort();
    assert_snapshot!(lines.join("\n"), @"
    DELETE /api/v1/cluster/members/{id} remove_member [204 400 401 403 404 409 421 503 504]
    DELETE /api/v1/cluster/nodes/{id} remove_node [204 400 401 403 404 409 421 503 504]
    DELETE /api/v1/drift/ignored report_drift_again [200 400 401 403 404 409 421 503 504]
    DELETE /api/v1/pools/{pool} delete_pool [200 400 401 403 404 409 412 421 422 503 504]
    DELETE /api/v1/pools/{pool}/claims/{key} release_claim [200 400 401 403 404 409 421 503 504]
    DELETE /api/v1/pools/{pool}/reservations/{key} delete_reservation [200 400 401 403 404 409 421 503 504]
    DELETE /api/v1/records/{name} delete_records [200 400 401 403 404 409 421 503 504]
    DELETE /api/v1/records/{name}/{type} delete_record [200 400 401 403 404 409 421 503 504]
    DELETE /api/v1/session log_out [204 400 401 403 404 409 421 503 504]
    DELETE /api/v1/sessions/{id} end_session [204 400 401 403 404 409 421 503 504]
    DELETE /api/v1/tokens/{id} revoke_token [204 400 401 403 404 409 421 503 504]
    GET    /api/v1/addresses list_addresses [200 400 401 403 421 503 504]
    GET    /api/v1/addresses/{address} explain_address [200 400 401 403 421 503 504]
    GET    /api/v1/backup backup [200 400 401 403 421 503 504]
    GET    /api/v1/changes list_changes [200 400 401 403 410 421 503 504]
    GET    /api/v1/claims list_claims [200 400 401 403 421 503 504]
    GET    /api/v1/cluster get_cluster [200 400 401 403 421 503 504]
    GET    /api/v1/doctor doctor [200 400 401 403 421 503 504]
    GET    /api/v1/drift list_pool_drift [200 400 401 403 421 503 504]
    GET    /api/v1/drift/ignored list_ignored_drift [200 400 401 403 421 503 504]
    GET    /api/v1/events list_events [200 400 401 403 410 421 503 504]
    GET    /api/v1/events/stream follow_events [200 400 401 403 410 421 503 504]
    GET    /api/v1/names/{name} explain_name [200 400 401 403 421 503 504]
    GET    /api/v1/observations list_observations [200 400 401 403 421 503 504]
    GET    /api/v1/plans list_plans [200 400 401 403 421 503 504]
    GET    /api/v1/plans/{provider} get_plan [200 400 401 403 404 421 503 504]
    GET    /api/v1/plans/{provider}/case get_case [200 400 401 403 404 421 503 504]
    GET    /api/v1/pools list_pools [200 400 401 403 421 503 504]
    GET    /api/v1/pools/{pool} get_pool [200 304 400 401 403 404 421 503 504]
    GET    /api/v1/pools/{pool}/blocks list_pool_blocks [200 400 401 403 404 421 503 504]
    GET    /api/v1/pools/{pool}/claims/{key} get_claim [200 400 401 403 404 421 503 504]
    GET    /api/v1/pools/{pool}/reservations list_pool_reservations [200 400 401 403 404 421 503 504]
    GET    /api/v1/pools/{pool}/usage get_pool_usage [200 400 401 403 404 421 503 504]
    GET    /api/v1/providers list_providers [200 400 401 403 421 503 504]
    GET    /api/v1/records list_records [200 400 401 403 421 503 504]
    GET    /api/v1/records/{name}/{type} get_record [200 400 401 403 404 421 503 504]
    GET    /api/v1/reservations list_reservations [200 400 401 403 421 503 504]
    GET    /api/v1/session get_session [200 400 401 403 404 421 503 504]
    GET    /api/v1/sessions list_sessions [200 400 401 403 421 503 504]
    GET    /api/v1/sources list_sources [200 400 401 403 421 503 504]
    GET    /api/v1/status get_status [200 400 401 403 421 503 504]
    GET    /api/v1/tokens list_tokens [200 400 401 403 421 503 504]
    GET    /api/v1/usage get_usage [200 400 401 403 421 503 504]
    GET    /api/v1/workloads list_workloads [200 400 401 403 421 503 504]
    GET    /api/v1/zones list_zones [200 400 401 403 421 503 504]
    POST   /api/v1/adopt adopt [200 400 401 403 404 409 410 413 415 421 422 503 504]
    POST   /api/v1/apply apply [200 400 401 403 404 409 410 413 415 421 422 503 504]
    POST   /api/v1/apply/{hash} apply_parked [200 400 401 403 404 409 410 413 415 421 422 503 504]
    POST   /api/v1/bulk bulk [200 400 401 403 404 409 410 413 415 421 422 503 504]
    POST   /api/v1/check check_store [200 400 401 403 404 409 410 413 415 421 422 503 504]
    POST   /api/v1/claims claim_from [200 202 400 401 403 404 409 410 413 415 421 422 503 504]
    POST   /api/v1/clean clean [200 400 401 403 404 409 410 413 415 421 422 503 504]
    POST   /api/v1/cluster/nodes add_node [204 400 401 403 404 409 410 413 415 421 422 503 504]
    POST   /api/v1/drift/ignored ignore_drift [200 400 401 403 404 409 410 413 415 421 422 503 504]
    POST   /api/v1/drift/release release_pool_drift [200 400 401 403 404 409 410 413 415 421 422 503 504]
    POST   /api/v1/drift/restore restore_pool_drift [200 400 401 403 404 409 410 413 415 421 422 503 504]
    POST   /api/v1/pause pause [200 400 401 403 404 409 410 413 415 421 422 503 504]
    POST   /api/v1/pools/{pool}/claims/{key}/move move_claim [200 400 401 403 404 409 410 413 415 421 422 503 504]
    POST   /api/v1/pools/{pool}/claims/{key}/renew renew_claim [200 400 401 403 404 409 410 413 415 421 422 503 504]
    POST   /api/v1/recover recover [200 400 401 403 404 409 410 413 415 421 422 503 504]
    POST   /api/v1/resume resume [200 400 401 403 404 409 410 413 415 421 422 503 504]
    POST   /api/v1/rollback rollback [200 400 401 403 404 409 410 413 415 421 422 503 504]
    POST   /api/v1/sessions open_session [201 400 401 403 404 409 410 413 415 421 422 503 504]
    POST   /api/v1/sessions/link create_login_link [201 400 401 403 404 409 410 413 415 421 422 503 504]
    POST   /api/v1/tokens create_token [201 400 401 403 404 409 410 413 415 421 422 503 504]
    POST   /api/v1/what-if what_if [200 400 401 403 404 409 410 413 415 421 422 503 504]
    PUT    /api/v1/observations/{source} put_observations [200 400 401 403 404 409 410 413 415 421 422 503 504]
    PUT    /api/v1/pools/{pool} put_pool [200 201 400 401 403 404 409 412 413 415 421 422 503 504]
    PUT    /api/v1/pools/{pool}/claims/{key} put_claim [200 201 202 400 401 403 404 409 410 413 415 421 422 503 504]
    PUT    /api/v1/pools/{pool}/reservations/{key} put_reservation [200 400 401 403 404 409 410 413 415 421 422 503 504]
    PUT    /api/v1/records/{name}/{type} put_record [200 400 401 403 404 409 410 413 415 421 422 503 504]
    PUT    /api/v1/session keep_session [200 400 401 403 404 409 410 413 415 421 422 503 504]
    ");
}

#[tokio::test]
async fn every_documented_route_wants_a_token_and_every_operation_is_described() {
    let house = House::open().await;
    let document = document(&house).await;
    assert_eq!(document["components"]["securitySchemes"]["token"]["scheme"], "bearer");
    assert_eq!(document["security"][0]["token"], Value::Array(vec![]));
    let operations = operations(&document);
    assert!(operations.len() >= 50);
    for (method, path, operation) in operations {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let real = path.replace("{pool}", "lan").replace("{key}", "k").replace("{address}", "10.0.0.1");
        let real = real.replace("{source}", "scan").replace("{id}", "abc").replace("{hash}", "0");
        let real =
            real.replace("{name}", "www.home.test").replace("{type}", "A").replace("{provider}", "lan");
        Answer::of(house.bare(method.clone(), &real)).await.problem(401, "unauthenticated");
        assert!(operation["summary"].as_str().is_some_and(|text| text.ends_with('.')), "{method} {path}");
        for status in ["400", "401", "403", "503"] {
            let schema =
                &operation["responses"][status]["content"]["application/problem+json"]["schema"]["$ref"];
            assert_eq!(schema, "#/components/schemas/Problem", "{method} {path} {status}");
        }
    }
}

#[tokio::test]
async fn a_body_may_be_left_out_where_the_document_says_so() {
    let house = House::with_names().await;
    for (method, path, operation) in operations(&document(&house).await) {
        let Some(body) = operation["requestBody"].as_object() else { continue };
        let real = path.replace("{pool}", "lan").replace("{key}", "k").replace("{hash}", "0");
        let real = real.replace("{source}", "scan").replace("{name}", "www.home.test").replace("{type}", "A");
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let answer = house.ask(method.clone(), real.strip_prefix("/api/v1").unwrap()).go().await;
        let refused = answer.body["type"] == "urn:netstead:invalid";
        assert_eq!(body["required"], refused, "{method} {path}: {answer:?}");
    }
}

#[tokio::test]
async fn every_reference_in_the_document_leads_somewhere() {
    let house = House::open().await;
    let document = document(&house).await;
    let text = document.to_string();
    let mut references: Vec<&str> =
        text.split("\"#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    references.sort_unstable();
    references.dedup();
    for name in &references {
        assert!(document["components"]["schemas"][*name].is_object(), "{name}");
    }
    assert!(references.contains(&"PoolInput") && references.contains(&"EventOutput"), "{references:?}");
}

#[tokio::test]
async fn the_page_works_offline() {
    let house = House::open().await;
    let page = Answer::of(house.bare(Method::GET, "/api")).await;
    assert_eq!((page.status, page.header("content-type")), (200, "text/html"));
    let files: Vec<&str> = page.text.split('"').filter_map(|part| part.strip_prefix("./")).collect();
    assert!(files.len() > 3, "{}", page.text);
    for file in &files {
        let answer = Answer::of(house.bare(Method::GET, &format!("/api/{file}"))).await;
        assert_eq!(answer.status, 200, "{file}");
    }
    let start = Answer::of(house.bare(Method::GET, "/api/swagger-initializer.js")).await;
    assert!(start.text.contains("\"v1/openapi.json\""), "below any path of a proxy: {}", start.text);
    for text in [&page.text, &start.text] {
        assert!(!text.contains("http://") && !text.contains("https://"), "{text}");
    }
    Answer::of(house.bare(Method::GET, "/api/nothing.js")).await.problem(404, "not-found");
}
