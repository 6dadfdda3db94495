//! Servers and peers that are in no package registry, built from the Go module proxy for the tests.

use std::{
    env, fs,
    path::{Path, PathBuf},
    thread::{self, JoinHandle},
};

use anyhow::{Context, Result, bail};

use crate::{
    shell::{command, is_installed, output},
    tools::{directory, politely, program},
};

/// A program that Go builds from one module.
struct GoServer {
    /// The package in the cache without its version, and the program in it.
    name: &'static str,
    program: &'static str,
    module: &'static str,
    version: &'static str,
    /// The package with its `main`.
    package: &'static str,
    /// The variable that the version is linked into, if one needs to be.
    version_variable: Option<&'static str>,
    /// Files of its front end, which it embeds and no test looks at.
    placeholders: &'static [&'static str],
}

/// The version is named in the testkit too.
const ADGUARD_HOME: GoServer = GoServer {
    name: "adguardhome",
    program: "AdGuardHome",
    module: "github.com/AdguardTeam/AdGuardHome",
    version: "0.107.79",
    package: ".",
    version_variable: Some("github.com/AdguardTeam/AdGuardHome/internal/version.version"),
    placeholders: &["build/static/index.html", "build/static/login.html", "build/static/install.html"],
};

/// Programs beside Netstead: about six, two and a half, four and a half, and five minutes of one core. The versions are named in the
/// testkit too.
const PEERS: [GoServer; 4] = [
    GoServer {
        name: "external-dns",
        program: "external-dns",
        module: "sigs.k8s.io/external-dns",
        version: "0.21.0",
        package: ".",
        version_variable: None,
        placeholders: &[],
    },
    GoServer {
        name: "dnsweaver",
        program: "dnsweaver",
        module: "github.com/maxfield-allison/dnsweaver",
        version: "1.6.0",
        package: "./cmd/dnsweaver",
        version_variable: None,
        placeholders: &[],
    },
    GoServer {
        name: "helm",
        program: "helm",
        module: "helm.sh/helm/v3",
        version: "3.19.0",
        package: "./cmd/helm",
        version_variable: None,
        placeholders: &[],
    },
    OPENTOFU,
];

/// The other program that starts the Terraform provider.
const OPENTOFU: GoServer = GoServer {
    name: "opentofu",
    program: "tofu",
    module: "github.com/opentofu/opentofu",
    version: "1.12.6",
    package: "./cmd/tofu",
    version_variable: None,
    placeholders: &[],
};

/// Where the `OpenTofu` of the peers is.
pub(crate) fn opentofu() -> PathBuf {
    program(&directory(&format!("{}-{}", OPENTOFU.name, OPENTOFU.version)), OPENTOFU.program)
}

/// Builds the peers that are missing. Without them their tests cannot run.
pub(crate) fn provide_peers() -> Result<()> {
    for peer in &PEERS {
        peer.provide().with_context(|| format!("{} cannot be built", peer.program))?;
    }
    Ok(())
}

/// Programs of a module that cannot be built by its name alone: its own list of modules goes with it.
struct GoRecipe {
    /// The package in the cache without its version.
    name: &'static str,
    version: &'static str,
    /// The programs in it, with the packages that have their `main`. What they share is compiled once.
    programs: &'static [(&'static str, &'static str)],
    link: &'static str,
    go_mod: &'static str,
    go_sum: &'static str,
}

