//! Connections to one host that are not made by the HTTP client: a socket of this machine, or TCP with or without TLS.

use std::{io, path::Path, sync::Arc, time::Duration};

use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
    time::timeout,
};
use tokio_rustls::TlsConnector;

use crate::TlsClient;

/// Bytes both ways.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    #[error("it does not answer within {} s", .0.as_secs())]
    Late(Duration),
    #[error("it cannot be reached: {0}")]
    Unreachable(io::Error),
    #[error("it does not answer TLS within {} s", .0.as_secs())]
    TlsLate(Duration),
    #[error("it cannot be trusted, or does not speak TLS: {0}")]
    Untrusted(io::Error),
    #[error("`{0}` is no name a certificate can be for")]
    NoServerName(String),
}

/// Connects to a socket of this machine.
pub async fn connect_unix(path: &Path) -> io::Result<Box<dyn Stream>> {
    Ok(Box::new(UnixStream::connect(path).await?))
}

/// Connects to a host. `patience` is for TCP, and once more for TLS.
pub async fn connect_tcp(
    host: &str,
    port: u16,
    tls: Option<&TlsClient>,
    patience: Duration,
) -> Result<Box<dyn Stream>, ConnectError> {
    let opened = timeout(patience, TcpStream::connect((host, port))).await;
    let stream = opened.map_err(|_| ConnectError::Late(patience))?.map_err(ConnectError::Unreachable)?;
    stream.set_nodelay(true).map_err(ConnectError::Unreachable)?;
    let Some(tls) = tls else { return Ok(Box::new(stream)) };
    let name = match &tls.name {
        Some(name) => name.clone(),
        None => {
            ServerName::try_from(host.to_owned()).map_err(|_| ConnectError::NoServerName(host.to_owned()))?
        }
    };
    let connector = TlsConnector::from(Arc::clone(&tls.config));
    let shaken = timeout(patience, connector.connect(name, stream)).await;
    let stream = shaken.map_err(|_| ConnectError::TlsLate(patience))?.map_err(ConnectError::Untrusted)?;
    Ok(Box::new(stream))
}
