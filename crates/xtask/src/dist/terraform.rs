//! The Terraform provider as registries and mirrors want it.
//!
//! ```text
//!  DIR/mirror/REGISTRY/netstead/netstead/VERSION/OS_ARCH/terraform-provider-netstead_vVERSION
//!  DIR/terraform-provider-netstead_VERSION_OS_ARCH.zip
//!  DIR/terraform-provider-netstead_VERSION_manifest.json
//!  DIR/terraform-provider-netstead_VERSION_SHA256SUMS
//! ```
//!
//! `mirror` is for `filesystem_mirror` in Terraform's settings; the three files are what the registry expects of a release.

mod zip;

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::version;
use crate::image::{Arch, binary};

/// The registries that the mirror stands for: of Terraform, and of `OpenTofu`.
const HOSTS: [&str; 2] = ["registry.terraform.io", "registry.opentofu.org"];

/// Lays out the provider for one kind of machine. It is built unless it is at hand. False: the build failed, and has said why.
pub(super) fn lay_out(out: &Path, arch: Arch, provider: Option<&Path>, debug: bool) -> Result<bool> {
    let binary = match provider {
        Some(provider) => provider.to_owned(),
        None => match binary::build_provider(arch, debug)? {
            Some(built) => built,
            None => return Ok(false),
        },
    };
    let release = Release { version: version()?, platform: format!("linux_{}", arch.docker()) };
    for file in release.write(&binary, out, &HOSTS)? {
        eprintln!("{} is made", file.display());
    }
    Ok(true)
}

/// One version for one platform.
struct Release {
    version: String,
    platform: String,
}

impl Release {
    /// Writes everything, and returns what it wrote. An older file of the same name is replaced.
    fn write(&self, binary: &Path, out: &Path, hosts: &[&str]) -> Result<Vec<PathBuf>> {
        let Self { version, platform } = self;
        let program = fs::read(binary).with_context(|| format!("cannot read {}", binary.display()))?;
        let name = format!("terraform-provider-netstead_v{version}");
        let mut written = Vec::new();
        for host in hosts {
            let place = out.join("mirror").join(host).join("netstead/netstead").join(version);
            let mirrored = place.join(platform).join(&name);
            write(&mirrored, &program)?;
            fs::set_permissions(&mirrored, fs::Permissions::from_mode(0o755))?;
            written.push(mirrored);
        }
        let release = |rest: &str| format!("terraform-provider-netstead_{version}_{rest}");
        let manifest = json!({ "version": 1, "metadata": { "protocol_versions": ["6.0"] } });
        let parts = [
            (release(&format!("{platform}.zip")), zip::of_program(&name, &program)?),
            (release("manifest.json"), format!("{manifest:#}\n").into_bytes()),
        ];
        let mut sums = Vec::new();
        for (name, bytes) in parts {
            let mut sum = String::new();
            for byte in Sha256::digest(&bytes) {
                write!(sum, "{byte:02x}")?;
            }
            let file = out.join(&name);
            write(&file, &bytes)?;
            written.push(file);
            sums.push((name, sum));
        }
        let file = out.join(release("SHA256SUMS"));
        write(&file, merged(&file, &sums)?.as_bytes())?;
        written.push(file);
        Ok(written)
    }
}

fn write(file: &Path, bytes: &[u8]) -> Result<()> {
    let parent = file.parent().context("a file has a directory")?;
    fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    fs::write(file, bytes).with_context(|| format!("cannot write {}", file.display()))
}

/// The checksums in `file`, with these in the place of those of the same names: other platforms of the version stay.
fn merged(file: &Path, sums: &[(String, String)]) -> Result<String> {
    let before = match fs::read_to_string(file) {
        Ok(before) => before,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", file.display())),
    };
    let there = before.lines().filter_map(|line| line.split_once("  "));
    let mut all: BTreeMap<&str, &str> = there.map(|(sum, name)| (name, sum)).collect();
    all.extend(sums.iter().map(|(name, sum)| (name.as_str(), sum.as_str())));
    let mut text = String::new();
    for (name, sum) in all {
        writeln!(text, "{sum}  {name}")?;
    }
    Ok(text)
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
        // Twice: an older release of the same name is replaced. The other platform stays.
        let other = Release { platform: "linux_arm64".into(), version: "1.2.3".into() };
        release.write(&binary, &out, &HOSTS).unwrap();
        other.write(&binary, &out, &HOSTS).unwrap();
        let files = release.write(&binary, &out, &HOSTS).unwrap();
        let names: Vec<String> =
            files.iter().map(|file| file.strip_prefix(&out).unwrap().display().to_string()).collect();
        assert_eq!(
            names,
            [
                "mirror/registry.terraform.io/netstead/netstead/1.2.3/linux_amd64/terraform-provider-netstead_v1.2.3",
                "mirror/registry.opentofu.org/netstead/netstead/1.2.3/linux_amd64/terraform-provider-netstead_v1.2.3",
                "terraform-provider-netstead_1.2.3_linux_amd64.zip",
                "terraform-provider-netstead_1.2.3_manifest.json",
                "terraform-provider-netstead_1.2.3_SHA256SUMS",
            ]
        );
        let manifest: serde_json::Value = serde_json::from_slice(&fs::read(&files[3]).unwrap()).unwrap();
        assert_eq!(manifest["metadata"]["protocol_versions"][0], "6.0");
        let checked = Command::new("sha256sum").arg("-c").arg(&files[4]).current_dir(&out).status().unwrap();
        assert!(checked.success());
        let sums = fs::read_to_string(&files[4]).unwrap();
        let names: Vec<&str> = sums.lines().filter_map(|line| Some(line.split_once("  ")?.1)).collect();
        assert_eq!(
            names,
            [
                "terraform-provider-netstead_1.2.3_linux_amd64.zip",
                "terraform-provider-netstead_1.2.3_linux_arm64.zip",
                "terraform-provider-netstead_1.2.3_manifest.json",
            ]
        );
        // Another program unpacks it, with the right to run it.
        let script = "import sys, zipfile\nz = zipfile.ZipFile(sys.argv[1])\nassert z.testzip() is None\ni = z.infolist()[0]\n\
                      print(i.filename, oct(i.external_attr >> 16), i.file_size, i.compress_size < i.file_size)";
        let unpacked = Command::new("python3").args(["-c", script]).arg(&files[2]).output().unwrap();
        let size = fs::metadata(&binary).unwrap().len();
        let said = String::from_utf8_lossy(&unpacked.stdout);
        assert_eq!(said, format!("terraform-provider-netstead_v1.2.3 0o100755 {size} True\n"));
    }
}
