use std::net::IpAddr;

use netstead_wire::{ActiveConnection, ConnectionCounts, ConnectionLimits, Connections, Refused};

fn peer(last: u8) -> IpAddr {
    [192, 0, 2, last].into()
}

fn connections(in_all: usize, per_peer: usize) -> Connections {
    Connections::new(ConnectionLimits { in_all, per_peer })
}

/// Whether it was told to end: one look, without a runtime.
fn is_displaced(connection: &ActiveConnection) -> bool {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    Box::pin(connection.displaced()).as_mut().poll(&mut context).is_ready()
}

#[test]
fn the_longest_idle_connection_makes_room_for_a_new_one() {
    let connections = connections(3, 3);
    let open: Vec<_> = (1..=3).map(|last| connections.admit(peer(last)).unwrap()).collect();
    // The first one asks something, so the second is the one that has said nothing for longest.
    drop(open[0].begin_request());
    let fourth = connections.admit(peer(4)).unwrap();
    assert_eq!(open.iter().map(is_displaced).collect::<Vec<_>>(), [false, true, false]);
    assert!(!is_displaced(&fourth));
    assert_eq!(connections.counts().open, 3);
    drop((open, fourth));
    assert_eq!(connections.counts().open, 0);
}

#[test]
fn a_request_in_progress_is_never_cut_off_for_another_connection() {
    let connections = connections(2, 2);
    let open: Vec<_> = (1..=2).map(|last| connections.admit(peer(last)).unwrap()).collect();
    let mut requests: Vec<_> = open.iter().map(ActiveConnection::begin_request).collect();
    // HTTP/2 has several at once; the connection is idle after the last of them.
    let second_of_first = open[0].begin_request();
    assert_eq!(connections.admit(peer(3)).unwrap_err(), Refused::InAll);
    drop(requests.remove(0));
    assert_eq!(connections.admit(peer(3)).unwrap_err(), Refused::InAll);
    drop(second_of_first);
    let third = connections.admit(peer(3)).unwrap();
    assert_eq!(open.iter().map(is_displaced).collect::<Vec<_>>(), [true, false]);
    assert!(!is_displaced(&third));
}

#[test]
fn a_peer_with_too_many_loses_its_own_and_not_those_of_others() {
    let connections = connections(100, 2);
    let quiet = connections.admit(peer(1)).unwrap();
    let greedy: Vec<_> = (0..5).map(|_| connections.admit(peer(2)).unwrap()).collect();
    assert_eq!(greedy.iter().map(is_displaced).collect::<Vec<_>>(), [true, true, true, false, false]);
    assert!(!is_displaced(&quiet));
    assert_eq!(connections.counts().open, 3);
    let _requests: Vec<_> = greedy.iter().map(ActiveConnection::begin_request).collect();
    assert_eq!(connections.admit(peer(2)).unwrap_err(), Refused::OfThisPeer);
    // The same machine, as a socket for both families sees it.
    let mapped: IpAddr = "::ffff:192.0.2.2".parse().unwrap();
    assert_eq!(connections.admit(mapped).unwrap_err(), Refused::OfThisPeer);
    let third = connections.admit(peer(3)).unwrap();
    let counts = ConnectionCounts { open: 4, displaced: 3, refused: 2, silent: 0 };
    assert_eq!((connections.counts(), third.peer()), (counts, peer(3)));
}

#[test]
fn a_displaced_connection_that_still_ends_its_request_does_not_count_twice() {
    let connections = connections(1, 1);
    let first = connections.admit(peer(1)).unwrap();
    let second = connections.admit(peer(2)).unwrap();
    // It had not noticed yet that it is over.
    drop(first.begin_request());
    drop(first);
    assert_eq!(connections.counts().open, 1);
    assert!(!is_displaced(&second));
    let third = connections.admit(peer(3)).unwrap();
    assert!(is_displaced(&second) && !is_displaced(&third));
}

#[test]
fn one_peer_gets_a_quarter_unless_told_otherwise() {
    assert_eq!(ConnectionLimits::new(512), ConnectionLimits { in_all: 512, per_peer: 128 });
    assert_eq!(ConnectionLimits::new(0), ConnectionLimits { in_all: 1, per_peer: 1 });
}
