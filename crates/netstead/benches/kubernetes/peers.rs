//! The same work by Netstead and by external-dns: 5,000 Ingresses into a PowerDNS, and then one more among them.

use std::{path::Path, process::Command, time::Duration};

use netstead_testkit::{KubeApiServer, PowerDns, Process, RealExternalDns};

use crate::{
    INGRESSES, PRESENT, answer::Waiter, make, now, process_figures::settled_memory, report::Report, serve,
};

/// Ingresses that are made one after another for each of them.
const ALONE: usize = 15;

/// Either of them into a server of its own. The cluster has all objects already.
pub fn measure(report: &mut Report, cluster: &KubeApiServer) {
    let Some(external_dns) = RealExternalDns::find() else {
        eprintln!("external-dns is not built: `cargo xtask bench kubernetes --peers` builds it");
        return;
    };
    for (who, number) in [("Netstead", 0), ("external-dns", 1)] {
        let Some(dns) = PowerDns::start(&["bench.test"]) else { return };
        let port = dns.address().port();
        let dir = tempfile::tempdir().expect("a directory");
        // The last one that was put, and all of them are written before or with it.
        let last = Waiter::begin(port, &format!("n{}.bench.test", PRESENT - 1));
        let begun = now();
        let mut process = match number {
            0 => netstead(dir.path(), cluster, &dns),
            _ => start(&external_dns, cluster, &dns),
        };
        report.note(
            format!("{who}, into PowerDNS: until {PRESENT} names are there"),
            last.answered() - begun,
            "ms",
        );
        report.note(format!("{who}: memory then"), settled_memory(&mut process), "MB");
        let mut times: Vec<f64> =
            (0..ALONE).map(|one| make(cluster, port, &format!("beside{number}-{one}"))).collect();
        times.sort_by(f64::total_cmp);
        report.note(format!("{who}: an Ingress among them, p50"), times[times.len() / 2], "ms");
        report.note(format!("{who}: an Ingress among them, slowest"), times[times.len() - 1], "ms");
        let _ = process.kill();
        for one in 0..ALONE {
            cluster.delete(&format!("{INGRESSES}/beside{number}-{one}"));
        }
    }
}

fn netstead(dir: &Path, cluster: &KubeApiServer, dns: &PowerDns) -> Process {
    let provider = format!(
        "[dns.pdns]\ntype = \"powerdns\"\nurl = \"{}\"\napi_key = \"{}\"\ndomains = [\"bench.test\"]\n",
        dns.api_url(),
        dns.api_key()
    );
    serve(dir, cluster, netstead_testkit::free_port().expect("a port"), &provider)
}

/// It follows changes, and looks again as often as it can.
fn start(external_dns: &RealExternalDns, cluster: &KubeApiServer, dns: &PowerDns) -> Process {
    let mut command: Command = external_dns.command();
    command.arg(format!("--kubeconfig={}", cluster.kubeconfig().display()));
    command.args([
        "--source=ingress",
        "--provider=pdns",
        "--policy=sync",
        "--registry=txt",
        "--txt-owner-id=bench",
        "--domain-filter=bench.test",
        "--events",
        "--min-event-sync-interval=1s",
        "--interval=1m",
    ]);
    command.arg(format!("--pdns-server={}", dns.api_url()));
    command.arg(format!("--pdns-api-key={}", dns.api_key()));
    let mut process = Process::start("external-dns", &mut command).expect("external-dns");
    std::thread::sleep(Duration::from_millis(200));
    assert!(process.running(), "external-dns ended: {}", process.log());
    process
}
