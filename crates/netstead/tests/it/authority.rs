//! Certificates for nodes that know each other by them.

use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

/// An authority that signs the certificates of nodes.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Leaves a certificate for the node at `host` with its key in `dir`, and returns the lines of `[store]` about it.
    /// `trusted` signed the certificates of the other nodes.
    pub(crate) fn equip(&self, host: &str, dir: &Path, trusted: &Self) -> String {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        for (name, text) in
            [("ca.pem", trusted.0.pem()), ("cert.pem", certificate.pem()), ("key.pem", key.serialize_pem())]
        {
            std::fs::write(dir.join(name), text).unwrap();
        }
        "ca_file = \"ca.pem\"\ncert_file = \"cert.pem\"\nkey_file = \"key.pem\"\n".to_owned()
    }
}
