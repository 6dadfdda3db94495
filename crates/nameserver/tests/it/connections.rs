use std::{sync::Arc, time::Duration};

use netstead_nameserver::Options;
use netstead_store::MemoryStore;
use tokio::{io::AsyncReadExt, net::TcpStream};

use crate::fixture::{House, options, query};

#[tokio::test]
async fn idle_connections_are_limited_in_number_and_time() {
    let options = Options { connections: 4, idle: Duration::from_millis(300), ..options() };
    let house = House::with(&["example.test"], Arc::new(MemoryStore::new()), options).await;
    let mut streams = Vec::new();
    for _ in 0..6 {
        streams.push(TcpStream::connect(house.address()).await.unwrap());
    }
    // Two too many are closed at once.
    for stream in streams.iter_mut().skip(4) {
        let closed = tokio::time::timeout(Duration::from_millis(200), stream.read(&mut [0; 1])).await;
        assert!(matches!(closed, Ok(Ok(0) | Err(_))), "{closed:?}");
    }
    // The others after a while, and then there is room again.
    for stream in streams.iter_mut().take(4) {
        let closed = tokio::time::timeout(Duration::from_secs(2), stream.read(&mut [0; 1])).await;
        assert!(matches!(closed, Ok(Ok(0) | Err(_))), "{closed:?}");
    }
    let answers = house.exchange_tcp(&query("example.test.", "SOA"), |messages| !messages.is_empty()).await;
    assert_eq!(answers[0].answers.len(), 1);
}
