//! One TCP connection to one server, and exchanges over it that end in time.

use std::{fmt, io, net::IpAddr, sync::Arc, time::Duration};

use netstead_model::{Clock, ProviderError};
use netstead_wire::Redactor;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use super::{
    answer::{Answer, Signature},
    tsig::{TsigKey, Verifier},
};
use crate::{Call, CallObserver, Outcome, SettingsError};

pub(super) const PORT: u16 = 53;
const NOTAUTH: u16 = 9;
const BADSIG: u16 = 16;
const BADKEY: u16 = 17;
const BADTIME: u16 = 18;

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Server {
    host: String,
    port: u16,
}

impl Server {
    pub(super) fn parse(text: &str) -> Result<Self, SettingsError> {
        let wrong = || SettingsError::new("servers", format!("`{text}` is neither `host` nor `host:port`"));
        let text = text.trim();
        if text.parse::<IpAddr>().is_ok() {
            return Ok(Self { host: text.to_owned(), port: PORT });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().map_err(|_| wrong())?),
            None => (text, PORT),
        };
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = inner.unwrap_or(host);
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let fits = match inner {
            Some(inner) => inner.parse::<IpAddr>().is_ok(),
            None => !host.is_empty() && host.chars().all(plain),
        };
        if fits && port != 0 { Ok(Self { host: host.to_owned(), port }) } else { Err(wrong()) }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[derive(Debug)]
pub(super) struct Client {
    pub(super) key: Option<TsigKey>,
    /// Knows the secret of the key.
    pub(super) redactor: Redactor,
    pub(super) observer: Arc<dyn CallObserver>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) connect: Duration,
    /// How long the next message of an answer may take.
    pub(super) answer: Duration,
}

impl Client {
    pub(super) async fn connect(&self, server: &Server) -> Result<Connection<'_>, ProviderError> {
        let shown = server.to_string();
        let unreachable = |reason: String| ProviderError::Unreachable { server: shown.clone(), reason };
        let stream = timeout(self.connect, TcpStream::connect((server.host.as_str(), server.port)))
            .await
            .map_err(|_| unreachable(format!("no connection within {:?}", self.connect)))?
            .map_err(|error| unreachable(error.to_string()))?;
        // Without this small requests would wait for more to come; if it fails they do, no more.
        let _ = stream.set_nodelay(true);
        Ok(Connection { client: self, server: shown, stream, id: 0 })
    }

    fn now(&self) -> u64 {
        u64::try_from(self.clock.wall().as_second()).unwrap_or(0)
    }
}

/// Why an exchange gave no usable answer.
#[derive(Debug)]
pub(super) enum ExchangeError {
    /// The request may have arrived.
    Lost(String),
    Denied(String),
    Malformed(String),
}

impl ExchangeError {
    fn without_secrets(self, redactor: &Redactor) -> Self {
        let shown = |reason: String| redactor.redact(&reason).into_owned();
        match self {
            Self::Lost(reason) => Self::Lost(shown(reason)),
            Self::Denied(reason) => Self::Denied(shown(reason)),
            Self::Malformed(reason) => Self::Malformed(shown(reason)),
        }
    }
}

#[derive(Debug)]
pub(super) struct Connection<'c> {
    pub(super) client: &'c Client,
    pub(super) server: String,
    stream: TcpStream,
    id: u16,
}

impl<'c> Connection<'c> {
    /// Sends `message` and reads the one message that answers it.
    pub(super) async fn exchange(
        &mut self,
        operation: &'static str,
        message: Vec<u8>,
    ) -> Result<Answer, ExchangeError> {
        let begun = self.client.clock.monotonic();
        let outcome = self.once(message).await;
        let how = match &outcome {
            Ok(answer) if matches!(answer.code, 0 | 3 | 6..=8) => Outcome::Answered,
            Ok(_) | Err(ExchangeError::Denied(_)) => Outcome::Refused,
            Err(_) => Outcome::Failed,
        };
        self.observe(operation, how, begun);
        outcome
    }

    async fn once(&mut self, message: Vec<u8>) -> Result<Answer, ExchangeError> {
        let mut verifier = self.send(message).await?;
        self.receive(verifier.as_mut()).await
    }

    pub(super) fn observe(&self, operation: &'static str, outcome: Outcome, begun: Duration) {
        let took = self.client.clock.monotonic().saturating_sub(begun);
        self.client.observer.called(Call { operation, outcome, took });
    }

