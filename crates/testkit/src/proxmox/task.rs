//! [`PveTask`]: one entry of `/cluster/tasks`.

use serde_json::{Value, json};

/// A task about a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PveTask {
    /// Tells tasks apart.
    pub number: u32,
    /// `qmconfig`, `qmdestroy`, …
    pub kind: String,
    pub vmid: u32,
    pub is_running: bool,
}

impl PveTask {
    /// A task that ended.
    pub fn ended(number: u32, kind: &str, vmid: u32) -> Self {
        Self { number, kind: kind.to_owned(), vmid, is_running: false }
    }

    /// A task that runs.
    pub fn running(number: u32, kind: &str, vmid: u32) -> Self {
        Self { is_running: true, ..Self::ended(number, kind, vmid) }
    }

    /// As the list shows it: one that runs has neither an end nor an outcome.
    pub(super) fn shown(&self) -> Value {
        let Self { number, kind, vmid, is_running } = self;
        let start = 1_760_000_000 + number;
        let mut task = json!({
            "upid": format!("UPID:pve1:{number:08X}:00000001:{start:08X}:{kind}:{vmid}:root@pam:"),
            "node": "pve1", "type": kind, "id": vmid.to_string(), "user": "root@pam", "starttime": start,
        });
        if let Some(task) = task.as_object_mut().filter(|_| !is_running) {
            task.insert("endtime".into(), json!(start + 5));
            task.insert("status".into(), json!("OK"));
        }
        task
    }
}
