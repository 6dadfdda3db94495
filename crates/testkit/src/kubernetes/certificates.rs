//! The authority of one API server, and the certificates it signs.

use std::{
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose,
};

use super::KubeUser;

pub(super) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    dir: PathBuf,
    ca: PathBuf,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").field("ca", &self.ca).finish_non_exhaustive()
    }
}

impl Authority {
    /// Makes one, and leaves its certificate in `dir`.
    pub(super) fn new(dir: &Path) -> io::Result<Self> {
        let mut params = CertificateParams::new(Vec::new()).map_err(io::Error::other)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params.distinguished_name = named("tests", &[]);
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let issuer = CertifiedIssuer::self_signed(params, key).map_err(io::Error::other)?;
        let ca = dir.join("ca.crt");
        fs::write(&ca, issuer.pem())?;
        Ok(Self { issuer, dir: dir.to_owned(), ca })
    }

    pub(super) fn ca(&self) -> &Path {
        &self.ca
    }

    /// The certificate of the server itself.
    pub(super) fn server(&self) -> io::Result<()> {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).map_err(io::Error::other)?;
        params.distinguished_name = named("kube-apiserver", &[]);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(&params, "apiserver").map(drop)
    }

    /// The keys that tokens of service accounts are signed with.
    pub(super) fn service_account_keys(&self) -> io::Result<()> {
        let key = KeyPair::generate().map_err(io::Error::other)?;
        fs::write(self.dir.join("sa.key"), key.serialize_pem())?;
        fs::write(self.dir.join("sa.pub"), key.public_key_pem())
    }

    /// A client certificate and a kubeconfig with it.
    pub(super) fn user(&self, address: SocketAddr, name: &str, groups: &[&str]) -> io::Result<KubeUser> {
        let mut params = CertificateParams::new(Vec::new()).map_err(io::Error::other)?;
        params.distinguished_name = named(name, groups);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let (certificate, key) = self.sign(&params, name)?;
        let kubeconfig = self.dir.join(format!("{name}.kubeconfig"));
        let user = KubeUser { kubeconfig, certificate, key };
        fs::write(&user.kubeconfig, self.kubeconfig_text(address, &user))?;
        Ok(user)
    }

    /// Another kubeconfig of a user, that leads to `address`.
    pub(super) fn kubeconfig(&self, address: SocketAddr, user: &KubeUser) -> io::Result<PathBuf> {
        let path = user.kubeconfig.with_extension(format!("{}.kubeconfig", address.port()));
        fs::write(&path, self.kubeconfig_text(address, user))?;
        Ok(path)
    }

    /// A kubeconfig with a token.
    pub(super) fn kubeconfig_with_token(
        &self,
        address: SocketAddr,
        name: &str,
        token: &str,
    ) -> io::Result<PathBuf> {
        let path = self.dir.join(format!("{name}-token.kubeconfig"));
        fs::write(&path, self.kubeconfig_of(address, &format!("token: {token}")))?;
        Ok(path)
    }

    fn kubeconfig_text(&self, address: SocketAddr, user: &KubeUser) -> String {
        let (certificate, key) = (user.certificate.display(), user.key.display());
        self.kubeconfig_of(address, &format!("client-certificate: {certificate}\n    client-key: {key}"))
    }

    fn kubeconfig_of(&self, address: SocketAddr, credentials: &str) -> String {
        let ca = self.ca.display();
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: tests\nclusters:\n- name: tests\n  cluster:\n    \
             server: https://{address}\n    certificate-authority: {ca}\nusers:\n- name: user\n  user:\n    \
             {credentials}\ncontexts:\n- name: tests\n  context:\n    cluster: tests\n    user: user\n",
        )
    }

    fn sign(&self, params: &CertificateParams, name: &str) -> io::Result<(PathBuf, PathBuf)> {
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(io::Error::other)?;
        let (certificate_file, key_file) =
            (self.dir.join(format!("{name}.crt")), self.dir.join(format!("{name}.key")));
        fs::write(&certificate_file, certificate.pem())?;
        fs::write(&key_file, key.serialize_pem())?;
        Ok((certificate_file, key_file))
    }
}

/// Kubernetes takes the common name for the user and organisations for its groups.
fn named(name: &str, groups: &[&str]) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    for group in groups {
        distinguished.push(DnType::OrganizationName, *group);
    }
    distinguished.push(DnType::CommonName, name);
    distinguished
}
