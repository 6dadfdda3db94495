use std::{net::UdpSocket, sync::LazyLock, time::Duration};

use proptest::{collection::vec, prelude::*};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    runtime::Runtime,
};

use crate::fixture::{House, query};

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
static HOUSE: LazyLock<House> = LazyLock::new(|| {
    RUNTIME.block_on(async {
        let house = House::new(&["example.test"]).await;
        let zone = "www.example.test 300 A 192.0.2.1\n*.w.example.test 300 CNAME x.w.example.test\nsub.example.test 300 NS a.b";
        house.fill("example.test", zone).await;
        house
    })
});

/// Random bytes, and queries with some bytes changed, cut off or put in.
fn packet() -> impl Strategy<Value = Vec<u8>> {
    let names =
        prop_oneof![Just("www.example.test."), Just("a.w.example.test."), Just("x.sub.example.test.")];
    let real = (names, prop_oneof![Just("A"), Just("AXFR"), Just("IXFR"), Just("ANY"), Just("DS")])
        .prop_map(|(name, kind)| query(name, kind).to_vec().unwrap());
    let bent = (
        real,
        vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        any::<prop::sample::Index>(),
        any::<bool>(),
    )
        .prop_map(|(mut bytes, changes, cut, shorten)| {
            for (at, byte) in changes {
                *at.get_mut(&mut bytes) = byte;
            }
            if shorten {
                bytes.truncate(cut.index(bytes.len()));
            }
            bytes
        });
    prop_oneof![vec(any::<u8>(), 0..600), bent]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_datagrams_stop_the_server(packets in vec(packet(), 1..100)) {
        let house = &*HOUSE;
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for packet in &packets {
            socket.send_to(packet, house.address()).unwrap();
        }
        let answer = RUNTIME.block_on(house.ask("www.example.test.", "A"));
        prop_assert!(answer.contains("192.0.2.1"), "{}", answer);
    }

    #[test]
    fn no_stream_stops_the_server(packets in vec(packet(), 1..5), cut in any::<bool>()) {
        let house = &*HOUSE;
        RUNTIME.block_on(async {
            let mut stream = TcpStream::connect(house.address()).await.unwrap();
            for packet in &packets {
                let length = u16::try_from(packet.len()).unwrap();
                let _ = stream.write_all(&length.to_be_bytes()).await;
                let _ = stream.write_all(packet).await;
            }
            if cut {
                let _ = stream.write_all(&[200]).await;
            }
            let _ = stream.shutdown().await;
            let mut rest = Vec::new();
            let read = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await;
            assert!(read.is_ok(), "the server goes on talking");
        });
        let answer = RUNTIME.block_on(house.ask("www.example.test.", "A"));
        prop_assert!(answer.contains("192.0.2.1"), "{}", answer);
    }
}
