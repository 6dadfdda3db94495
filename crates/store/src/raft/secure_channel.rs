//! Authenticated connections between nodes: by certificates of one authority, or by a shared secret.
//!
//! With a secret, both sides prove that they have it (HMAC over a nonce of each), and every frame has a MAC with its number
//! under a key of this connection and direction. So a peer without the secret cannot send, change, repeat or drop a frame
//! unnoticed. The frames are not encrypted: use certificates where that matters.

use std::{fmt, io, sync::Arc, time::Duration};

use aws_lc_rs::{constant_time, hmac};
use rand::RngCore as _;
use rustls::{
    ClientConfig, RootCertStore, ServerConfig, pki_types::ServerName, server::WebPkiClientVerifier,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::{options::RaftSecurity, wire::MAX_FRAME};
use crate::StoreError;

const MAGIC: &[u8; 16] = b"netstead raft 1\n";
const NONCE: usize = 32;
const MAC: usize = 32;

/// The first byte of an alert of TLS, and of the greeting of who calls.
const TLS: [u8; 2] = [0x15, 0x16];

/// How long who connects may take to show who it is.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// How this node shows who it is and knows others.
#[derive(Clone)]
pub(super) enum ChannelSecurity {
    Tls { connector: TlsConnector, acceptor: TlsAcceptor },
    Secret(Arc<hmac::Key>),
}

impl fmt::Debug for ChannelSecurity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tls { .. } => "Tls",
            Self::Secret(_) => "Secret",
        })
    }
}

impl ChannelSecurity {
    pub(super) fn new(security: &RaftSecurity) -> Result<Self, StoreError> {
        match security {
            RaftSecurity::Secret(secret) if secret.len() < 16 => Err(StoreError::Unavailable {
                reason:
                    "the `secret` of a cluster needs 16 characters or more; `openssl rand -hex 32` makes one"
                        .into(),
            }),
            RaftSecurity::Secret(secret) => {
                Ok(Self::Secret(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()))))
            }
            RaftSecurity::Tls { ca, cert, key } => tls(ca, cert, key).map_err(|reason| {
                StoreError::Unavailable { reason: format!("the cluster's certificates: {reason}") }
            }),
        }
    }

    /// Connects to `address`, for which we know the one at the other end to be ours.
    pub(super) async fn connect(&self, address: &str) -> io::Result<Channel> {
        let work = async {
            let tcp = TcpStream::connect(address).await?;
            tcp.set_nodelay(true)?;
            match self {
                Self::Tls { connector, .. } => {
                    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
                    let host = host.trim_matches(['[', ']']).to_owned();
                    let name = ServerName::try_from(host).map_err(io::Error::other)?;
                    Ok(Channel::open(Box::new(connector.connect(name, tcp).await?), None))
                }
                Self::Secret(key) => prove(key, tcp, Side::Caller).await,
            }
        };
        let done = timeout(PATIENCE, work).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        done.map_err(|error| self.explain(error))
    }

    /// Explains an error between both sides, in words that say what to look at.
    pub(super) fn explain(&self, error: io::Error) -> io::Error {
        use rustls::Error;
        if matches!(self, Self::Secret(_)) {
            return error;
        }
        let words = match (cause(&error), error.kind()) {
            (Some(cause), _) if is_of_another_authority(cause) => ANOTHER_AUTHORITY,
            (Some(Error::InvalidMessage(_)), _) => "it knows other nodes by a `secret`, or is no node",
            // The server checks our certificate after we have checked its own, and need not say why it hangs up.
            (Some(Error::AlertReceived(_)), _)
            | (
                _,
                io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe,
            ) => "it hung up; is our certificate signed by the authority in its `ca_file`?",
            _ => return error,
        };
        io::Error::other(format!("{words} ({error})"))
    }

    /// Lets one in that connected to us, if it is ours. One that seems to be a node and cannot show that it is ours gets
    /// [`io::ErrorKind::PermissionDenied`], with words that say what to look at.
    pub(super) async fn accept(&self, tcp: TcpStream) -> io::Result<Channel> {
        let work = async {
            tcp.set_nodelay(true)?;
            match self {
                Self::Tls { acceptor, .. } => {
                    let mut begin = [0; MAGIC.len()];
                    let length = tcp.peek(&mut begin).await?;
                    let begin = begin.get(..length).filter(|begin| !begin.is_empty());
                    let has_a_secret = begin.is_some_and(|begin| MAGIC.starts_with(begin));
                    let accepted = acceptor.accept(tcp).await;
                    let stream = accepted.map_err(|error| turned_away(error, has_a_secret))?;
                    Ok(Channel::open(Box::new(stream), None))
                }
                Self::Secret(key) => prove(key, tcp, Side::Called).await,
            }
        };
        timeout(PATIENCE, work).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

const ANOTHER_AUTHORITY: &str = "its certificate is not signed by the authority in our `ca_file`";

fn cause(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref().and_then(|cause| cause.downcast_ref())
}

fn is_of_another_authority(cause: &rustls::Error) -> bool {
    use rustls::{CertificateError, Error};
    // The signature is bad if the other authority bears the same name.
    matches!(
        cause,
        Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature)
    )
}

