//! The credentials file: a user's tokens, by URL. A server leaves its admin token there; commands find it.

use std::{
    collections::BTreeMap,
    fs::Permissions,
    io::{self, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use netstead_wire::files;
use serde::{Deserialize, Serialize};

const FILE: &str = "credentials.json";

/// The file in one directory.
#[derive(Debug, Clone)]
pub(crate) struct Credentials {
    dir: PathBuf,
}

#[derive(Default, Serialize, Deserialize)]
struct Content {
    servers: BTreeMap<String, Server>,
    /// The server that was started last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last: Option<String>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Server {
    token: String,
}

impl Credentials {
    pub(crate) fn in_dir(dir: PathBuf) -> Self {
        Self { dir }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.join(FILE)
    }

    /// The token for a URL in its canonical form.
    pub(crate) fn token(&self, url: &str) -> anyhow::Result<Option<String>> {
        Ok(self.read()?.servers.get(url).map(|server| server.token.clone()))
    }

    /// The URL of the server that was started last.
    pub(crate) fn last(&self) -> Option<String> {
        self.read().ok()?.last
    }

    /// Every token there is, for a server that looks for one of its own.
    pub(crate) fn tokens(&self) -> anyhow::Result<Vec<String>> {
        Ok(self.read()?.servers.into_values().map(|server| server.token).collect())
    }

    /// Keeps `token` for all of `urls`. The file is replaced as a whole and no other user can read it; a system
    /// service (`RUNTIME_DIRECTORY`) lets its group in.
    pub(crate) fn save_token(&self, urls: &[String], token: &str) -> anyhow::Result<()> {
        let wrong = || format!("cannot write {}", self.path().display());
        files::create_private_dir(&self.dir).with_context(wrong)?;
        let lock = self.dir.join(".credentials.lock");
        let lock = files::private().write(true).create(true).truncate(true).open(lock).with_context(wrong)?;
        lock.lock().with_context(wrong)?;
        let mut content = self.read()?;
        content.last = urls.first().cloned();
        for url in urls {
            content.servers.insert(url.clone(), Server { token: token.to_owned() });
        }
        let mode = if self.dir.starts_with("/run") { 0o640 } else { 0o600 };
        replace(&self.path(), &serde_json::to_vec_pretty(&content)?, mode).with_context(wrong)
    }

    fn read(&self) -> anyhow::Result<Content> {
        let path = self.path();
        match files::read(&path, files::MOST_OF_CONFIG) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .with_context(|| format!("{} is damaged; delete it and restart the server", path.display())),
            Err(error)
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) =>
            {
                Ok(Content::default())
            }
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }
}

fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let fresh = path.with_extension("new");
    // Left over from a crash, perhaps with another mode.
    let _ = std::fs::remove_file(&fresh);
    let mut file = files::private().write(true).create_new(true).open(&fresh)?;
    file.write_all(bytes)?;
    // The umask has no say in who may read it.
    file.set_permissions(Permissions::from_mode(mode))?;
    file.sync_all()?;
    std::fs::rename(&fresh, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_by_its_url_and_only_its_user_can_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let credentials = Credentials::in_dir(dir.path().join("new/netstead"));
        let (here, there) = ("http://127.0.0.1:5301".to_owned(), "https://ns.example.com".to_owned());
        assert_eq!(credentials.token(&here).unwrap(), None);
        credentials.save_token(&[here.clone(), there.clone()], "one").unwrap();
        credentials.save_token(std::slice::from_ref(&there), "two").unwrap();
        assert_eq!(credentials.token(&here).unwrap().as_deref(), Some("one"));
        assert_eq!(credentials.token(&there).unwrap().as_deref(), Some("two"));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&credentials.path()), 0o600);
        assert_eq!(mode(credentials.path().parent().unwrap()), 0o700);
    }

    #[test]
    fn a_damaged_file_is_told() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE), "{").unwrap();
        let error = Credentials::in_dir(dir.path().to_owned()).tokens().unwrap_err();
        assert!(error.to_string().contains("is damaged"), "{error}");
    }
}
