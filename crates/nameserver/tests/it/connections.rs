use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use hickory_proto::op::Message;
use netstead_nameserver::Options;
use netstead_store::MemoryStore;
use netstead_wire::{ConnectionCounts, ConnectionLimits, Connections};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    time::timeout,
};

use crate::fixture::{House, options, query};

const SOON: Duration = Duration::from_secs(10);

async fn house(in_all: usize, per_peer: usize, idle: Duration) -> (House, Connections) {
    let connections = Connections::new(ConnectionLimits { in_all, per_peer });
    let options = Options { connections: connections.clone(), idle, ..options() };
    (House::with(&["example.test"], Arc::new(MemoryStore::new()), options).await, connections)
}

async fn connect(house: &House, from: u8) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((Ipv4Addr::new(127, 0, 0, from), 0))).unwrap();
    socket.connect(house.address()).await.unwrap()
}

/// The number of records in the answer; none if the server has closed the connection.
async fn ask(stream: &mut TcpStream) -> Option<usize> {
    let bytes = query("example.test.", "SOA").to_vec().unwrap();
    let asked = async {
        stream.write_u16(bytes.len().try_into().unwrap()).await?;
        stream.write_all(&bytes).await?;
        let mut answer = vec![0; stream.read_u16().await?.into()];
        stream.read_exact(&mut answer).await?;
        std::io::Result::Ok(Message::from_vec(&answer).unwrap().answers.len())
    };
    timeout(SOON, asked).await.expect("neither an answer nor an end").ok()
}

async fn is_closed(stream: &mut TcpStream) -> bool {
    let read = timeout(SOON, stream.read(&mut [0; 1])).await.expect("the connection stays open");
    matches!(read, Ok(0) | Err(_))
}

#[tokio::test]
async fn idle_connections_are_limited_in_number_and_time() {
    let (house, connections) = house(4, 4, Duration::from_millis(300)).await;
    let mut streams = Vec::new();
    for _ in 0..6 {
        streams.push(connect(&house, 1).await);
    }
    for stream in &mut streams {
        assert!(is_closed(stream).await);
    }
    // Two made room for others, the others were silent for too long.
    assert_eq!(connections.counts().displaced, 2);
    assert_eq!(ask(&mut connect(&house, 1).await).await, Some(1));
}

#[tokio::test]
async fn a_peer_that_asks_on_all_it_has_takes_no_place_of_another() {
    let (house, connections) = house(8, 2, Duration::from_secs(30)).await;
    let mut honest = connect(&house, 2).await;
    assert_eq!(ask(&mut honest).await, Some(1));
    let mut greedy = Vec::new();
    for _ in 0..20 {
        let mut stream = connect(&house, 1).await;
        assert_eq!(ask(&mut stream).await, Some(1));
        greedy.push(stream);
    }
    for stream in &mut greedy[..18] {
        assert!(is_closed(stream).await);
    }
    for stream in greedy[18..].iter_mut().chain([&mut honest]) {
        assert_eq!(ask(stream).await, Some(1));
    }
    let counts = ConnectionCounts { open: 3, displaced: 18, ..ConnectionCounts::default() };
    assert_eq!(connections.counts(), counts);
}

#[tokio::test]
async fn many_peers_that_keep_all_places_leave_room_for_one_who_comes_later() {
    let (house, connections) = house(8, 2, Duration::from_secs(30)).await;
    let mut holders = Vec::new();
    for from in 1..=4 {
        for _ in 0..2 {
            let mut stream = connect(&house, from).await;
            assert_eq!(ask(&mut stream).await, Some(1));
            holders.push(stream);
        }
    }
    for _ in 0..3 {
        assert_eq!(ask(&mut connect(&house, 9).await).await, Some(1));
    }
    assert!(is_closed(&mut holders[0]).await, "the longest idle makes room");
    assert!(connections.counts().open <= 8);
    assert_eq!(connections.counts().refused, 0);
}