/// Why one that called us is none of ours, if it seems to be a node.
fn turned_away(error: io::Error, has_a_secret: bool) -> io::Error {
    let words = match cause(&error) {
        _ if has_a_secret => {
            "it has a `secret`, and this node knows others by certificates (`ca_file`); all nodes of a cluster need the same"
        }
        Some(cause) if is_of_another_authority(cause) => ANOTHER_AUTHORITY,
        Some(rustls::Error::AlertReceived(_)) => {
            "it does not take our certificate; is that signed by the authority in its `ca_file`?"
        }
        _ => return error,
    };
    denied(format!("{words} ({error})"))
}

fn denied(words: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, words.into())
}

fn tls(ca: &str, cert: &str, key: &str) -> Result<ChannelSecurity, String> {
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(ca.as_bytes()) {
        roots.add(root.map_err(|error| format!("`ca_file`: {error}"))?).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() {
        return Err("there is no certificate in `ca_file`".into());
    }
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(cert.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|error| format!("`cert_file`: {error}"))?;
    let key =
        PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|error| format!("`key_file`: {error}"))?;
    let misfit = |error: rustls::Error| match error {
        rustls::Error::InconsistentKeys(_) => {
            "`key_file` is not the key of the certificate in `cert_file`".into()
        }
        error => error.to_string(),
    };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let roots = Arc::new(roots);
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider))
        .build()
        .map_err(|error| error.to_string())?;
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain.clone(), key.clone_key())
        .map_err(misfit)?;
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .map_err(|error| error.to_string())?;
    Ok(ChannelSecurity::Tls { connector: Arc::new(client).into(), acceptor: Arc::new(server).into() })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Caller,
    Called,
}

/// Both sides send a nonce, then a proof that only a holder of the secret can compute from both.
async fn prove(key: &hmac::Key, mut stream: TcpStream, side: Side) -> io::Result<Channel> {
    let mut ours = [0; NONCE];
    rand::rng().fill_bytes(&mut ours);
    // All at once: who hangs up at the first word is not written to again, and what it says is heard.
    stream.write_all(&[&MAGIC[..], &ours].concat()).await?;
    let first = stream.read_u8().await.map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset if side == Side::Caller => {
            io::Error::other(format!(
                "it hung up; does it know other nodes by certificates (`ca_file`), or is it no node? ({error})"
            ))
        }
        _ => error,
    })?;
    if TLS.contains(&first) {
        return Err(denied(
            "it knows other nodes by certificates (`ca_file`), and this node has a `secret`; all nodes of a cluster need the \
             same",
        ));
    }
    let mut rest = [0; MAGIC.len() - 1];
    stream.read_exact(&mut rest).await?;
    if MAGIC.split_first() != Some((&first, &rest)) {
        return Err(io::Error::other("the one at the other end is no node of this kind of cluster"));
    }
    let mut theirs = [0; NONCE];
    stream.read_exact(&mut theirs).await?;
    let (caller, called) = match side {
        Side::Caller => (ours, theirs),
        Side::Called => (theirs, ours),
    };
    let word = |what: &[u8]| {
        let mut context = hmac::Context::with_key(key);
        for part in [&MAGIC[..], what, &caller, &called] {
            context.update(part);
        }
        context.sign()
    };
    let (we, they) = match side {
        Side::Caller => (word(b"caller"), word(b"called")),
        Side::Called => (word(b"called"), word(b"caller")),
    };
    // The client proves itself first: the server sends nothing useful to a peer that cannot.
    let mut proof = [0; MAC];
    let other_secret = || denied("the node at the other end has another `secret`");
    if side == Side::Caller {
        stream.write_all(we.as_ref()).await?;
        stream.read_exact(&mut proof).await.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => other_secret(),
            _ => error,
        })?;
    } else {
        stream.read_exact(&mut proof).await?;
    }
    constant_time::verify_slices_are_equal(&proof, they.as_ref()).map_err(|_| other_secret())?;
    if side == Side::Called {
        stream.write_all(we.as_ref()).await?;
    }
    let session = |what: &[u8]| hmac::Key::new(hmac::HMAC_SHA256, word(what).as_ref());
    let (sending, receiving) = match side {
        Side::Caller => (session(b"from caller"), session(b"from called")),
        Side::Called => (session(b"from called"), session(b"from caller")),
    };
    Ok(Channel::open(Box::new(stream), Some((sending, receiving))))
}

/// An authenticated connection, in both directions.
pub(super) struct Channel {
    pub(super) sender: FrameSender,
    pub(super) receiver: FrameReceiver,
}

