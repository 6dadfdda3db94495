//! [`origin`]: names the state that an apply belongs to, so that an apply takes up what one before it made when it was killed.
//!
//! A state in a backend is named by the backend's configuration, and one in a file by its directory: by the number and the time of birth that
//! the file system gave it. So neither a new container with another host name nor another path to the same directory is another origin.

use std::{
    env, fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use data_encoding::HEXLOWER;
use netstead_wire::files;
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};

/// Parts of names of settings that are credentials. They may be others at the next apply.
const SECRET: [&str; 5] = ["password", "token", "secret", "credential", "access_key"];
/// Backends whose state is a file of the directory.
const OF_FILES: [&str; 2] = ["", "local"];

/// The origin of this process.
pub(super) fn origin() -> String {
    let dir = env::current_dir().unwrap_or_default();
    let data = env::var_os("TF_DATA_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let data = dir.join(data.unwrap_or_else(|| PathBuf::from(".terraform")));
    let workspace = env::var("TF_WORKSPACE").ok().filter(|name| !name.is_empty());
    of(&dir, &data, workspace)
}

fn of(dir: &Path, data: &Path, workspace: Option<String>) -> String {
    let read = |file: &str| files::read_text(&data.join(file), files::MOST_OF_SECRET).unwrap_or_default();
    let workspace = workspace.unwrap_or_else(|| read("environment").trim().to_owned());
    let place = backend(&read("terraform.tfstate")).or_else(|| directory(dir));
    let place = place.unwrap_or_else(|| {
        let host = files::read_text(Path::new("/proc/sys/kernel/hostname"), files::MOST_OF_SECRET);
        format!("{}:{}", host.unwrap_or_default().trim(), dir.display())
    });
    format!("terraform {place} {workspace}").trim_end().to_owned()
}

/// Names the backend by its type and a digest of its settings. `terraform init` stores them there, without a state in it.
fn backend(stored: &str) -> Option<String> {
    let stored: Json = serde_json::from_str(stored).ok()?;
    let backend = stored.get("backend")?;
    let kind = backend.get("type").and_then(Json::as_str)?;
    if OF_FILES.contains(&kind) {
        return None;
    }
    let settings = backend.get("config").and_then(Json::as_object)?;
    // In the order of their names.
    let settings: std::collections::BTreeMap<_, _> = settings
        .iter()
        .filter(|(name, value)| !value.is_null() && !SECRET.iter().any(|part| name.contains(part)))
        .collect();
    let digest = Sha256::digest(serde_json::to_vec(&settings).ok()?);
    Some(format!("{kind}:{}", HEXLOWER.encode(&digest)))
}

/// `None` where the file system keeps no time of birth.
fn directory(dir: &Path) -> Option<String> {
    let about = fs::metadata(dir).ok()?;
    let born = about.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(format!("directory:{}-{}", about.ino(), born.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn http(address: &str, password: &str) -> String {
        let config = serde_json::json!({
            "address": address, "password": password, "lock_address": null, "username": "ci",
        });
        serde_json::json!({ "version": 3, "backend": { "type": "http", "config": config, "hash": 7 } })
            .to_string()
    }

    #[test]
    fn a_state_in_a_backend_is_one_origin_wherever_it_is_applied() {
        let containers = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let origin = |at: usize, stored: &str, workspace: Option<&str>| {
            let dir = containers[at].path();
            let data = dir.join(".terraform");
            fs::create_dir_all(&data).unwrap();
            fs::write(data.join("terraform.tfstate"), stored).unwrap();
            of(dir, &data, workspace.map(str::to_owned))
        };
        let one = origin(0, &http("https://git.example.net/state/a", "job-1"), None);
        assert!(one.starts_with("terraform http:"), "{one}");
        assert!(!one.contains("job-1") && !one.contains("example"), "{one}");
        assert_eq!(origin(1, &http("https://git.example.net/state/a", "job-2"), None), one);
        assert_ne!(origin(1, &http("https://git.example.net/state/b", "job-1"), None), one);
        assert_ne!(origin(1, &http("https://git.example.net/state/a", "job-1"), Some("test")), one);
    }

    #[test]
    fn a_state_in_a_file_belongs_to_its_directory_under_every_name() {
        let home = tempfile::tempdir().unwrap();
        let (dir, link) = (home.path().join("a"), home.path().join("link"));
        fs::create_dir(&dir).unwrap();
        std::os::unix::fs::symlink(&dir, &link).unwrap();
        let origin = |dir: &Path| of(dir, &dir.join(".terraform"), None);
        assert_eq!(origin(&dir), origin(&link));
        assert_ne!(origin(&dir), origin(home.path()));
        fs::create_dir(dir.join(".terraform")).unwrap();
        let before = origin(&dir);
        fs::write(dir.join(".terraform/environment"), "test\n").unwrap();
        assert_eq!(origin(&dir), format!("{before} test"));
    }
}
