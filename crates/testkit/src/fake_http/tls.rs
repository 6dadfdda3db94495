//! [`FakeTls`]: the certificate of a fake server, which it signed itself.

use std::{io, net::TcpStream, sync::Arc};

use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use sha2::{Digest as _, Sha256};

/// A certificate for `pve.test` with its key.
pub(super) struct FakeTls {
    config: Arc<ServerConfig>,
    pub(super) fingerprint: String,
}

impl FakeTls {
    pub(super) fn new() -> io::Result<Self> {
        let made =
            rcgen::generate_simple_self_signed(vec!["pve.test".to_owned()]).map_err(io::Error::other)?;
        let digest = Sha256::digest(made.cert.der());
        let fingerprint = digest.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":");
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .map_err(io::Error::other)?;
        Ok(Self { config: Arc::new(config), fingerprint })
    }

    /// The connection inside of a stream. The handshake takes place when it is read.
    pub(super) fn open<'a>(
        &self,
        stream: &'a TcpStream,
    ) -> io::Result<StreamOwned<ServerConnection, &'a TcpStream>> {
        let connection = ServerConnection::new(Arc::clone(&self.config)).map_err(io::Error::other)?;
        Ok(StreamOwned::new(connection, stream))
    }
}
