//! Helm, built by `cargo xtask test --peers`.

use std::{
    io,
    path::{Path, PathBuf},
    process::Command,
};

use crate::tools::tool;

/// The version that `cargo xtask test --peers` builds.
const HELM: &str = "helm-3.19.0";

/// The version that charts are rendered for: a Helm that was built from its module knows none.
const KUBERNETES: &str = "1.36.4";

/// The real Helm.
#[derive(Debug)]
pub struct Helm {
    program: PathBuf,
}

impl Helm {
    /// None where it was not built.
    pub fn find() -> Option<Self> {
        tool(HELM, "helm").map(|program| Self { program })
    }

    /// Renders a chart as release `name` in `namespace`, with these files of values and single ones (`a.b=JSON`).
    ///
    /// # Errors
    ///
    /// If the values are refused: what Helm says.
    pub fn render(
        &self,
        chart: &Path,
        (name, namespace): (&str, &str),
        files: &[PathBuf],
        values: &[&str],
    ) -> io::Result<String> {
        let home = tempfile::tempdir()?;
        let mut command = Command::new(&self.program);
        command.args(["template", name, "--namespace", namespace, "--kube-version", KUBERNETES]);
        command.arg(chart).env("HOME", home.path());
        for file in files {
            command.arg("--values").arg(file);
        }
        for value in values {
            command.args(["--set-json", value]);
        }
        let output = command.output()?;
        if !output.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        String::from_utf8(output.stdout).map_err(io::Error::other)
    }
}
