//! Checks for `netstead doctor` of a NetBox that can be read.

use netstead_model::{Diagnosis, ObjectKind};

use super::{NetBox, create::KINDS, path_of};
use crate::netbox::KeyFieldState;

impl NetBox {
    pub(super) async fn findings(&self) -> Vec<Diagnosis> {
        let mut findings = Vec::new();
        let trouble =
            |error: String| Diagnosis::problem(error, "look at the token and the permissions of its user");
        match self.api.version().await {
            Ok(version) => findings.push(Diagnosis::fine(format!("it is NetBox {version}"))),
            Err(error) => findings.push(trouble(error.to_string())),
        }
        match self.api.look_at_key_field().await {
            Ok(KeyFieldState::Ready) => {}
            Ok(KeyFieldState::Incomplete { .. }) => {
                let field = self.api.key_field().name();
                let text = format!("there is no custom field `{field}` for all our objects yet");
                findings.push(Diagnosis::note(text, "it is made with the first object"));
            }
            Err(error) => findings.push(trouble(error.to_string())),
        }
        let has_macs = self.known().has_macs();
        for kind in KINDS.iter().filter(|kind| has_macs || kind.as_str() != "mac") {
            match self.api.may_add(path_of(kind)).await {
                Ok(true) => {}
                Ok(false) => {
                    let text = format!("the token may not add {}", plural(kind));
                    let hint = "let the token write, and give its user the permission to view, add, change and delete them";
                    findings.push(Diagnosis::problem(text, hint));
                }
                Err(error) => findings.push(trouble(error.to_string())),
            }
        }
        findings
    }
}

fn plural(kind: &ObjectKind) -> &'static str {
    match kind.as_str() {
        "machine" => "virtual machines",
        "interface" => "interfaces of virtual machines",
        "mac" => "MAC addresses",
        _ => "IP addresses",
    }
}
