//! A page of the guide that is typed as it stands; only places are others: addresses, files with secrets, directories.

use std::{path::Path, process::Command};

use netstead_testkit::Machine;

use crate::sandbox::{CommandOutput, Sandbox};

/// A page of the guide, and a user who reads it.
pub(crate) struct Reader {
    pub(crate) text: String,
    pub(crate) sandbox: Sandbox,
}

impl Reader {
    pub(crate) fn of(page: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide").join(page);
        Self { text: std::fs::read_to_string(path).unwrap(), sandbox: Sandbox::empty() }
    }

    /// The block with this number among those in a language, with everything at its place on this machine.
    pub(crate) fn block(&self, language: &str, number: usize, here: &[(&str, &str)]) -> String {
        let fence = format!("```{language}\n");
        let block = self.text.split(fence.as_str()).nth(number + 1).and_then(|rest| rest.split("```").next());
        let block = block.unwrap_or_else(|| panic!("there is no {language} block {number}"));
        here.iter().fold(block.to_owned(), |text, (there, here)| {
            assert!(text.contains(there), "`{there}` is not in\n{text}");
            text.replace(there, here)
        })
    }

    /// A file of the user, and where it is.
    pub(crate) fn file(&self, name: &str, content: &str) -> String {
        let path = self.sandbox.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    }

    /// Types shell commands.
    pub(crate) fn types(&self, script: &str) -> CommandOutput {
        CommandOutput::from(shell(&self.sandbox, None, script).output().unwrap())
    }
}

/// A shell that gets `script` from the user of `sandbox`, on `machine` if there is one.
pub(crate) fn shell(sandbox: &Sandbox, machine: Option<&Machine>, script: &str) -> Command {
    let plain = sandbox.command();
    let path = std::env::var("PATH").unwrap_or_default();
    let binary = Path::new(env!("CARGO_BIN_EXE_netstead")).parent().unwrap();
    let mut bash = machine.map_or_else(|| Command::new("bash"), |machine| machine.command("bash"));
    bash.args(["-ec", script]).current_dir(sandbox.path());
    bash.env("PATH", format!("{}:{path}", binary.display()));
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => bash.env(name, value),
            None => bash.env_remove(name),
        };
    }
    bash
}
