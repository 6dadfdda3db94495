//! The handshake with Terraform: the magic cookie, the certificates of both sides, and the first line of output.

use std::{
    env, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use data_encoding::BASE64_NOPAD;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use rustls::{
    DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivatePkcs8KeyDer, UnixTime, pem::PemObject as _},
    server::danger::{ClientCertVerified, ClientCertVerifier},
};

const COOKIE: &str = "TF_PLUGIN_MAGIC_COOKIE";
/// The value that Terraform and `OpenTofu` both set. It keeps people from starting a plugin by hand, and is no secret.
const COOKIE_VALUE: &str = "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2";

/// Why Terraform and this provider do not come together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandshakeError {
    #[error("this program is a plugin of Terraform and OpenTofu: they start it, people do not")]
    StartedByHand,
    #[error(
        "this Terraform speaks the plugin protocols {offered}, and this provider speaks 6: use Terraform 1.0 or later"
    )]
    NoCommonProtocol { offered: String },
    #[error("the certificate in PLUGIN_CLIENT_CERT cannot be used: {reason}")]
    Certificate { reason: String },
    #[error("no socket can be made for Terraform")]
    Socket(#[source] io::Error),
}

/// The part of the environment that Terraform sets for a plugin.
#[derive(Debug)]
pub struct Handshake {
    /// The only certificate a client may show. Without one the socket is plain, as Terraform asks with
    /// `TF_DISABLE_PLUGIN_TLS`.
    client: Option<CertificateDer<'static>>,
    /// Where sockets belong, if Terraform says so.
    pub socket_dir: Option<PathBuf>,
}

/// TLS for the socket, and the certificate that goes into the first line.
pub struct SocketTls {
    pub config: Arc<ServerConfig>,
    certificate: Vec<u8>,
}

impl std::fmt::Debug for SocketTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SocketTls").finish_non_exhaustive()
    }
}

impl Handshake {
    pub fn from_environment() -> Result<Self, HandshakeError> {
        Self::read(|name| env::var(name).ok())
    }

    fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, HandshakeError> {
        if variable(COOKIE).as_deref() != Some(COOKIE_VALUE) {
            return Err(HandshakeError::StartedByHand);
        }
        if let Some(offered) = variable("PLUGIN_PROTOCOL_VERSIONS").filter(|offered| !offered.is_empty())
            && !offered.split(',').any(|version| version.trim() == "6")
        {
            return Err(HandshakeError::NoCommonProtocol { offered });
        }
        let pem = variable("PLUGIN_CLIENT_CERT").filter(|pem| !pem.trim().is_empty());
        let client = pem.map(|pem| CertificateDer::from_pem_slice(pem.as_bytes())).transpose();
        let client = client.map_err(|error| HandshakeError::Certificate { reason: error.to_string() })?;
        let dir = variable("PLUGIN_UNIX_SOCKET_DIR").filter(|dir| !dir.is_empty());
        Ok(Self { client, socket_dir: dir.map(PathBuf::from) })
    }

    /// Draws a certificate for this process. `None` where Terraform wants no TLS.
    pub fn tls(&self) -> Result<Option<SocketTls>, HandshakeError> {
        let Some(client) = &self.client else { return Ok(None) };
        let wrong = |reason: String| HandshakeError::Certificate { reason };
        let key = KeyPair::generate().map_err(|error| wrong(error.to_string()))?;
        let mut params =
            CertificateParams::new(vec!["localhost".to_owned()]).map_err(|error| wrong(error.to_string()))?;
        // Terraform takes it as the root that signed it.
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).map_err(|error| wrong(error.to_string()))?;
        let der = certificate.der().clone();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = Arc::new(Pinned { client: client.clone(), provider: Arc::clone(&provider) });
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(error.to_string()))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![der.clone()], PrivatePkcs8KeyDer::from(key.serialize_der()).into())
            .map_err(|error| wrong(error.to_string()))?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Some(SocketTls { config: Arc::new(config), certificate: der.to_vec() }))
    }
}

/// The line Terraform waits for: core protocol 1, plugin protocol 6, where the socket is, and its certificate.
pub fn first_line(socket: &Path, tls: Option<&SocketTls>) -> String {
    let certificate = tls.map(|tls| BASE64_NOPAD.encode(&tls.certificate)).unwrap_or_default();
    format!("1|6|unix|{}|grpc|{certificate}", socket.display())
}

/// Serves one client: the process that started this one. Its certificate was made for this start alone, by the same process,
/// so equality of bytes says more than a chain could. The handshake proves that the client has the key.
#[derive(Debug)]
struct Pinned {
    client: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        if end_entity.as_ref() == self.client.as_ref() {
            return Ok(ClientCertVerified::assertion());
        }
        Err(rustls::Error::InvalidCertificate(rustls::CertificateError::ApplicationVerificationFailure))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: &[(&str, &str)]) -> Result<Handshake, HandshakeError> {
        Handshake::read(|name| set.iter().find(|(one, _)| *one == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn without_the_cookie_or_a_common_protocol_nothing_starts() {
        assert!(matches!(read(&[]), Err(HandshakeError::StartedByHand)));
        let old = read(&[(COOKIE, COOKIE_VALUE), ("PLUGIN_PROTOCOL_VERSIONS", "4,5")]);
        assert!(matches!(old, Err(HandshakeError::NoCommonProtocol { .. })));
        let bad = read(&[(COOKIE, COOKIE_VALUE), ("PLUGIN_CLIENT_CERT", "no PEM")]);
        assert!(matches!(bad, Err(HandshakeError::Certificate { .. })));
    }

    #[test]
    fn without_a_client_certificate_the_socket_is_plain() {
        let plain = read(&[(COOKIE, COOKIE_VALUE), ("PLUGIN_PROTOCOL_VERSIONS", "5,6")]).unwrap();
        let tls = plain.tls().unwrap();
        assert_eq!(first_line(Path::new("/tmp/s"), tls.as_ref()), "1|6|unix|/tmp/s|grpc|");
    }
}
