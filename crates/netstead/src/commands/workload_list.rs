//! `netstead output`: everything that runs, with its facts, interfaces and names.

use std::fmt::Write as _;

use netstead_client::{
    WorkloadQuery,
    types::{InterfaceOutput, WorkloadOutput},
};
use netstead_plan::wrap;

use super::Context;
use crate::{
    cli::{Format, pipam_aliases::Output},
    output::{self, WIDTH, plain},
};

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

pub(crate) async fn output(context: &Context, args: &Output) -> anyhow::Result<()> {
    let workloads = context.client.all(WorkloadQuery::default()).await?;
    let format = if args.json { Some(Format::Json) } else { context.format };
    match format {
        Some(format @ (Format::Json | Format::Yaml)) => output::document(&workloads, format),
        Some(format) => output::list(&workloads, Some(format), context.now()),
        None => output::emit(&render(&workloads)),
    }
}

/// A paragraph for each.
fn render(workloads: &[WorkloadOutput]) -> String {
    let mut text = String::new();
    for workload in workloads {
        if !text.is_empty() {
            text.push('\n');
        }
        let WorkloadOutput { name, kind, source, id, state, .. } = workload;
        let _ = writeln!(text, "{}", plain(&format!("{name}  {kind} {source}/{id}, {state}")));
        let mut add = |what: &str, said: &str| {
            if said.is_empty() {
                return;
            }
            let lines = wrap(&plain(said), 14, WIDTH).join("\n");
            let _ = writeln!(text, "  {what:<11} {}", lines.trim_start());
        };
        add("hostname", workload.hostname.as_deref().unwrap_or_default());
        add("facts", &facts(workload));
        add("tags", &workload.tags.join(", "));
        for one in &workload.interfaces {
            add("interface", &interface(one));
        }
        add("names", &workload.names.join(", "));
        let comments = workload.facts.get("comments").map(String::as_str).unwrap_or_default();
        add("comments", &comments.split_whitespace().collect::<Vec<_>>().join(" "));
        for why in &workload.why_not {
            add("why not", why);
        }
    }
    text
}

fn facts(workload: &WorkloadOutput) -> String {
    let fact = |name: &str| workload.facts.get(name).map(String::as_str);
    let size = |name: &str| {
        let bytes: u64 = fact(name)?.parse().ok()?;
        let text = if bytes.is_multiple_of(GIB) {
            format!("{} GiB", bytes / GIB)
        } else {
            format!("{} MiB", bytes / MIB)
        };
        Some(format!("{text} {name}"))
    };
    let all = [
        fact("status").map(str::to_owned),
        fact("node").map(|node| format!("on {node}")),
        fact("cluster").map(|cluster| format!("cluster {cluster}")),
        fact("cpus").map(|cpus| format!("{cpus} CPUs")),
        size("memory"),
        size("disk"),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn interface(interface: &InterfaceOutput) -> String {
    let InterfaceOutput { name, mac, vlan, addresses } = interface;
    let vlan = vlan.map(|vlan| format!("VLAN {vlan}"));
    let about: Vec<&str> = [name.as_deref(), mac.as_deref(), vlan.as_deref()].into_iter().flatten().collect();
    let addresses = if addresses.is_empty() { "no address".to_owned() } else { addresses.join(", ") };
    if about.is_empty() { addresses } else { format!("{}: {addresses}", about.join(" ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_workload_is_a_paragraph_with_its_facts_interfaces_and_names() {
        let workload: WorkloadOutput = serde_json::from_value(serde_json::json!({
            "source": "pve", "id": "101/00000065", "kind": "vm", "name": "web", "state": "present",
            "addresses": ["10.0.3.11"], "names": ["all.lab.test", "web.lab.test"], "hostname": "web",
            "why_not": ["fe80::1 is left out: it is a link-local address"], "tags": ["prod", "www"],
            "facts": { "node": "pve1", "cluster": "lab", "cpus": "2", "memory": "4294967296", "disk": "1048576000",
                       "status": "running", "comments": "The web\nserver." },
            "interfaces": [
                { "name": "eth0", "mac": "bc:24:11:00:00:65", "vlan": 20, "addresses": ["10.0.3.11"] },
                { "addresses": [] },
            ],
        }))
        .unwrap();
        insta::assert_snapshot!(render(&[workload]), @r"
        web  vm pve/101/00000065, present
          hostname    web
          facts       running, on pve1, cluster lab, 2 CPUs, 4 GiB memory, 1000 MiB disk
          tags        prod, www
          interface   eth0 bc:24:11:00:00:65 VLAN 20: 10.0.3.11
          interface   no address
          names       all.lab.test, web.lab.test
          comments    The web server.
          why not     fe80::1 is left out: it is a link-local address
        ");
    }
}
