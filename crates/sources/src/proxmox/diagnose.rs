//! Checks of a cluster for `netstead doctor`: does it answer, which release is it, which privilege is missing.

use netstead_model::Diagnosis;

use super::{
    api::{Api, ApiError},
    types::{Permissions, Version, grants},
};

/// A privilege that is needed, and for what.
struct Needed {
    privilege: &'static str,
    path: &'static str,
    without: &'static str,
}

const AUDIT: Needed = Needed {
    privilege: "VM.Audit",
    path: "/vms",
    without: "no guest is seen, and none of their names is made",
};
const STATUS: Needed = Needed {
    privilege: "Sys.Audit",
    path: "/",
    without: "quorum, tasks and the bridges of nodes are not seen",
};
const SDN: Needed = Needed { privilege: "SDN.Audit", path: "/sdn", without: "VLANs of vnets are not seen" };
const AGENT_WITHOUT: &str = "addresses of machines are not seen, only those of containers and of cloud-init";

/// `pools` are those of the filter.
pub(super) async fn diagnose(api: &Api, pools: &[String]) -> Vec<Diagnosis> {
    let version = match api.get::<Version>(&["version"]).await {
        Ok(version) => version.version.unwrap_or_default(),
        Err(error) => return vec![unanswered(&error)],
    };
    let server = api.server();
    let major: u32 = version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or_default();
    let mut found = vec![if (1..7).contains(&major) {
        Diagnosis::problem(format!("{server} is Proxmox VE {version}"), "Netstead needs 7.0 or later")
    } else {
        Diagnosis::fine(format!("{server} is Proxmox VE {version}"))
    }];
    let permissions = match api.get::<Permissions>(&["access", "permissions"]).await {
        Ok(permissions) => permissions,
        Err(error) => {
            let hint = "`pveum user token permissions USER TOKEN` shows them on a node";
            found.push(Diagnosis::note(format!("the privileges cannot be read: {error}"), hint));
            return found;
        }
    };
    let agent = if major >= 9 { "VM.GuestAgent.Audit" } else { "VM.Monitor" };
    let agent = Needed { privilege: agent, path: "/vms", without: AGENT_WITHOUT };
    let missing: Vec<Needed> =
        [AUDIT, agent, STATUS, SDN].into_iter().filter(|needed| !is_granted(&permissions, needed)).collect();
    let hidden: Vec<&String> =
        pools.iter().filter(|pool| !grants(&permissions, "Pool.Audit", &format!("/pool/{pool}"))).collect();
    if missing.is_empty() && hidden.is_empty() {
        found.push(Diagnosis::fine("the credentials have every privilege that is needed"));
    }
    for needed in missing {
        let text = format!("`{}` on `{}` is missing: {}", needed.privilege, needed.path, needed.without);
        let hint = remedy(needed.privilege);
        let serious = needed.path == "/vms";
        found.push(if serious { Diagnosis::problem(text, hint) } else { Diagnosis::note(text, hint) });
    }
    for pool in hidden {
        let text = format!(
            "`Pool.Audit` on `/pool/{pool}` is missing: `pools` has it, and the list does not show which guests are in it"
        );
        found.push(Diagnosis::problem(text, remedy("Pool.Audit")));
    }
    found
}

/// Whether the privilege is there for everything below the path, or at least for a part of it.
fn is_granted(permissions: &Permissions, needed: &Needed) -> bool {
    let below = format!("{}/", needed.path.trim_end_matches('/'));
    let covers = |path: &str| path == "/" || path == needed.path || path.starts_with(&below);
    let pool = |path: &str| needed.path == "/vms" && path.starts_with("/pool/");
    let mut holding = permissions.iter().filter(|(_, own)| own.contains_key(needed.privilege));
    holding.any(|(path, _)| covers(path) || pool(path))
}

/// The role that has the privilege, and how it is given.
fn remedy(privilege: &str) -> String {
    if privilege == "VM.Monitor" {
        return "PVEAuditor of Proxmox VE 8 lacks it: `pveum role add NetsteadAgent --privs VM.Monitor`, then \
                `pveum acl modify /vms --tokens 'USER@REALM!NAME' --roles NetsteadAgent`"
            .into();
    }
    "the role PVEAuditor has it: `pveum acl modify / --tokens 'USER@REALM!NAME' --roles PVEAuditor`; a token with \
     privilege separation needs it beside its user"
        .into()
}

fn unanswered(error: &ApiError) -> Diagnosis {
    let hint = match error {
        ApiError::Denied { .. } => {
            "correct `token_id` and `token_secret`; `pveum user token list USER@REALM` shows the tokens on a node"
        }
        ApiError::Unreachable(text) if text.contains("ertificate") => {
            "set `ca_file` to the cluster's /etc/pve/pve-root-ca.pem, or `fingerprint` to what \
             `pvenode cert info` shows"
        }
        _ => "see that `url` is a node of the cluster, with port 8006",
    };
    Diagnosis::problem(error.to_string(), hint)
}
