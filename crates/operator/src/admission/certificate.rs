//! The certificate of the webhooks: made here, or read from files.

use std::{fmt, path::Path, sync::Arc};

use jiff::{Timestamp, ToSpan as _, tz::TimeZone};
use netstead_wire::files;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use rustls::{
    ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};

/// How long a certificate is valid.
const DAYS: i64 = 90;
/// How long before its end it is renewed.
pub(super) const RENEWAL_DAYS: i64 = 30;
const END: &str = "-----END CERTIFICATE-----\n";

/// A chain with its key, and the authorities that the API server is told to trust; all PEM.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Certificate {
    pub(super) chain: String,
    pub(super) key: String,
    /// None if another program tells the API server.
    pub(super) authorities: Option<String>,
}

/// The key is a secret.
impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").field("authorities", &self.authorities).finish_non_exhaustive()
    }
}

impl Certificate {
    /// Makes one for these names, and says when it ends. Its authority signs it alone: the key of the authority is forgotten. The
    /// authority before it, the first of `before`, is trusted on, because other replicas may still show its certificate.
    pub(super) fn make(
        names: &[String],
        before: Option<&str>,
        now: Timestamp,
    ) -> Result<(Self, Timestamp), rcgen::Error> {
        let (begin, end) = (now - (24).hours(), now + (24 * DAYS).hours());
        let date = |at: Timestamp| {
            let day = at.to_zoned(TimeZone::UTC).date();
            rcgen::date_time_ymd(day.year().into(), day.month().unsigned_abs(), day.day().unsigned_abs())
        };
        let mut authority = CertificateParams::new(Vec::new())?;
        // Each has a name of its own, so that no client takes one for another.
        let name = format!("netstead-operator-webhook-{:016x}", rand::random::<u64>());
        authority.distinguished_name.push(DnType::CommonName, name);
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        (authority.not_before, authority.not_after) = (date(begin), date(end + (24).hours()));
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
        let mut params = CertificateParams::new(names.to_vec())?;
        params.distinguished_name.push(DnType::CommonName, "netstead-operator-webhook");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        (params.not_before, params.not_after) = (date(begin), date(end));
        let key = KeyPair::generate()?;
        let chain = params.signed_by(&key, &authority)?.pem();
        let mut authorities = authority.pem();
        if let Some((first, _)) = before.and_then(|before| before.split_once(END)) {
            authorities.push_str(first);
            authorities.push_str(END);
        }
        Ok((Self { chain, key: key.serialize_pem(), authorities: Some(authorities) }, end))
    }

    /// Reads `tls.crt`, `tls.key` and, if it is there, `ca.crt`.
    pub(super) async fn read(dir: &Path) -> Result<Self, String> {
        let read = async |name: &str| {
            let path = dir.join(name);
            let text = files::read_text_async(&path, files::MOST_OF_PEM).await;
            text.map_err(|error| (error.kind(), format!("{}: {error}", path.display())))
        };
        let chain = read("tls.crt").await.map_err(|(_, problem)| problem)?;
        let key = read("tls.key").await.map_err(|(_, problem)| problem)?;
        let authorities = match read("ca.crt").await {
            Ok(text) => Some(text),
            Err((std::io::ErrorKind::NotFound, _)) => None,
            Err((_, problem)) => return Err(problem),
        };
        Ok(Self { chain, key, authorities })
    }

    /// The settings of a server that shows it.
    pub(super) fn server_config(&self) -> Result<Arc<ServerConfig>, String> {
        let wrong = |what: &str, reason: &dyn fmt::Display| format!("{what} cannot be used: {reason}");
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(self.chain.as_bytes()).collect();
        let chain = chain.map_err(|error| wrong("tls.crt", &error))?;
        if chain.is_empty() {
            return Err(wrong("tls.crt", &"it holds no certificate"));
        }
        let key =
            PrivateKeyDer::from_pem_slice(self.key.as_bytes()).map_err(|error| wrong("tls.key", &error))?;
        let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong("TLS", &error))?;
        let config = builder.with_no_client_auth().with_single_cert(chain, key);
        let mut config = config.map_err(|error| wrong("tls.crt with tls.key", &error))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_certificate_can_be_served_and_the_authority_before_it_is_trusted_on() {
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        let names = ["netstead-operator-webhook.shop.svc".to_owned(), "127.0.0.1".to_owned()];
        let (first, end) = Certificate::make(&names, None, now).unwrap();
        assert_eq!(end.to_string(), "2026-05-30T12:00:00Z");
        assert!(first.server_config().is_ok());
        let authorities = |certificate: &Certificate| {
            let text = certificate.authorities.clone().unwrap();
            text.split_inclusive(END).map(str::to_owned).collect::<Vec<_>>()
        };
        let (second, _) = Certificate::make(&names, first.authorities.as_deref(), end).unwrap();
        let (third, _) = Certificate::make(&names, second.authorities.as_deref(), end).unwrap();
        assert_eq!(authorities(&first).len(), 1);
        assert_eq!(authorities(&second)[1..], authorities(&first)[..]);
        assert_eq!((authorities(&third).len(), &authorities(&third)[1]), (2, &authorities(&second)[0]));
        assert_ne!(first.chain, second.chain);
    }

    #[test]
    fn a_certificate_without_its_key_is_refused() {
        let names = ["webhook.example.net".to_owned()];
        let (first, _) = Certificate::make(&names, None, Timestamp::UNIX_EPOCH).unwrap();
        let (second, _) = Certificate::make(&names, None, Timestamp::UNIX_EPOCH).unwrap();
        let said = |certificate: Certificate| certificate.server_config().unwrap_err();
        assert!(said(Certificate { key: second.key, ..first.clone() }).starts_with("tls.crt with tls.key"));
        assert!(said(Certificate { key: String::new(), ..first.clone() }).starts_with("tls.key"));
        assert!(said(Certificate { chain: String::new(), ..first }).starts_with("tls.crt"));
    }
}