    /// Signs and sends `message`, whose id is set here.
    pub(super) async fn send(&mut self, mut message: Vec<u8>) -> Result<Option<Verifier<'c>>, ExchangeError> {
        self.id = self.id.wrapping_add(1);
        for (byte, own) in message.iter_mut().zip(self.id.to_be_bytes()) {
            *byte = own;
        }
        let client = self.client;
        let verifier = match &client.key {
            None => None,
            Some(key) => {
                let mac = key.sign(&mut message, client.now()).map_err(ExchangeError::Malformed)?;
                Some(Verifier::new(key, mac))
            }
        };
        let length = u16::try_from(message.len()).map_err(|_| {
            ExchangeError::Malformed("the request is longer than a DNS message can be".into())
        })?;
        let mut frame = Vec::from(length.to_be_bytes());
        frame.append(&mut message);
        self.in_time(|stream| Box::pin(async move { stream.write_all(&frame).await })).await?;
        Ok(verifier)
    }

    /// The next message of the answer to what was sent last.
    pub(super) async fn receive(
        &mut self,
        verifier: Option<&mut Verifier<'c>>,
    ) -> Result<Answer, ExchangeError> {
        let message = self
            .in_time(|stream| {
                Box::pin(async move {
                    let length = stream.read_u16().await?;
                    let mut message = vec![0; usize::from(length)];
                    stream.read_exact(&mut message).await?;
                    Ok(message)
                })
            })
            .await?;
        let answer = Answer::read(&message).map_err(ExchangeError::Malformed)?;
        if answer.id != self.id || !answer.response {
            return Err(ExchangeError::Malformed("it answers what was not asked".into()));
        }
        if let (NOTAUTH, Some(signature)) = (answer.code, &answer.signature)
            && signature.error != 0
        {
            return Err(ExchangeError::Denied(self.explain(signature)));
        }
        // Servers leave refusals unsigned, and a forged one can only make us try again later.
        if let Some(verifier) = verifier
            && (answer.code == 0 || answer.signature.is_some())
        {
            let now = self.client.now();
            verifier.check(&message, answer.signature.as_ref(), now).map_err(|reason| {
                ExchangeError::Malformed(format!("its answer cannot be trusted: {reason}"))
            })?;
        }
        Ok(answer)
    }

    fn explain(&self, signature: &Signature) -> String {
        let key = self.client.key.as_ref().map_or("?", TsigKey::shown);
        match signature.error {
            BADSIG => format!("BADSIG: it has another secret for the key {key}"),
            BADKEY => {
                format!("BADKEY: it does not know the key {key}; name and algorithm must be the same there")
            }
            BADTIME => {
                let theirs = signature.other.iter().fold(0_u64, |time, byte| (time << 8) | u64::from(*byte));
                let apart = theirs.abs_diff(self.client.now());
                format!("BADTIME: its clock and ours are {apart} s apart; set them by NTP")
            }
            other => format!("TSIG error {other} with the key {key}"),
        }
    }

    async fn in_time<T>(
        &mut self,
        act: impl for<'s> FnOnce(
            &'s mut TcpStream,
        ) -> std::pin::Pin<Box<dyn Future<Output = io::Result<T>> + Send + 's>>,
    ) -> Result<T, ExchangeError> {
        let limit = self.client.answer;
        match timeout(limit, act(&mut self.stream)).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(ExchangeError::Lost(format!("the connection broke: {error}"))),
            Err(_) => Err(ExchangeError::Lost(format!("no answer within {limit:?}"))),
        }
    }

    /// Turns trouble into the error of a read.
    pub(super) fn reading(&self, trouble: ExchangeError) -> ProviderError {
        let server = self.server.clone();
        match trouble.without_secrets(&self.client.redactor) {
            ExchangeError::Lost(reason) => ProviderError::Unreachable { server, reason },
            ExchangeError::Denied(reason) => ProviderError::Denied { server, reason },
            ExchangeError::Malformed(reason) => ProviderError::Malformed { server, reason },
        }
    }

    /// Turns trouble into the error of a write.
    pub(super) fn writing(&self, trouble: ExchangeError) -> ProviderError {
        let server = self.server.clone();
        match trouble.without_secrets(&self.client.redactor) {
            // An answer that cannot be read or trusted says nothing about what was done.
            ExchangeError::Lost(reason) | ExchangeError::Malformed(reason) => {
                ProviderError::Unknown { server, reason }
            }
            ExchangeError::Denied(reason) => ProviderError::Denied { server, reason },
        }
    }
}

/// The name of a response code.
pub(super) fn code_name(code: u16) -> String {
    let name = match code {
        1 => "FORMERR",
        2 => "SERVFAIL",
        3 => "NXDOMAIN",
        4 => "NOTIMP",
        5 => "REFUSED",
        6 => "YXDOMAIN",
        7 => "YXRRSET",
        8 => "NXRRSET",
        9 => "NOTAUTH",
        10 => "NOTZONE",
        other => return format!("RCODE {other}"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_written_in_many_ways() {
        for (text, shown) in [
            ("ns1", "ns1:53"),
            ("ns1.example.net:5353", "ns1.example.net:5353"),
            ("192.0.2.1", "192.0.2.1:53"),
            ("2001:db8::1", "[2001:db8::1]:53"),
            ("[2001:db8::1]:54", "[2001:db8::1]:54"),
        ] {
            assert_eq!(Server::parse(text).unwrap().to_string(), shown);
        }
        for text in ["", ":53", "ns1:", "ns1:port", "ns 1", "http://ns1", "[ns1]:53", "ns1:0"] {
            assert!(Server::parse(text).is_err(), "{text}");
        }
    }
}
