//! A node leads with what it holds open while it follows.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use netstead_testkit::wait_until;

use super::nodes::Nodes;
use crate::sandbox::SOON;

/// Docker's API with no containers, which counts who looks and who listens.
struct Counting {
    address: SocketAddr,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    lists: AtomicUsize,
    /// Streams of events that were ever opened.
    streams: AtomicUsize,
}

impl Counting {
    fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let (address, counts) = (listener.local_addr().unwrap(), Arc::new(Counts::default()));
        let inside = Arc::clone(&counts);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let inside = Arc::clone(&inside);
                thread::spawn(move || serve(stream, &inside));
            }
        });
        Self { address, counts }
    }

    fn lists(&self) -> usize {
        self.counts.lists.load(Ordering::SeqCst)
    }

    fn streams(&self) -> usize {
        self.counts.streams.load(Ordering::SeqCst)
    }
}

fn serve(mut stream: TcpStream, counts: &Counts) {
    loop {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            if !matches!(stream.read(&mut byte), Ok(1)) {
                return;
            }
            request.extend_from_slice(&byte);
        }
        let text = String::from_utf8_lossy(&request).into_owned();
        let path = text.split([' ', '?']).nth(1).unwrap_or_default();
        let answer = match path {
            "/events" => {
                counts.streams.fetch_add(1, Ordering::SeqCst);
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned()
            }
            path => {
                counts.lists.fetch_add(usize::from(path == "/containers/json"), Ordering::SeqCst);
                let body = if path == "/info" { r#"{"Swarm":{"LocalNodeState":"inactive"}}"# } else { "[]" };
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
            }
        };
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

#[test]
fn a_new_leader_looks_anew_through_what_it_had_open() {
    let docker = Counting::start();
    let config = format!("[source.box]\ntype = \"docker\"\nhost = \"tcp://{}\"\n", docker.address);
    let Some(nodes) = Nodes::start(&config) else { return };
    let all_listen = wait_until(SOON, || (docker.streams() == 3).then_some(()));
    assert!(all_listen.is_some(), "{} streams of events: one for each node", docker.streams());
    let (leader, before) = (nodes.leader(), docker.lists());
    nodes.servers[leader].signal("KILL").unwrap();
    let looked = wait_until(SOON, || (docker.lists() > before).then_some(()));
    assert!(looked.is_some(), "who leads now plans only from what it saw since");
    let again = nodes.leader();
    assert_ne!(again, leader);
    assert!(nodes.sandboxes[again].does("get sources").contains("complete"), "and it knows what it saw");
    assert_eq!(docker.streams(), 3, "the stream that was open is the one that it leads with");
}
