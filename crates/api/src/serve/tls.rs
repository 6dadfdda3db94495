//! TLS certificates from files, read again when they change.

use std::{fmt, path::Path, sync::Arc};

use arc_swap::ArcSwap;
use netstead_wire::files;
use rustls::{
    ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use tracing::{info, warn};

use super::{ServeError, TlsFiles};

/// The certificate and key in use. Clones see the same ones.
#[derive(Debug, Clone)]
pub(super) struct ServerTls {
    config: Arc<ArcSwap<ServerConfig>>,
    /// The files that it began with: files that change before the first look at them are noticed, too.
    first: Arc<Texts>,
}

impl ServerTls {
    pub(super) async fn load(files: &TlsFiles) -> Result<Self, ServeError> {
        let texts = Texts::read(files).await?;
        let config = Arc::new(ArcSwap::from_pointee(texts.config(files)?));
        Ok(Self { config, first: Arc::new(texts) })
    }

    /// For the next connection.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        self.config.load_full()
    }

    /// Reads the files again and again, for ever.
    pub(super) async fn reload(self, files: TlsFiles) {
        let interval = files.interval;
        let mut reloader = Reloader::new(self, files);
        loop {
            tokio::time::sleep(interval).await;
            reloader.reload_once().await;
        }
    }
}

/// Reads the files again. Files that cannot be used leave the certificate in use as it is.
struct Reloader {
    tls: ServerTls,
    files: TlsFiles,
    /// The last contents that were tried.
    tried: Arc<Texts>,
}

/// Result of reading the files again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reloaded {
    Unchanged,
    /// A file cannot be read. While it is being replaced it may be missing for a moment.
    Unreadable,
    Used,
    Refused,
}

impl Reloader {
    fn new(tls: ServerTls, files: TlsFiles) -> Self {
        let tried = tls.first.clone();
        Self { tls, files, tried }
    }

    async fn reload_once(&mut self) -> Reloaded {
        let Ok(texts) = Texts::read(&self.files).await else { return Reloaded::Unreadable };
        if *self.tried == texts {
            return Reloaded::Unchanged;
        }
        let outcome = match texts.config(&self.files) {
            Ok(new) => {
                self.tls.config.store(Arc::new(new));
                info!(certificate = %self.files.certificate.display(), "Certificate loaded anew.");
                Reloaded::Used
            }
            Err(error) => {
                warn!(%error, "The changed certificate is not used; the old one stays in use.");
                Reloaded::Refused
            }
        };
        self.tried = Arc::new(texts);
        outcome
    }
}

/// Both files as they are.
#[derive(PartialEq, Eq)]
struct Texts {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

/// The key is a secret.
impl fmt::Debug for Texts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Texts").finish_non_exhaustive()
    }
}

impl Texts {
    async fn read(files: &TlsFiles) -> Result<Self, ServeError> {
        Ok(Self { certificate: read(&files.certificate).await?, key: read(&files.key).await? })
    }

    fn config(&self, files: &TlsFiles) -> Result<ServerConfig, ServeError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.certificate).collect();
        let chain = chain.map_err(|error| wrong(&files.certificate, &error))?;
        if chain.is_empty() {
            return Err(wrong(&files.certificate, &"it holds no certificate"));
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|error| wrong(&files.key, &error))?;
        let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(&files.certificate, &error))?;
        let config = builder.with_no_client_auth().with_single_cert(chain, key);
        let mut config = config.map_err(|error| wrong(&files.certificate, &error))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

async fn read(path: &Path) -> Result<Vec<u8>, ServeError> {
    files::read_async(path, files::MOST_OF_PEM).await.map_err(|error| wrong(path, &error))
}

fn wrong(path: &Path, reason: &dyn std::fmt::Display) -> ServeError {
    ServeError::Tls { path: path.to_owned(), reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertifiedKey, generate_simple_self_signed};

    use super::*;

    fn write(files: &TlsFiles) {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(&files.certificate, cert.pem()).unwrap();
        std::fs::write(&files.key, signing_key.serialize_pem()).unwrap();
    }

    #[tokio::test]
    async fn a_change_before_the_first_look_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let files = TlsFiles::new(dir.path().join("cert.pem"), dir.path().join("key.pem"));
        write(&files);
        let tls = ServerTls::load(&files).await.unwrap();
        write(&files);
        let mut reloader = Reloader::new(tls.clone(), files.clone());
        assert_eq!(reloader.reload_once().await, Reloaded::Used);
    }

    #[tokio::test]
    async fn files_that_cannot_be_used_leave_the_old_certificate_in_use() {
        let dir = tempfile::tempdir().unwrap();
        let files = TlsFiles::new(dir.path().join("cert.pem"), dir.path().join("key.pem"));
        write(&files);
        let tls = ServerTls::load(&files).await.unwrap();
        let first = tls.config();
        let mut reloader = Reloader::new(tls.clone(), files.clone());
        assert_eq!(reloader.reload_once().await, Reloaded::Unchanged);

        std::fs::write(&files.certificate, "nonsense").unwrap();
        assert_eq!(reloader.reload_once().await, Reloaded::Refused);
        assert_eq!(reloader.reload_once().await, Reloaded::Unchanged, "it is refused once");
        std::fs::remove_file(&files.certificate).unwrap();
        assert_eq!(reloader.reload_once().await, Reloaded::Unreadable);
        assert!(Arc::ptr_eq(&first, &tls.config()));

        write(&files);
        assert_eq!(reloader.reload_once().await, Reloaded::Used);
        assert!(!Arc::ptr_eq(&first, &tls.config()));
    }
}
