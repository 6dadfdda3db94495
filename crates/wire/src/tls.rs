//! [`Tls`]: TLS settings of a server that Netstead connects to.

mod verifier;

use std::{
    fmt::Display,
    path::{Path, PathBuf},
    sync::Arc,
};

use netstead_settings::{SettingsError, choice, table};
use rustls::{
    ClientConfig, RootCertStore, SupportedProtocolVersion,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier},
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
    version::{TLS12, TLS13},
};

use self::verifier::{CertificateVerifier, VerifyMode};
use crate::files;

/// Protocols that an HTTP client offers, the preferred one first.
pub const ALPN_HTTP: &[&[u8]] = &[b"h2", b"http/1.1"];

choice! {
    /// A version of TLS.
    #[derive(Default)]
    pub enum TlsVersion {
        #[default]
        V1_2 = "1.2",
        V1_3 = "1.3",
    }
}

table! {
    /// TLS settings of a server. Nothing set: the roots of the machine, and the host of its address.
    #[derive(Default)]
    pub struct Tls {
        /// certificates to trust instead of the machine's, PEM
        ca_file: Option<PathBuf>, unset;
        /// our own certificate with its chain, PEM, for servers that ask for one
        client_cert: Option<PathBuf>, unset;
        /// the key of `client_cert`, PEM
        client_key: Option<PathBuf>, unset;
        /// the name its certificate must be for
        server_name: Option<String>, unset "the host of the address";
        /// SHA-256 of the one certificate to trust; then nothing else of it is checked
        fingerprint: Option<String>, unset;
        /// the oldest version of TLS to speak
        min_tls_version: TlsVersion, default "1.2";
        /// trust any certificate; for a first try
        insecure: bool, default false;
    }
}

/// The table is compared as a whole to see whether it changed.
impl Eq for Tls {}

/// TLS settings whose files were read, for connections that [`crate::connect_tcp`] makes.
#[derive(Debug, Clone)]
pub struct TlsClient {
    pub(crate) config: Arc<ClientConfig>,
    /// The name to ask for and to expect, instead of the host.
    pub(crate) name: Option<ServerName<'static>>,
}

impl Tls {
    /// Whether any key of it is set to something else than its default.
    pub fn is_set(&self) -> bool {
        *self != Self::default()
    }

    /// The first key that is set, for a message about all of them.
    pub fn first_set(&self) -> &'static str {
        let set = [
            ("ca_file", self.ca_file.is_some()),
            ("client_cert", self.client_cert.is_some()),
            ("client_key", self.client_key.is_some()),
            ("server_name", self.server_name.is_some()),
            ("fingerprint", self.fingerprint.is_some()),
            ("min_tls_version", self.min_tls_version != TlsVersion::default()),
        ];
        set.into_iter().find(|(_, is_set)| *is_set).map_or("insecure", |(key, _)| key)
    }

    /// Refuses what does not fit together. Opens no file.
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
        self.name()?;
        self.fingerprint.as_deref().map_or(Ok(()), |text| fingerprint(text).map(drop))
    }

    /// Reads the files and makes the settings of rustls. `protocols` are offered by ALPN, the preferred one first.
    pub fn client_config(&self, protocols: &[&[u8]]) -> Result<ClientConfig, SettingsError> {
        self.check()?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = CertificateVerifier::new(self.verify_mode(&provider)?, Arc::clone(&provider));
        let versions: &[&SupportedProtocolVersion] = match self.min_tls_version {
            TlsVersion::V1_2 => &[&TLS13, &TLS12],
            TlsVersion::V1_3 => &[&TLS13],
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .map_err(|error| SettingsError::new("min_tls_version", format!("TLS cannot start: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match (&self.client_cert, &self.client_key) {
            (Some(certificate), Some(key)) => {
                let chain = certificates("client_cert", certificate)?;
                builder
                    .with_client_auth_cert(chain, private_key("client_key", key)?)
                    .map_err(|error| SettingsError::new("client_key", format!("it does not fit: {error}")))?
            }
            _ => builder.with_no_client_auth(),
        };
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Ok(config)
    }

    /// As [`Tls::client_config`], for [`crate::connect_tcp`].
    pub fn client(&self, protocols: &[&[u8]]) -> Result<TlsClient, SettingsError> {
        Ok(TlsClient { config: Arc::new(self.client_config(protocols)?), name: self.name()? })
    }

    fn name(&self) -> Result<Option<ServerName<'static>>, SettingsError> {
        let Some(name) = &self.server_name else { return Ok(None) };
        let parsed = ServerName::try_from(name.clone());
        parsed
            .map(Some)
            .map_err(|_| SettingsError::new("server_name", format!("`{name}` is no name of a server")))
    }

    fn verify_mode(&self, provider: &Arc<CryptoProvider>) -> Result<VerifyMode, SettingsError> {
        if let Some(text) = &self.fingerprint {
            return Ok(VerifyMode::Pin(fingerprint(text)?));
        }
        if self.insecure {
            return Ok(VerifyMode::Any);
        }
        let inner: Arc<dyn ServerCertVerifier> = if let Some(file) = &self.ca_file {
            let wrong =
                |error: &dyn Display| SettingsError::new("ca_file", format!("{}: {error}", file.display()));
            let mut roots = RootCertStore::empty();
            for certificate in certificates("ca_file", file)? {
                roots.add(certificate).map_err(|error| wrong(&error))?;
            }
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
                .build()
                .map_err(|error| wrong(&error))?
        } else {
            let machine = rustls_platform_verifier::Verifier::new(Arc::clone(provider)).map_err(|error| {
                let problem = format!("it is not set, and this machine has no roots to trust: {error}");
                SettingsError::new("ca_file", problem)
            })?;
            Arc::new(machine)
        };
        Ok(VerifyMode::Chain { inner, name: self.name()? })
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

fn private_key(key: &'static str, file: &Path) -> Result<PrivateKeyDer<'static>, SettingsError> {
    let wrong =
        |error: &dyn Display| SettingsError::new(key, format!("{} holds no key: {error}", file.display()));
    let pem = files::read(file, files::MOST_OF_PEM).map_err(|error| wrong(&error))?;
    PrivateKeyDer::from_pem_slice(&pem).map_err(|error| wrong(&error))
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
    fn half_a_client_certificate_is_refused() {
        let tls = Tls { client_cert: Some("c.pem".into()), insecure: true, ..Tls::default() };
        let error = tls.client_config(ALPN_HTTP).unwrap_err();
        assert_eq!(error.to_string(), "client_key: it is missing, and `client_cert` is set");
    }

    #[test]
    fn only_a_changed_key_counts_as_set() {
        assert!(!Tls::default().is_set());
        assert!(Tls { min_tls_version: TlsVersion::V1_3, ..Tls::default() }.is_set());
    }
}
