//! TLS to a Docker host: whom to trust, and our own certificate.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use netstead_wire::files;
use rustls::{
    ClientConfig, RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier},
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

/// The files of a TLS connection, all PEM.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// Certificates to trust instead of the machine's roots.
    pub ca_file: Option<PathBuf>,
    /// Our own certificate with its chain, and its key.
    pub client: Option<(PathBuf, PathBuf)>,
}

impl Tls {
    pub(super) fn client_config(&self) -> Result<Arc<ClientConfig>, String> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = if let Some(file) = &self.ca_file {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(file)? {
                roots.add(certificate).map_err(|error| format!("{}: {error}", file.display()))?;
            }
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .build()
                .map_err(|error| format!("{}: {error}", file.display()))?
        } else {
            let machine = rustls_platform_verifier::Verifier::new(Arc::clone(&provider));
            Arc::new(machine.map_err(|error| format!("this machine trusts nobody: {error}; set `ca_file`"))?)
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS cannot start: {error}"))?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let Some((certificate, key)) = &self.client else {
            return Ok(Arc::new(builder.with_no_client_auth()));
        };
        let chain = certificates(certificate)?;
        let wrong = |error: &dyn std::fmt::Display| format!("{} holds no key: {error}", key.display());
        let pem = files::read(key, files::MOST_OF_PEM).map_err(|error| wrong(&error))?;
        let private = PrivateKeyDer::from_pem_slice(&pem).map_err(|error| wrong(&error))?;
        let config = builder
            .with_client_auth_cert(chain, private)
            .map_err(|error| format!("{} does not fit its certificate: {error}", key.display()))?;
        Ok(Arc::new(config))
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{} holds no certificate: {error}", file.display());
    let pem = files::read(file, files::MOST_OF_PEM).map_err(|error| wrong(&error))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let found = found.map_err(|error| wrong(&error))?;
    if found.is_empty() {
        return Err(format!(
            "{} holds no certificate: there is no `BEGIN CERTIFICATE` in it",
            file.display()
        ));
    }
    Ok(found)
}