impl Channel {
    fn open(stream: Box<dyn Stream>, keys: Option<(hmac::Key, hmac::Key)>) -> Self {
        let (read, write) = tokio::io::split(stream);
        let (sending, receiving) = keys.unzip();
        Self {
            sender: FrameSender { write, key: sending, number: 0 },
            receiver: FrameReceiver { read, key: receiving, number: 0 },
        }
    }
}

pub(super) struct FrameSender {
    write: WriteHalf<Box<dyn Stream>>,
    key: Option<hmac::Key>,
    number: u64,
}

pub(super) struct FrameReceiver {
    read: ReadHalf<Box<dyn Stream>>,
    key: Option<hmac::Key>,
    number: u64,
}

fn mac(key: &hmac::Key, number: u64, frame: &[u8]) -> hmac::Tag {
    let mut context = hmac::Context::with_key(key);
    context.update(&number.to_be_bytes());
    context.update(&(frame.len() as u64).to_be_bytes());
    context.update(frame);
    context.sign()
}

impl FrameSender {
    pub(super) async fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        let length = u32::try_from(frame.len()).ok().filter(|_| frame.len() <= MAX_FRAME);
        let length = length.ok_or_else(|| io::Error::other("the message is too large"))?;
        let mut bytes = Vec::with_capacity(frame.len() + 4 + MAC);
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(frame);
        if let Some(key) = &self.key {
            bytes.extend_from_slice(mac(key, self.number, frame).as_ref());
        }
        self.number += 1;
        self.write.write_all(&bytes).await?;
        self.write.flush().await
    }
}

impl FrameReceiver {
    /// The next frame; `None` at the end.
    pub(super) async fn receive(&mut self) -> io::Result<Option<Vec<u8>>> {
        let length = match self.read.read_u32().await {
            Ok(length) => length as usize,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        };
        if length > MAX_FRAME {
            return Err(io::Error::other("a message is larger than any can be"));
        }
        // Grows with what really comes, so a length alone takes no memory.
        let mut frame = Vec::new();
        (&mut self.read).take(length as u64).read_to_end(&mut frame).await?;
        if frame.len() < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(key) = &self.key {
            let mut tag = [0; MAC];
            self.read.read_exact(&mut tag).await?;
            constant_time::verify_slices_are_equal(&tag, mac(key, self.number, &frame).as_ref())
                .map_err(|_| io::Error::other("a message was changed on its way"))?;
        }
        self.number += 1;
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
    use tokio::net::TcpListener;

    use super::*;

    /// One with a certificate of an authority of its own.
    fn certified() -> ChannelSecurity {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".into()]).unwrap();
        let cert = params.signed_by(&key, &authority).unwrap().pem();
        let security = RaftSecurity::Tls { ca: authority.pem(), cert, key: key.serialize_pem() };
        ChannelSecurity::new(&security).unwrap()
    }

    fn secret(secret: &str) -> ChannelSecurity {
        ChannelSecurity::new(&RaftSecurity::Secret(secret.into())).unwrap()
    }

    /// The results of a handshake on both sides.
    async fn meet(caller: ChannelSecurity, called: ChannelSecurity) -> [io::Error; 2] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let answering = tokio::spawn(async move {
            let (tcp, _) = listener.accept().await.unwrap();
            called.accept(tcp).await.map(drop)
        });
        let calling = caller.connect(&address).await.map(drop);
        [calling.unwrap_err(), answering.await.unwrap().unwrap_err()]
    }

    #[tokio::test]
    async fn who_proves_itself_otherwise_is_told_so_and_so_is_who_was_called() {
        let sixteen = "sixteen characters";
        let cases = [
            (
                secret(sixteen),
                certified(),
                "it knows other nodes by certificates (`ca_file`), and this node has a `secret`",
                "it has a `secret`, and this node knows others by certificates (`ca_file`)",
            ),
            (
                certified(),
                secret(sixteen),
                "it knows other nodes by a `secret`, or is no node",
                "it knows other nodes by certificates (`ca_file`), and this node has a `secret`",
            ),
            (
                secret(sixteen),
                secret("other sixteen characters"),
                "the node at the other end has another `secret`",
                "the node at the other end has another `secret`",
            ),
            (certified(), certified(), ANOTHER_AUTHORITY, "it does not take our certificate"),
        ];
        for (caller, called, to_caller, to_called) in cases {
            let [calling, answering] = meet(caller, called).await;
            assert!(calling.to_string().contains(to_caller), "{calling}");
            assert!(answering.to_string().contains(to_called), "{answering}");
            assert_eq!(answering.kind(), io::ErrorKind::PermissionDenied, "{answering}");
        }
    }

    #[tokio::test]
    async fn who_hangs_up_without_a_word_may_want_a_certificate() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move { drop(listener.accept().await) });
        let error = secret("sixteen characters").connect(&address).await.map(drop).unwrap_err();
        assert!(error.to_string().contains("does it know other nodes by certificates"), "{error}");
    }
}