/// The API server that the source `kubernetes` and the operator are tested against, the garbage collector beside it, and the etcd
/// below it. The versions are named in the testkit too.
const KUBERNETES: [GoRecipe; 2] = [
    GoRecipe {
        name: "kube-etcd",
        version: "3.6.8",
        programs: &[("etcd", "go.etcd.io/etcd/server/v3")],
        link: "-s -w",
        go_mod: include_str!("../recipes/etcd/go.mod"),
        go_sum: include_str!("../recipes/etcd/go.sum"),
    },
    GoRecipe {
        name: "kube-apiserver",
        version: "1.36.4",
        programs: &[
            ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
            ("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
        ],
        link: "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.4 -X k8s.io/component-base/version.gitMajor=1 \
               -X k8s.io/component-base/version.gitMinor=36",
        go_mod: include_str!("../recipes/kube-apiserver/go.mod"),
        go_sum: include_str!("../recipes/kube-apiserver/go.sum"),
    },
];

/// Builds in progress, beside the first steps.
#[derive(Debug)]
pub(crate) struct GoServers(JoinHandle<()>);

impl GoServers {
    /// Begins to build what is missing.
    pub(crate) fn prepare() -> Self {
        Self(thread::spawn(provide))
    }

    /// Returns once nothing is built any more.
    pub(crate) fn wait(self) {
        let _ = self.0.join();
    }
}

/// Builds what is missing. Where that does not work the tests use the fakes alone, or fail, and this says so.
fn provide() {
    let server = &ADGUARD_HOME;
    if let Err(error) = server.provide() {
        eprintln!("note: {} is tested against a fake only: {error:#}", server.program);
    }
    if env::var_os("KUBEBUILDER_ASSETS").is_some() {
        return;
    }
    for recipe in &KUBERNETES {
        if let Err(error) = recipe.provide() {
            eprintln!("note: {} cannot be built, so tests of Kubernetes fail: {error:#}", recipe.name);
            return;
        }
    }
}

impl GoRecipe {
    fn provide(&self) -> Result<()> {
        let directory = directory(&format!("{}-{}", self.name, self.version));
        let is_missing = |(name, _): &&(&str, &str)| !program(&directory, name).is_file();
        let missing: Vec<_> = self.programs.iter().filter(is_missing).collect();
        if missing.is_empty() {
            return Ok(());
        }
        if !is_installed("go") {
            bail!("there is no `go`; set KUBEBUILDER_ASSETS to a directory with kube-apiserver and etcd");
        }
        eprintln!("note: {} {} is built into {}", self.name, self.version, directory.display());
        let scratch = directory.join("build");
        let outcome = self.build(&scratch, &directory, &missing);
        // The files of this build take 2 GB and are of no further use.
        let _ = fs::remove_dir_all(&scratch);
        outcome
    }

    fn build(&self, scratch: &Path, directory: &Path, missing: &[&(&str, &str)]) -> Result<()> {
        let _ = fs::remove_dir_all(scratch);
        fs::create_dir_all(scratch).with_context(|| format!("{} cannot be made", scratch.display()))?;
        fs::write(scratch.join("go.mod"), self.go_mod)?;
        fs::write(scratch.join("go.sum"), self.go_sum)?;
        for (name, package) in missing {
            let (built, unfinished) = (program(directory, name), scratch.join(name));
            let out = unfinished.to_string_lossy();
            let words = ["build", "-trimpath", "-ldflags", self.link, "-o", &out, package];
            let mut go = politely(command("go").args(words));
            go.current_dir(scratch)
                .env("CGO_ENABLED", "0")
                .env("GOFLAGS", "-buildvcs=false -modcacherw -mod=mod -p=2");
            go.env("GOMODCACHE", scratch.join("modules")).env("GOCACHE", scratch.join("cache"));
            output(&mut go)?;
            fs::create_dir_all(built.parent().unwrap_or(scratch))?;
            fs::rename(&unfinished, &built).with_context(|| format!("{} cannot be made", built.display()))?;
        }
        Ok(())
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
        let version = self.version_variable.map(|variable| format!(" -X {variable}=v{}", self.version));
        let link = format!("-s -w{}", version.unwrap_or_default());
        let (bin, unfinished) = (built.parent().unwrap_or(scratch), scratch.join(self.program));
        let out = unfinished.to_string_lossy();
        go(&["build", "-trimpath", "-ldflags", &link, "-o", &out, self.package], &source)?;
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
