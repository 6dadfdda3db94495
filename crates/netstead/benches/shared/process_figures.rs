//! Memory and CPU of a process, as Linux tells them.

use std::time::Duration;

use netstead_testkit::{Process, wait_until};

const SOON: Duration = Duration::from_mins(1);

/// The memory of a process, in megabytes, once it no longer changes much.
pub fn settled_memory(server: &mut Process) -> f64 {
    let mut before = 0.0;
    let settled = wait_until(SOON, || {
        std::thread::sleep(Duration::from_secs(2));
        let now = memory(server.id());
        let settled = (now - before).abs() < 1.0;
        before = now;
        settled.then_some(now)
    });
    settled.unwrap_or(before)
}

fn memory(id: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("a running server");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
    let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse().expect("a number");
    kilobytes / 1000.0
}

/// The CPU time of a process so far, in milliseconds. Linux counts hundredths of a second.
pub fn cpu(server: &Process) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", server.id())).expect("a running server");
    // Behind the name, which may have spaces: the twelfth and the thirteenth.
    let rest = text.rsplit_once(')').expect("a name").1;
    let ticks = rest.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok());
    ticks.sum::<f64>() * 10.0
}
