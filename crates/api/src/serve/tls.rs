//! TLS certificates from files, read again when they change.

use std::{path::Path, sync::Arc};

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
pub(super) struct ServerTls(Arc<ArcSwap<ServerConfig>>);

impl ServerTls {
    pub(super) async fn load(files: &TlsFiles) -> Result<Self, ServeError> {
        let texts = Texts::read(files).await?;
        Ok(Self(Arc::new(ArcSwap::from_pointee(texts.config(files)?))))
    }

    /// For the next connection.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        self.0.load_full()
    }

    /// Looks at the files for ever. Files that cannot be used leave what is in use in use.
    pub(super) async fn reload(self, files: TlsFiles) {
        let mut tried = Texts::read(&files).await.ok();
        loop {
            tokio::time::sleep(files.interval).await;
            // While a file is being replaced it may be missing for a moment.
            let Ok(texts) = Texts::read(&files).await else { continue };
            if tried.as_ref() == Some(&texts) {
                continue;
            }
            match texts.config(&files) {
                Ok(new) => {
                    self.0.store(Arc::new(new));
                    info!(certificate = %files.certificate.display(), "Certificate loaded anew.");
                }
                Err(error) => warn!(%error, "The changed certificate is not used; the old one goes on."),
            }
            tried = Some(texts);
        }
    }
}

/// Both files as they are.
#[derive(PartialEq, Eq)]
struct Texts {
    certificate: Vec<u8>,
    key: Vec<u8>,
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
