//! Decides whether a server's certificate is trusted: by its chain, by its fingerprint, or always.

use std::sync::Arc;

use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use sha2::{Digest as _, Sha256};

#[derive(Debug)]
pub(super) enum VerifyMode {
    /// Trusts every certificate.
    Any,
    /// Trusts the certificate with this SHA-256.
    Pin(Vec<u8>),
    /// Trusts a chain to known roots, for `name` instead of the host that was connected to.
    Chain { inner: Arc<dyn ServerCertVerifier>, name: Option<ServerName<'static>> },
}

#[derive(Debug)]
pub(super) struct CertificateVerifier {
    mode: VerifyMode,
    provider: Arc<CryptoProvider>,
    schemes: Vec<SignatureScheme>,
}

impl CertificateVerifier {
    pub(super) fn new(mode: VerifyMode, provider: Arc<CryptoProvider>) -> Self {
        let schemes = provider.signature_verification_algorithms.supported_schemes();
        Self { mode, provider, schemes }
    }
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
        match &self.mode {
            VerifyMode::Any => Ok(ServerCertVerified::assertion()),
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
        match &self.mode {
            VerifyMode::Chain { inner, .. } => inner.root_hint_subjects(),
            VerifyMode::Any | VerifyMode::Pin(_) => None,
        }
    }
}
