//! TLS of HTTPS connections: which certificates are trusted.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use netstead_settings::table;
use netstead_wire::files;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, RootCertStore,
    SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
};
use sha2::{Digest, Sha256};

use crate::SettingsError;

table! {
    /// TLS settings of a server that is spoken to by HTTP. Nothing set: the roots of the machine, and the host of the URL.
    #[derive(Default)]
    pub struct Tls {
        /// certificates to trust instead of the machine's, PEM
        ca_file: Option<PathBuf>, unset;
        /// our own certificate with its chain, PEM, for servers that ask for one
        client_cert: Option<PathBuf>, unset;
        /// the key of `client_cert`, PEM
        client_key: Option<PathBuf>, unset;
        /// the name its certificate must be for
        server_name: Option<String>, unset "the host of the URL";
        /// SHA-256 of the one certificate to trust; then nothing else of it is checked
        fingerprint: Option<String>, unset;
        /// trust any certificate; for a first try
        insecure: bool, default false;
    }
}

impl Tls {
    /// Refuses what does not fit together. No file is opened.
    pub fn check(&self) -> Result<(), SettingsError> {
        match (&self.client_cert, &self.client_key) {
            (Some(_), None) => {
                return Err(SettingsError::new("client_key", "it is missing, and `client_cert` is set"));
            }
            (None, Some(_)) => {
                return Err(SettingsError::new("client_cert", "it is missing, and `client_key` is set"));
            }
            _ => {}
        }
        self.fingerprint.as_deref().map_or(Ok(()), |text| fingerprint(text).map(drop))
    }

    pub(super) fn client_config(&self) -> Result<ClientConfig, SettingsError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let trust = Arc::new(CertificateVerifier {
            how: self.verify_mode(&provider)?,
            schemes: provider.signature_verification_algorithms.supported_schemes(),
            provider: Arc::clone(&provider),
        });
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| SettingsError::new("url", format!("TLS cannot start: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(trust);
        self.check()?;
        let mut config = match (&self.client_cert, &self.client_key) {
            (Some(cert), Some(key)) => {
                let chain = certificates("client_cert", cert)?;
                let wrong = |error: &dyn std::fmt::Display| {
                    SettingsError::new("client_key", format!("{} holds no key: {error}", key.display()))
                };
                let pem = files::read(key, files::MOST_OF_PEM).map_err(|error| wrong(&error))?;
                let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|error| wrong(&error))?;
                builder
                    .with_client_auth_cert(chain, key)
                    .map_err(|error| SettingsError::new("client_key", format!("it does not fit: {error}")))?
            }
            _ => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }

    fn verify_mode(&self, provider: &Arc<CryptoProvider>) -> Result<VerifyMode, SettingsError> {
        if let Some(text) = &self.fingerprint {
            return Ok(VerifyMode::Pin(fingerprint(text)?));
        }
        if self.insecure {
            return Ok(VerifyMode::Anybody);
        }
        let name = self.server_name.clone().map(|name| {
            ServerName::try_from(name.clone())
                .map_err(|_| SettingsError::new("server_name", format!("`{name}` is no name of a server")))
        });
        let inner: Arc<dyn ServerCertVerifier> = if let Some(file) = &self.ca_file {
            let wrong = |error: &dyn std::fmt::Display| {
                SettingsError::new("ca_file", format!("{}: {error}", file.display()))
            };
            let mut roots = RootCertStore::empty();
            for certificate in certificates("ca_file", file)? {
                roots.add(certificate).map_err(|error| wrong(&error))?;
            }
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
                .build()
                .map_err(|error| wrong(&error))?
        } else {
            let machine = rustls_platform_verifier::Verifier::new(Arc::clone(provider)).map_err(|error| {
                SettingsError::new(
                    "ca_file",
                    format!("it is not set, and this machine trusts nobody: {error}"),
                )
            })?;
            Arc::new(machine)
        };
        Ok(VerifyMode::Chain { inner, name: name.transpose()? })
    }
}

fn certificates(key: &'static str, file: &Path) -> Result<Vec<CertificateDer<'static>>, SettingsError> {
    let wrong = |reason: String| {
        SettingsError::new(key, format!("{} holds no certificate: {reason}", file.display()))
    };
    let pem = files::read(file, files::MOST_OF_PEM).map_err(|error| wrong(error.to_string()))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let found = found.map_err(|error| wrong(error.to_string()))?;
    if found.is_empty() {
        return Err(wrong("there is no `BEGIN CERTIFICATE` in it".into()));
    }
    Ok(found)
}

fn fingerprint(text: &str) -> Result<Vec<u8>, SettingsError> {
    let digits: String = text.chars().filter(|c| *c != ':').collect();
    data_encoding::HEXLOWER_PERMISSIVE
        .decode(digits.as_bytes())
        .ok()
        .filter(|bytes| bytes.len() == 32)
        .ok_or_else(|| {
            SettingsError::new(
                "fingerprint",
                "write the 32 bytes of SHA-256 as `AA:BB:…`; `openssl x509 -fingerprint -sha256` prints it",
            )
        })
}

#[derive(Debug)]
struct CertificateVerifier {
    how: VerifyMode,
    provider: Arc<CryptoProvider>,
    schemes: Vec<SignatureScheme>,
}

#[derive(Debug)]
enum VerifyMode {
    Anybody,
    Pin(Vec<u8>),
    Chain { inner: Arc<dyn ServerCertVerifier>, name: Option<ServerName<'static>> },
}

impl ServerCertVerifier for CertificateVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &self.how {
            VerifyMode::Anybody => Ok(ServerCertVerified::assertion()),
            VerifyMode::Pin(pin) if Sha256::digest(end_entity).as_slice() == pin => {
                Ok(ServerCertVerified::assertion())
            }
            VerifyMode::Pin(_) => Err(CertificateError::ApplicationVerificationFailure.into()),
            VerifyMode::Chain { inner, name } => {
                let name = name.as_ref().unwrap_or(server_name);
                inner.verify_server_cert(end_entity, intermediates, name, ocsp_response, now)
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }

    fn root_hint_subjects(&self) -> Option<&[DistinguishedName]> {
        match &self.how {
            VerifyMode::Chain { inner, .. } => inner.root_hint_subjects(),
            VerifyMode::Anybody | VerifyMode::Pin(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_32_bytes() {
        let text = ["AB"; 32].join(":");
        assert_eq!(fingerprint(&text).unwrap(), [0xab; 32]);
        assert!(fingerprint("AB:CD").is_err() && fingerprint("xyz").is_err());
    }

    #[test]
    fn half_a_client_certificate_is_told() {
        let tls = Tls { client_cert: Some("c.pem".into()), insecure: true, ..Tls::default() };
        let error = tls.client_config().unwrap_err();
        assert_eq!(error.to_string(), "client_key: it is missing, and `client_cert` is set");
    }
}
