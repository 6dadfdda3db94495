//! Calls of the admin: one connection each, HTTP/1.0, and objects out of YAML.

#![expect(clippy::indexing_slicing, reason = "a key that JSON does not have is null there")]

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
};
use serde_json::{Value, json};

use super::KubeUser;
use crate::wait::wait_until;

const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Client {
    address: SocketAddr,
    tls: Arc<ClientConfig>,
    /// Paths of kinds, by version and kind.
    kinds: Mutex<BTreeMap<(String, String), Kind>>,
}

#[derive(Debug, Clone)]
struct Kind {
    /// `/apis/networking.k8s.io/v1`
    base: String,
    plural: String,
    namespaced: bool,
    has_status: bool,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Client {
    pub(super) fn new(address: SocketAddr, ca: &Path, user: &KubeUser) -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(&fs::read(ca)?).map_err(io::Error::other)?)
            .map_err(io::Error::other)?;
        let certificate =
            CertificateDer::from_pem_slice(&fs::read(&user.certificate)?).map_err(io::Error::other)?;
        let key = PrivateKeyDer::from_pem_slice(&fs::read(&user.key)?).map_err(io::Error::other)?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![certificate], key)
            .map_err(io::Error::other)?;
        Ok(Self { address, tls: Arc::new(tls), kinds: Mutex::default() })
    }

    /// The status and the JSON of an answer; text that is no JSON is a text.
    pub(super) fn call(
        &self,
        method: &str,
        path: &str,
        body: Option<(&str, &str)>,
    ) -> io::Result<(u16, Value)> {
        self.call_for("application/json", method, path, body)
    }

    /// The same, with an answer of this type.
    pub(super) fn call_for(
        &self,
        accepted: &str,
        method: &str,
        path: &str,
        body: Option<(&str, &str)>,
    ) -> io::Result<(u16, Value)> {
        let socket = TcpStream::connect_timeout(&self.address, PATIENCE)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let name = ServerName::IpAddress(self.address.ip().into());
        let connection = ClientConnection::new(Arc::clone(&self.tls), name).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(connection, socket);
        let mut head =
            format!("{method} {path} HTTP/1.0\r\nHost: {}\r\nAccept: {accepted}\r\n", self.address);
        if let Some((kind, body)) = body {
            // Writing to a string cannot fail.
            let _ = write!(head, "Content-Type: {kind}\r\nContent-Length: {}\r\n", body.len());
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes())?;
        if let Some((_, body)) = body {
            stream.write_all(body.as_bytes())?;
        }
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            // A server that is being ended may close without a word.
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
            _ => {}
        }
        parse(&answer).ok_or_else(|| io::Error::other(format!("{method} {path}: no answer of HTTP")))
    }

    pub(super) fn apply(&self, yaml: &str, namespace: Option<&str>) -> io::Result<()> {
        for object in objects(yaml)? {
            let (kind, path) = self.path(&object, namespace)?;
            let answer = self.expect_applied(&format!("{path}?fieldManager=tests&force=true"), &object)?;
            if let (true, Some(status)) = (kind.has_status, object.get("status")) {
                let metadata = json!({ "name": object["metadata"]["name"] });
                let whole = json!({ "apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": metadata,
                    "status": status });
                let path = format!("{path}/status?fieldManager=tests-status&force=true");
                self.expect_applied(&path, &whole)?;
            }
            if object["kind"] == "CustomResourceDefinition" {
                self.wait_for_kind(&answer)?;
            }
        }
        Ok(())
    }

    pub(super) fn dry_run(&self, yaml: &str, namespace: &str) -> io::Result<Vec<String>> {
        let mut refused = Vec::new();
        for object in objects(yaml)? {
            let (_, path) = self.path(&object, Some(namespace))?;
            let path = format!("{path}?fieldManager=tests&force=true&dryRun=All&fieldValidation=Strict");
            if let Err(error) = self.expect_applied(&path, &object) {
                refused.push(error.to_string());
            }
        }
        Ok(refused)
    }

    fn expect_applied(&self, path: &str, object: &Value) -> io::Result<Value> {
        let body = object.to_string();
        match self.call("PATCH", path, Some(("application/apply-patch+yaml", &body)))? {
            (200 | 201, answer) => Ok(answer),
            (status, answer) => {
                let said = answer["message"].as_str().map_or_else(|| answer.to_string(), str::to_owned);
                Err(io::Error::other(format!("{path} answers {status}: {said}")))
            }
        }
    }

    /// Where an object lives.
    fn path(&self, object: &Value, namespace: Option<&str>) -> io::Result<(Kind, String)> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let wrong = || io::Error::other(format!("this is no object: {object}"));
        let version = text(&object["apiVersion"]).ok_or_else(wrong)?;
        let kind = text(&object["kind"]).ok_or_else(wrong)?;
        let name = text(&object["metadata"]["name"]).ok_or_else(wrong)?;
        let kind = self.kind(&version, &kind)?;
        let Kind { base, plural, namespaced, .. } = &kind;
        let place = if *namespaced {
            let own = text(&object["metadata"]["namespace"]);
            let namespace = own.as_deref().or(namespace).unwrap_or("default");
            format!("{base}/namespaces/{namespace}/{plural}/{name}")
        } else {
            format!("{base}/{plural}/{name}")
        };
        Ok((kind, place))
    }

    fn kind(&self, version: &str, kind: &str) -> io::Result<Kind> {
        let key = (version.to_owned(), kind.to_owned());
        if let Some(known) = self.kinds.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(known.clone());
        }
        let base = if version.contains('/') { format!("/apis/{version}") } else { format!("/api/{version}") };
        let (status, list) = self.call("GET", &base, None)?;
        let resources = list["resources"].as_array().cloned().unwrap_or_default();
        let own = resources
            .iter()
            .find(|one| one["kind"] == kind && !one["name"].as_str().unwrap_or_default().contains('/'));
        let own =
            own.ok_or_else(|| io::Error::other(format!("{base} answers {status} and has no {kind}")))?;
        let plural = own["name"].as_str().unwrap_or_default().to_owned();
        let status = format!("{plural}/status");
        let found = Kind {
            base,
            namespaced: own["namespaced"] == true,
            has_status: resources.iter().any(|one| one["name"] == status),
            plural,
        };
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner).insert(key, found.clone());
        Ok(found)
    }

    /// Waits until every version of a definition is served.
    fn wait_for_kind(&self, definition: &Value) -> io::Result<()> {
        let spec = &definition["spec"];
        let group = spec["group"].as_str().unwrap_or_default();
        let kind = spec["names"]["kind"].as_str().unwrap_or_default();
        for version in spec["versions"].as_array().into_iter().flatten().filter(|one| one["served"] == true) {
            let version = format!("{group}/{}", version["name"].as_str().unwrap_or_default());
            wait_until(PATIENCE, || self.kind(&version, kind).ok())
                .ok_or_else(|| io::Error::other(format!("{version} {kind} is not served")))?;
        }
        Ok(())
    }
}

/// The documents of a YAML text.
fn objects(yaml: &str) -> io::Result<Vec<Value>> {
    let parse = |text: &str| {
        serde_saphyr::from_str::<Value>(text).map_err(|error| io::Error::other(format!("{error}\n{text}")))
    };
    let mut objects = Vec::new();
    for text in format!("\n{yaml}\n").split("\n---") {
        let blank = text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'));
        if !blank {
            objects.push(parse(text)?);
        }
    }
    Ok(objects)
}

fn parse(answer: &[u8]) -> Option<(u16, Value)> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(answer.get(..end)?).ok()?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let body = answer.get(end + 4..)?;
    let body =
        serde_json::from_slice(body).unwrap_or_else(|_| String::from_utf8_lossy(body).into_owned().into());
    Some((status, body))
}
