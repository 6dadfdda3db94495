//! Docker's API as far as it is used, on a socket: what a test puts in comes out.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{UnixListener, UnixStream},
    sync::broadcast,
    task::JoinHandle,
};

/// A Docker that answers from memory.
pub(crate) struct Fake {
    dir: TempDir,
    pub(crate) shared: Arc<FakeState>,
    task: Option<JoinHandle<()>>,
}

pub(crate) struct FakeState {
    /// By path without the query; `/containers/` stands for all below it.
    answers: Mutex<BTreeMap<String, (u16, String)>>,
    calls: Mutex<Vec<String>>,
    events: broadcast::Sender<String>,
}

impl Fake {
    pub(crate) fn start() -> Self {
        let shared = FakeState {
            answers: Mutex::default(),
            calls: Mutex::default(),
            events: broadcast::channel(64).0,
        };
        let mut fake = Self { dir: tempfile::tempdir().unwrap(), shared: Arc::new(shared), task: None };
        fake.answers("/info", &serde_json::json!({ "Swarm": { "LocalNodeState": "inactive" } }));
        fake.answers("/networks", &serde_json::json!([
            { "Id": "n1", "Name": "bridge", "Driver": "bridge", "IPAM": { "Config": [{ "Subnet": "172.17.0.0/16" }] } },
            { "Id": "n2", "Name": "lan", "Driver": "macvlan", "IPAM": { "Config": [{ "Subnet": "10.0.3.0/24" }] } },
            { "Id": "n3", "Name": "ov", "Driver": "overlay", "IPAM": { "Config": null } },
        ]));
        fake.answers("/containers/json", &serde_json::json!([]));
        fake.listen();
        fake
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("docker.sock")
    }

    pub(crate) fn listen(&mut self) {
        let listener = UnixListener::bind(self.socket()).unwrap();
        let shared = Arc::clone(&self.shared);
        self.task = Some(tokio::spawn(async move {
            // Dropping the set ends every connection with the server.
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, Arc::clone(&shared)));
            }
        }));
    }

    /// Ends the server with all its connections.
    pub(crate) async fn stop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
            let _ = task.await;
        }
        std::fs::remove_file(self.socket()).unwrap();
    }

    pub(crate) fn answers(&self, path: &str, body: &Value) {
        self.says(path, 200, &body.to_string());
    }

    pub(crate) fn says(&self, path: &str, status: u16, body: &str) {
        self.shared.answers.lock().unwrap().insert(path.to_owned(), (status, body.to_owned()));
    }

    /// The paths that were asked for since this was last called.
    pub(crate) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut *self.shared.calls.lock().unwrap())
    }

    pub(crate) fn event(&self, kind: &str, action: &str, attributes: &Value) {
        let event = serde_json::json!({ "Type": kind, "Action": action, "Actor": { "ID": "x", "Attributes": attributes } });
        self.shared.events.send(event.to_string()).unwrap();
    }

    /// Waits until a client follows the events.
    pub(crate) async fn followed(&self) {
        while self.shared.events.receiver_count() == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }
}

async fn serve(mut stream: UnixStream, shared: Arc<FakeState>) {
    let mut bytes = Vec::new();
    loop {
        while !bytes.ends_with(b"\r\n\r\n") {
            let mut more = [0; 4096];
            match stream.read(&mut more).await {
                Ok(length) if length > 0 => bytes.extend_from_slice(&more[..length]),
                _ => return,
            }
        }
        let text = String::from_utf8(std::mem::take(&mut bytes)).unwrap();
        let path = text.split(' ').nth(1).unwrap();
        let path = path.split('?').next().unwrap().to_owned();
        shared.calls.lock().unwrap().push(path.clone());
        let answer = {
            let answers = shared.answers.lock().unwrap();
            let below = if path.starts_with("/containers/") { "/containers/" } else { "" };
            answers.get(&path).or_else(|| answers.get(below)).cloned()
        };
        if path == "/events" && answer.is_none() {
            return events(stream, &shared).await;
        }
        let (status, body) = answer.unwrap_or((404, r#"{"message":"no such thing"}"#.into()));
        let head = format!("HTTP/1.1 {status} x\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body.as_bytes()).await.unwrap();
    }
}

async fn events(mut stream: UnixStream, shared: &FakeState) {
    let mut events = shared.events.subscribe();
    stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await.unwrap();
    while let Ok(event) = events.recv().await {
        let line = format!("{event}\n");
        let chunk = format!("{:x}\r\n{line}\r\n", line.len());
        if stream.write_all(chunk.as_bytes()).await.is_err() {
            return;
        }
    }
}
