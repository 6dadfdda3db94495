//! The Terraform provider as registries and mirrors want it.
//!
//! ```text
//!  DIR/mirror/HOST/netstead/netstead/VERSION/OS_ARCH/terraform-provider-netstead_vVERSION
//!  DIR/terraform-provider-netstead_VERSION_OS_ARCH.zip
//!  DIR/terraform-provider-netstead_VERSION_manifest.json
//!  DIR/terraform-provider-netstead_VERSION_SHA256SUMS
//! ```
//!
//! `mirror` is for `filesystem_mirror` in Terraform's settings; the three files are what the registry expects of a release.

mod zip;

use std::{
    env,
    fmt::Write as _,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::version;
use crate::shell::{cargo, root, run};

/// The registry that the mirror stands for.
const HOST: &str = "registry.terraform.io";

/// Lays out the provider, which is built for this machine unless it is at hand. False: the build failed, and has said why.
pub(super) fn lay_out(out: &Path, provider: Option<&Path>, debug: bool) -> Result<bool> {
    let binary = match provider {
        Some(provider) => provider.to_owned(),
        None => match build(debug)? {
            Some(built) => built,
            None => return Ok(false),
        },
    };
    let release = Release { version: version()?, platform: platform()? };
    for file in release.write(&binary, out, HOST)? {
        eprintln!("{} is made", file.display());
    }
    Ok(true)
}

fn build(debug: bool) -> Result<Option<PathBuf>> {
    let (profile, place) = if debug { ("dev", "debug") } else { ("dist", "dist") };
    if !run(&mut cargo(&format!("build --package netstead-terraform --profile {profile}")))? {
        return Ok(None);
    }
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    Ok(Some(target.join(place).join("terraform-provider-netstead")))
}

/// One version for one platform.
struct Release {
    version: String,
    platform: String,
}

impl Release {
    /// Writes everything, and returns what it wrote. An older file of the same name is replaced.
    fn write(&self, binary: &Path, out: &Path, host: &str) -> Result<Vec<PathBuf>> {
        let Self { version, platform } = self;
        let program = fs::read(binary).with_context(|| format!("cannot read {}", binary.display()))?;
        let name = format!("terraform-provider-netstead_v{version}");
        let mirrored =
            out.join("mirror").join(host).join("netstead/netstead").join(version).join(platform).join(&name);
        write(&mirrored, &program)?;
        fs::set_permissions(&mirrored, fs::Permissions::from_mode(0o755))?;
        let release = |rest: &str| format!("terraform-provider-netstead_{version}_{rest}");
        let manifest = json!({ "version": 1, "metadata": { "protocol_versions": ["6.0"] } });
        let parts = [
            (release(&format!("{platform}.zip")), zip::of_program(&name, &program)?),
            (release("manifest.json"), format!("{manifest:#}\n").into_bytes()),
        ];
        let mut written = vec![mirrored];
        let mut sums = String::new();
        for (name, bytes) in parts {
            for byte in Sha256::digest(&bytes) {
                write!(sums, "{byte:02x}")?;
            }
            writeln!(sums, "  {name}")?;
            written.push(out.join(name));
            write(written.last().context("nothing was written")?, &bytes)?;
        }
        written.push(out.join(release("SHA256SUMS")));
        write(written.last().context("nothing was written")?, sums.as_bytes())?;
        Ok(written)
    }
}

fn write(file: &Path, bytes: &[u8]) -> Result<()> {
    let parent = file.parent().context("a file has a directory")?;
    fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    fs::write(file, bytes).with_context(|| format!("cannot write {}", file.display()))
}

/// As Terraform calls this machine.
fn platform() -> Result<String> {
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        "arm" => "arm",
        other => bail!("Terraform has no name for `{other}`"),
    };
    let os = match std::env::consts::OS {
        "macos" => "darwin",
        os => os,
    };
    Ok(format!("{os}_{arch}"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_release_has_its_mirror_zip_manifest_and_checksums() {
        let dir = tempfile::tempdir().unwrap();
        let binary = dir.path().join("provider");
        fs::write(&binary, "#!/bin/sh\necho a provider\n".repeat(1000)).unwrap();
        let out = dir.path().join("out");
        let release = Release { version: "1.2.3".into(), platform: "linux_amd64".into() };
        // Twice: an older release of the same name is replaced.
        release.write(&binary, &out, "registry.terraform.io").unwrap();
        let files = release.write(&binary, &out, "registry.terraform.io").unwrap();
        let names: Vec<String> =
            files.iter().map(|file| file.strip_prefix(&out).unwrap().display().to_string()).collect();
        assert_eq!(
            names,
            [
                "mirror/registry.terraform.io/netstead/netstead/1.2.3/linux_amd64/terraform-provider-netstead_v1.2.3",
                "terraform-provider-netstead_1.2.3_linux_amd64.zip",
                "terraform-provider-netstead_1.2.3_manifest.json",
                "terraform-provider-netstead_1.2.3_SHA256SUMS",
            ]
        );
        let manifest: serde_json::Value = serde_json::from_slice(&fs::read(&files[2]).unwrap()).unwrap();
        assert_eq!(manifest["metadata"]["protocol_versions"][0], "6.0");
        let checked = Command::new("sha256sum").arg("-c").arg(&files[3]).current_dir(&out).status().unwrap();
        assert!(checked.success());
        // Another program unpacks it, with the right to run it.
        let script = "import sys, zipfile\nz = zipfile.ZipFile(sys.argv[1])\nassert z.testzip() is None\ni = z.infolist()[0]\n\
                      print(i.filename, oct(i.external_attr >> 16), i.file_size, i.compress_size < i.file_size)";
        let unpacked = Command::new("python3").args(["-c", script]).arg(&files[1]).output().unwrap();
        let size = fs::metadata(&binary).unwrap().len();
        let said = String::from_utf8_lossy(&unpacked.stdout);
        assert_eq!(said, format!("terraform-provider-netstead_v1.2.3 0o100755 {size} True\n"));
    }
}
