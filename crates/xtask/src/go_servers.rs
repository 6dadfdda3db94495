//! Servers that are in no package registry, built from the Go module proxy for the tests.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::{
    shell::{command, is_installed, output},
    tools::{directory, politely, program},
};

/// A server that Go builds from one module.
struct GoServer {
    /// The package in the cache without its version, and the program in it.
    name: &'static str,
    program: &'static str,
    module: &'static str,
    version: &'static str,
    /// The variable that the version is linked into.
    version_variable: &'static str,
    /// Files of its front end, which it embeds and no test looks at.
    placeholders: &'static [&'static str],
}

/// The version is named in the testkit too.
const ADGUARD_HOME: GoServer = GoServer {
    name: "adguardhome",
    program: "AdGuardHome",
    module: "github.com/AdguardTeam/AdGuardHome",
    version: "0.107.79",
    version_variable: "github.com/AdguardTeam/AdGuardHome/internal/version.version",
    placeholders: &["build/static/index.html", "build/static/login.html", "build/static/install.html"],
};

/// Builds what is missing. Where that does not work the tests use the fakes alone, and this says so.
pub(crate) fn provide() {
    let server = &ADGUARD_HOME;
    if let Err(error) = server.provide() {
        eprintln!("note: {} is tested against a fake only: {error:#}", server.program);
    }
}

impl GoServer {
    fn provide(&self) -> Result<()> {
        let directory = directory(&format!("{}-{}", self.name, self.version));
        let built = program(&directory, self.program);
        if built.is_file() {
            return Ok(());
        }
        if !is_installed("go") {
            bail!("there is no `go`");
        }
        eprintln!("note: {} {} is built into {}", self.program, self.version, directory.display());
        let scratch = directory.join("build");
        let outcome = self.build(&scratch, &built);
        // Only the program is worth its room.
        let _ = fs::remove_dir_all(&scratch);
        outcome
    }

    fn build(&self, scratch: &Path, built: &Path) -> Result<()> {
        let _ = fs::remove_dir_all(scratch);
        fs::create_dir_all(scratch).with_context(|| format!("{} cannot be made", scratch.display()))?;
        let go = |words: &[&str], at: &Path| {
            let mut go = politely(command("go").args(words));
            go.current_dir(at).env("CGO_ENABLED", "0").env("GOFLAGS", "-buildvcs=false -modcacherw");
            go.env("GOMODCACHE", scratch.join("modules")).env("GOCACHE", scratch.join("cache"));
            output(&mut go)
        };
        let what = format!("{}@v{}", self.module, self.version);
        let source = source_directory(&go(&["mod", "download", "-json", &what], scratch)?)?;
        for file in self.placeholders {
            let file = source.join(file);
            fs::create_dir_all(file.parent().unwrap_or(&source))?;
            fs::write(&file, "<!doctype html>\n")?;
        }
        let link = format!("-s -w -X {}=v{}", self.version_variable, self.version);
        let (bin, unfinished) = (built.parent().unwrap_or(scratch), scratch.join(self.program));
        go(&["build", "-trimpath", "-ldflags", &link, "-o", &unfinished.to_string_lossy(), "."], &source)?;
        fs::create_dir_all(bin)?;
        // A build that was ended half way leaves no program.
        fs::rename(&unfinished, built).with_context(|| format!("{} cannot be made", built.display()))
    }
}

/// The directory in what `go mod download -json` prints.
fn source_directory(json: &str) -> Result<PathBuf> {
    let said: serde_json::Value = serde_json::from_str(json).context("`go mod download` prints no JSON")?;
    let source = said.get("Dir").and_then(serde_json::Value::as_str).map(PathBuf::from);
    source.context("`go mod download` does not say where the source is")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_is_where_go_says() {
        let json = "{\n\t\"Path\": \"example.net/x\",\n\t\"Dir\": \"/m/example.net/x@v1.0.0\",\n\t\"Sum\": \"h1:x\"\n}\n";
        assert_eq!(source_directory(json).unwrap(), Path::new("/m/example.net/x@v1.0.0"));
        assert!(source_directory("{}").is_err());
    }
}
