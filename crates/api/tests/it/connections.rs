//! Limits of connections: in time until the first request, in number, and of one peer.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use netstead_api::{ServeOptions, TlsFiles};
use netstead_model::SystemClock;
use netstead_wire::{ConnectionCounts, ConnectionLimits, Connections};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    time::timeout,
};

use crate::support::House;

const SOON: Duration = Duration::from_secs(10);
/// Long enough for a machine that is busy with other tests.
const FIRST_REQUEST: Duration = Duration::from_secs(1);
/// The whole preface of HTTP/2, and settings that say nothing.
const HTTP_2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";

fn limited(in_all: usize, per_peer: usize) -> (ServeOptions, Connections) {
    let connections = Connections::new(ConnectionLimits { in_all, per_peer });
    (ServeOptions { connections: connections.clone(), ..ServeOptions::new("127.0.0.1:0") }, connections)
}

async fn connect(house: &House, from: u8, first: &[u8]) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((Ipv4Addr::new(127, 0, 0, from), 0))).unwrap();
    let mut stream = socket.connect(house.server.address()).await.unwrap();
    stream.write_all(first).await.unwrap();
    stream
}

/// Reads what comes until the server ends the connection.
async fn read_to_the_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A connection that is closed while the client still sends ends with a reset.
    let _ = timeout(SOON, stream.read_to_end(&mut bytes)).await.expect("the connection stays open");
    bytes
}

fn get(house: &House, path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", house.server.address()).into_bytes()
}

/// Asks on a connection that is open, and takes the answer.
async fn ask(house: &House, stream: &mut TcpStream) -> Option<String> {
    stream.write_all(&get(house, "/healthz")).await.ok()?;
    let mut bytes = [0; 1024];
    let length = timeout(SOON, stream.read(&mut bytes)).await.expect("no answer").ok()?;
    let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
    text.lines().next().map(str::to_owned)
}

#[tokio::test]
async fn a_connection_whose_first_request_does_not_come_in_time_is_closed() {
    let (options, connections) = limited(100, 100);
    let options = ServeOptions { first_request: FIRST_REQUEST, ..options };
    let house = House::with(SystemClock::shared(), options).await;
    let beginnings: [&[u8]; 6] = [
        b"",
        b"P",
        b"PRI * HTTP/2.0\r\n\r\n",
        HTTP_2,
        b"GET /healthz HT",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\n",
    ];
    let mut streams = Vec::new();
    for beginning in beginnings {
        streams.push(connect(&house, 1, beginning).await);
    }
    for stream in &mut streams {
        let said = read_to_the_end(stream).await;
        assert!(!said.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&said));
    }
    assert_eq!(connections.counts(), ConnectionCounts { silent: 6, ..ConnectionCounts::default() });
}

#[tokio::test]
async fn a_tls_handshake_that_does_not_end_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["localhost".to_owned()];
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
    let (cert_file, key_file) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&cert_file, cert.pem()).unwrap();
    std::fs::write(&key_file, signing_key.serialize_pem()).unwrap();
    let (options, connections) = limited(100, 100);
    let tls = Some(TlsFiles::new(cert_file, key_file));
    let options = ServeOptions { tls, first_request: FIRST_REQUEST, ..options };
    let house = House::with(SystemClock::shared(), options).await;
    // Silence, and the head of a record that never comes.
    for beginning in [&b""[..], &[0x16, 0x03, 0x01, 0x02, 0x00]] {
        let mut stream = connect(&house, 1, beginning).await;
        assert_eq!(read_to_the_end(&mut stream).await, b"");
    }
    assert_eq!(connections.counts(), ConnectionCounts { silent: 2, ..ConnectionCounts::default() });
}

#[tokio::test]
async fn a_connection_that_has_asked_may_be_silent_for_longer() {
    let (options, connections) = limited(100, 100);
    let options = ServeOptions { first_request: Duration::from_millis(300), ..options };
    let house = House::with(SystemClock::shared(), options).await;
    let mut stream = connect(&house, 1, b"").await;
    assert_eq!(ask(&house, &mut stream).await.as_deref(), Some("HTTP/1.1 200 OK"));
    // Another connection shows that the time is over.
    assert_eq!(read_to_the_end(&mut connect(&house, 1, b"").await).await, b"");
    assert_eq!(ask(&house, &mut stream).await.as_deref(), Some("HTTP/1.1 200 OK"));
    assert_eq!(connections.counts(), ConnectionCounts { open: 1, silent: 1, ..ConnectionCounts::default() });
}

#[tokio::test]
async fn one_peer_with_all_it_may_have_takes_no_place_of_another() {
    let (options, connections) = limited(100, 4);
    let house = House::with(SystemClock::shared(), options).await;
    let mut quiet = connect(&house, 2, b"").await;
    assert_eq!(ask(&house, &mut quiet).await.as_deref(), Some("HTTP/1.1 200 OK"));
    let mut greedy = Vec::new();
    for _ in 0..40 {
        greedy.push(connect(&house, 1, b"").await);
    }
    for stream in &mut greedy[..36] {
        assert_eq!(read_to_the_end(stream).await, b"");
    }
    // The last four are there, and the other peer never noticed.
    for stream in &mut greedy[36..] {
        assert_eq!(ask(&house, stream).await.as_deref(), Some("HTTP/1.1 200 OK"));
    }
    assert_eq!(ask(&house, &mut quiet).await.as_deref(), Some("HTTP/1.1 200 OK"));
    assert_eq!(
        connections.counts(),
        ConnectionCounts { open: 5, displaced: 36, ..ConnectionCounts::default() }
    );
}

#[tokio::test]
async fn with_all_places_taken_the_longest_idle_goes_and_requests_in_progress_stay() {
    let (options, connections) = limited(3, 3);
    let house = House::with(SystemClock::shared(), options).await;
    // A stream of events is a request that does not end.
    let mut streams = Vec::new();
    for _ in 0..2 {
        let stream = house.get("/events/stream").into_request().send().await.unwrap();
        assert_eq!(stream.status(), 200);
        streams.push(stream);
    }
    let mut idle = connect(&house, 2, b"").await;
    assert_eq!(ask(&house, &mut idle).await.as_deref(), Some("HTTP/1.1 200 OK"));
    let follow = format!(
        "GET /api/v1/events/stream HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        house.server.address(),
        house.admin
    );
    let mut third = connect(&house, 3, follow.as_bytes()).await;
    assert_eq!(read_to_the_end(&mut idle).await, b"");
    assert!(timeout(SOON, third.read(&mut [0; 12])).await.unwrap().unwrap() > 0);
    let mut refused = connect(&house, 4, b"").await;
    assert_eq!(read_to_the_end(&mut refused).await, b"");
    let counts = ConnectionCounts { open: 3, displaced: 1, refused: 1, silent: 0 };
    assert_eq!(connections.counts(), counts);
    // The end of one is a place for another, and the streams have lost nothing.
    drop(third);
    for _ in 0..500 {
        if connections.counts().open == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    house.pool("lan", json!({"network": "10.0.0.0/24"})).await;
    for stream in &mut streams {
        assert!(timeout(SOON, stream.chunk()).await.unwrap().unwrap().is_some());
    }
}
