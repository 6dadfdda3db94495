//! The same objects as the provider's, written by a bare HTTP client that looks at nothing.

use std::time::Duration;

use netstead_model::{Clock as _, SystemClock};
use netstead_testkit::NetBox;
use reqwest::Client;
use serde_json::{Value, json};

use super::{MACHINES, address, mac, name};

/// Objects in one request, as the provider has it.
const BATCH: usize = 50;

/// A body with a name and its slug.
pub fn named(name: &str) -> Value {
    json!({ "name": name, "slug": name })
}

/// Makes all objects of a round, and says how long that took.
pub async fn write(netbox: &NetBox, round: u32) -> Duration {
    let client = Client::builder().no_proxy().build().expect("a client");
    let cluster = netbox.list("/api/virtualization/clusters/?name=bench")[0]["id"].clone();
    let mark = |kind: &str, part: &str, number: u32| {
        let mark = format!("[netstead bare {kind}:pve:{part}@{}]", name(round, number));
        json!({ "netstead_key": mark })
    };
    let all = || 0..MACHINES;
    let machines = all().map(|number| {
        json!({ "name": name(round, number), "cluster": cluster, "status": "active", "vcpus": 2, "memory": 4096,
            "disk": 32768, "tags": [{ "slug": "vm" }], "custom_fields": mark("machine", "", number) })
    });
    let machines: Vec<Value> = machines.collect();
    let begun = SystemClock.monotonic();
    let machines = send(&client, netbox, "/api/virtualization/virtual-machines/", &machines).await;
    let interfaces = all().zip(&machines).map(|(number, id)| {
        json!({ "name": "eth0", "virtual_machine": id, "custom_fields": mark("interface", "eth0", number) })
    });
    let interfaces: Vec<Value> = interfaces.collect();
    let interfaces = send(&client, netbox, "/api/virtualization/interfaces/", &interfaces).await;
    let on = |id: &u64, mut body: Value| {
        body["assigned_object_type"] = json!("virtualization.vminterface");
        body["assigned_object_id"] = json!(id);
        body
    };
    let macs = all().zip(&interfaces).map(|(number, id)| {
        on(id, json!({ "mac_address": mac(round, number), "custom_fields": mark("mac", "eth0", number) }))
    });
    let macs: Vec<Value> = macs.collect();
    send(&client, netbox, "/api/dcim/mac-addresses/", &macs).await;
    let addresses = all().zip(&interfaces).map(|(number, id)| {
        let at = address(round, number);
        let body = json!({ "address": format!("{at}/8"), "status": "active",
            "dns_name": format!("{}.bench.test", name(round, number)), "custom_fields": mark("address", &at, number) });
        on(id, body)
    });
    let addresses: Vec<Value> = addresses.collect();
    send(&client, netbox, "/api/ipam/ip-addresses/", &addresses).await;
    SystemClock.monotonic().saturating_sub(begun)
}

/// The ids of the objects, in order.
async fn send(client: &Client, netbox: &NetBox, path: &str, bodies: &[Value]) -> Vec<u64> {
    let mut ids = Vec::with_capacity(bodies.len());
    for some in bodies.chunks(BATCH) {
        let request = client.post(format!("{}{path}", netbox.url()));
        let request = request.header("authorization", format!("Token {}", netbox.token()));
        let request = request.header("content-type", "application/json");
        let answer = request.body(json!(some).to_string()).send().await.expect("an answer");
        let status = answer.status();
        let text = answer.text().await.expect("a body");
        assert!(status.is_success(), "{path} is answered with {status}: {text}");
        let made: Vec<Value> = serde_json::from_str(&text).expect("JSON");
        ids.extend(made.iter().filter_map(|one| one["id"].as_u64()));
    }
    assert_eq!(ids.len(), bodies.len());
    ids
}
