//! Servers that stop half way, or say what is not so.

use std::net::SocketAddr;

use netstead_model::{DnsProvider as _, ProviderError};
use netstead_providers::dns::rfc2136::{Config, Rfc2136};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use crate::support::{a, change, context, hasty, request, stopped, zone};

const APEX: &[u8] = b"\x07example\x04test\0";

fn record(owner: &[u8], kind: u16, data: &[u8]) -> Vec<u8> {
    let mut bytes = owner.to_vec();
    bytes.extend(kind.to_be_bytes());
    bytes.extend([0, 1, 0, 0, 1, 44]);
    bytes.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
    bytes.extend(data);
    bytes
}

fn soa(serial: u32) -> Vec<u8> {
    let mut data = b"\x03ns1\0\x04host\0".to_vec();
    for number in [serial, 1, 1, 1, 1] {
        data.extend(number.to_be_bytes());
    }
    record(APEX, 6, &data)
}

fn address(label: u8) -> Vec<u8> {
    let mut owner = vec![1, label];
    owner.extend(APEX);
    record(&owner, 1, &[192, 0, 2, 1])
}

/// Answers every question with `messages`, each a list of records, and then closes or falls silent.
async fn liar(messages: Vec<Vec<Vec<u8>>>, silent: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let messages = messages.clone();
            tokio::spawn(async move {
                let length = stream.read_u16().await.unwrap();
                let mut question = vec![0; usize::from(length)];
                stream.read_exact(&mut question).await.unwrap();
                for records in messages {
                    let mut message = question[..2].to_vec();
                    message.extend([0x84, 0, 0, 0]);
                    message.extend(u16::try_from(records.len()).unwrap().to_be_bytes());
                    message.extend([0, 0, 0, 0]);
                    message.extend(records.concat());
                    stream.write_u16(u16::try_from(message.len()).unwrap()).await.unwrap();
                    stream.write_all(&message).await.unwrap();
                }
                if silent {
                    let _ = stream.read_u8().await;
                }
            });
        }
    });
    address
}

async fn read(messages: Vec<Vec<Vec<u8>>>, silent: bool) -> Result<usize, ProviderError> {
    let server = liar(messages, silent).await;
    let provider = hasty(Config::new([server.to_string()]));
    provider.read(&zone()).await.map(|content| content.sets.len())
}

#[tokio::test]
async fn a_whole_transfer_is_taken() {
    let whole = vec![vec![soa(7), address(b'a')], vec![address(b'b')], vec![address(b'c'), soa(7)]];
    assert_eq!(read(whole, false).await, Ok(3));
}

#[tokio::test]
async fn a_transfer_that_stops_is_an_error() {
    let cut = vec![vec![soa(7), address(b'a')], vec![address(b'b')]];
    for silent in [false, true] {
        let error = read(cut.clone(), silent).await.unwrap_err();
        assert!(matches!(error, ProviderError::Malformed { .. }), "{error:?}");
        assert!(error.to_string().contains("the transfer of `example.test` is incomplete"), "{error}");
    }
}

#[tokio::test]
async fn a_transfer_that_is_not_one_is_an_error() {
    for (what, messages) in [
        ("only one SOA", vec![vec![soa(7)]]),
        ("other serials", vec![vec![soa(7), address(b'a'), soa(8)]]),
        ("no SOA first", vec![vec![address(b'a'), soa(7), soa(7)]]),
        ("records after the end", vec![vec![soa(7), address(b'a'), soa(7), address(b'b')]]),
        ("an empty message", vec![vec![soa(7), address(b'a')], vec![], vec![soa(7)]]),
        ("garbage", vec![vec![vec![0xff; 40]]]),
    ] {
        let outcome = read(messages, false).await;
        assert!(matches!(outcome, Err(ProviderError::Malformed { .. })), "{what}: {outcome:?}");
    }
}

#[tokio::test]
async fn a_transfer_without_end_is_given_up_at_its_limit() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let length = stream.read_u16().await.unwrap();
        let mut question = vec![0; usize::from(length)];
        stream.read_exact(&mut question).await.unwrap();
        let message = |record: Vec<u8>| {
            let mut message = question[..2].to_vec();
            message.extend([0x84, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
            message.extend(record);
            [&u16::try_from(message.len()).unwrap().to_be_bytes()[..], &message].concat()
        };
        let _ = stream.write_all(&message(soa(7))).await;
        let long = message(record(APEX, 65_280, &vec![0; 60_000]));
        while stream.write_all(&long).await.is_ok() {}
    });
    let minute = std::time::Duration::from_mins(1);
    let config = Config::new([server.to_string()]);
    let provider = Rfc2136::with_timeouts(config, &context(), minute, minute).unwrap();
    let error = provider.read(&zone()).await.unwrap_err();
    let reason =
        "the transfer of `example.test` has more than 268435456 bytes, the most that is read".to_owned();
    assert_eq!(error, ProviderError::Malformed { server: server.to_string(), reason });
}

#[tokio::test]
async fn an_unsigned_answer_is_not_believed() {
    let whole = vec![vec![soa(7), address(b'a'), soa(7)]];
    let server = liar(whole, false).await;
    let key = netstead_testkit::TsigKey::default();
    let error = hasty(crate::support::config(server, &key)).read(&zone()).await.unwrap_err();
    assert!(error.to_string().ends_with("its answer cannot be trusted: it is not signed"), "{error}");
}

#[tokio::test]
async fn a_silent_server_times_out() {
    let server = liar(vec![], true).await;
    let provider = hasty(Config::new([server.to_string()]));
    let error = provider.read(&zone()).await.unwrap_err();
    assert!(matches!(error, ProviderError::Unreachable { .. }), "{error:?}");
    let unit = change(None, Some(a("x.example.test", &["192.0.2.1"])));
    let error = stopped(provider.write(&zone(), &request(1, vec![unit])).await);
    assert!(matches!(error, ProviderError::Unreachable { .. }), "{error:?}");
}

/// It answers the questions before an update, and takes the update without a word.
#[tokio::test]
async fn an_update_without_an_answer_is_unknown() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        loop {
            let Ok(length) = stream.read_u16().await else { return };
            let mut question = vec![0; usize::from(length)];
            stream.read_exact(&mut question).await.unwrap();
            if question[2] & 0x78 == 0x28 {
                continue;
            }
            let records = if question.ends_with(&[0, 6, 0, 1]) { soa(7) } else { Vec::new() };
            let mut message = question[..2].to_vec();
            message.extend([0x84, 0, 0, 0, 0, u8::from(!records.is_empty()), 0, 0, 0, 0]);
            message.extend(records);
            stream.write_u16(u16::try_from(message.len()).unwrap()).await.unwrap();
            stream.write_all(&message).await.unwrap();
        }
    });
    let provider = hasty(Config::new([server.to_string()]));
    let unit = change(None, Some(a("x.example.test", &["192.0.2.1"])));
    let error = stopped(provider.write(&zone(), &request(1, vec![unit])).await);
    assert!(matches!(error, ProviderError::Unknown { .. }), "{error:?}");
}
