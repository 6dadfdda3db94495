//! A real kube-apiserver with its etcd, and the garbage collector of Kubernetes, built by `cargo xtask test`.

mod bulk;
mod certificates;
mod client;
mod garbage_collector;

use std::{
    env, fs, io,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Command,
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use serde_json::Value;

use self::{certificates::Authority, client::Client};
use crate::{free_port, process::Process, tools::tool, wait::wait_until};

/// Versions that `cargo xtask test` builds.
const SERVER: &str = "kube-apiserver-1.36.4";
const ETCD: &str = "kube-etcd-3.6.8";
const SOON: Duration = Duration::from_mins(1);
/// Directories in the temporary one begin with this.
const PREFIX: &str = "netstead-kube-";

/// A running API server without nodes and controllers: nothing is scheduled, and no owner reference is followed unless
/// [`KubeApiServer::collect_garbage`] was called. Its admin may do everything; [`KubeApiServer::user`] makes others.
#[derive(Debug)]
pub struct KubeApiServer {
    garbage_collector: Option<Process>,
    /// Ends before its etcd.
    server: Process,
    etcd: Process,
    launch: Launch,
    authority: Authority,
    client: Client,
}

/// All that starting it needs, so that it can be started again with its data.
#[derive(Debug, Clone)]
struct Launch {
    server: PathBuf,
    etcd: PathBuf,
    dir: PathBuf,
    address: SocketAddr,
    etcd_client: SocketAddr,
    etcd_peer: SocketAddr,
    flags: Vec<String>,
}

/// A kubeconfig and the parts it is made of.
#[derive(Debug, Clone)]
pub struct KubeUser {
    pub kubeconfig: PathBuf,
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl KubeApiServer {
    /// The server of this test binary. Tests that share it work in namespaces of their own.
    ///
    /// # Panics
    ///
    /// If it is not there or does not start.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<KubeApiServer> = OnceLock::new();
        SHARED.get_or_init(|| {
            // The kernel ends the processes when the thread that started them ends, so that thread stays.
            let (ready, started) = mpsc::channel();
            thread::spawn(move || {
                let _ = ready.send(Self::try_start(&[]));
                loop {
                    thread::park();
                }
            });
            started.recv().unwrap_or_else(|_| Err(io::Error::other("it was lost"))).unwrap_or_else(fail)
        })
    }

    /// A server of its own, for a test that stops it or wants flags of its own.
    ///
    /// # Panics
    ///
    /// If it is not there or does not start.
    pub fn start(flags: &[&str]) -> Self {
        Self::try_start(flags).unwrap_or_else(fail)
    }

    fn try_start(flags: &[&str]) -> io::Result<Self> {
        sweep();
        let (server, etcd) = programs()?;
        let dir = own_directory()?;
        let loopback = || Ok::<_, io::Error>(SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?)));
        let launch = Launch {
            server,
            etcd,
            dir: dir.clone(),
            address: loopback()?,
            etcd_client: loopback()?,
            etcd_peer: loopback()?,
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
        };
        let authority = Authority::new(&dir)?;
        authority.server()?;
        authority.service_account_keys()?;
        let admin = authority.user(launch.address, "admin", &["system:masters"])?;
        let etcd = launch.run_etcd()?;
        let client = Client::new(launch.address, authority.ca(), &admin)?;
        let server = launch.run_server(&client)?;
        Ok(Self { garbage_collector: None, server, etcd, launch, authority, client })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.launch.address
    }

    pub fn url(&self) -> String {
        format!("https://{}", self.launch.address)
    }

    /// The certificate of its authority.
    pub fn ca(&self) -> &Path {
        self.authority.ca()
    }

    /// The kubeconfig of its admin.
    pub fn kubeconfig(&self) -> PathBuf {
        self.launch.dir.join("admin.kubeconfig")
    }

    /// Makes a user; it may do nothing until a role is bound to it.
    ///
    /// # Panics
    ///
    /// If its certificate cannot be made.
    pub fn user(&self, name: &str, groups: &[&str]) -> KubeUser {
        self.authority.user(self.launch.address, name, groups).unwrap_or_else(fail)
    }

    /// A kubeconfig with a token of a service account, as a pod has one.
    ///
    /// # Panics
    ///
    /// If there is no such account.
    pub fn service_account(&self, namespace: &str, name: &str) -> PathBuf {
        let token = self.service_account_token(namespace, name);
        self.authority.kubeconfig_with_token(self.launch.address, name, &token).unwrap_or_else(fail)
    }

    /// A token of a service account, for an hour.
    ///
    /// # Panics
    ///
    /// If there is no such account.
    pub fn service_account_token(&self, namespace: &str, name: &str) -> String {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
        let request = serde_json::json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {} });
        let (status, answer) = self.call("POST", &path, Some(&request));
        let token = answer.pointer("/status/token").and_then(Value::as_str).map(str::to_owned);
        token.unwrap_or_else(|| fail(io::Error::other(format!("{path} answers {status}: {answer}"))))
    }

    /// A kubeconfig for the same user that leads to another address, such as a proxy's.
    ///
    /// # Panics
    ///
    /// If it cannot be written.
    pub fn kubeconfig_at(&self, user: &KubeUser, address: SocketAddr) -> PathBuf {
        self.authority.kubeconfig(address, user).unwrap_or_else(fail)
    }

    /// One call of the admin: `GET`, `/api/v1/namespaces`.
    ///
    /// # Panics
    ///
    /// If no answer comes.
    pub fn call(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let body = body.map(Value::to_string);
        let body = body.as_deref().map(|body| ("application/json", body));
        self.client.call(method, path, body).unwrap_or_else(fail)
    }

    /// The objects of a path as `kubectl get` shows them: a line for the titles and one for each object, with a space between cells.
    ///
    /// # Panics
    ///
    /// If the server answers with no table.
    pub fn table(&self, path: &str) -> String {
        let accepted = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let (_, table) = self.client.call_for(accepted, "GET", path, None).unwrap_or_else(fail);
        let array = |value: &Value, field: &str| {
            value.get(field).and_then(Value::as_array).cloned().unwrap_or_default()
        };
        let columns = array(&table, "columnDefinitions");
        if columns.is_empty() {
            return fail(io::Error::other(format!("{path} answers with no table: {table}")));
        }
        // `kubectl get` shows the others with `-o wide`.
        let is_shown: Vec<bool> =
            columns.iter().map(|column| column.get("priority").and_then(Value::as_i64) == Some(0)).collect();
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let line = |cells: Vec<String>| {
            let shown = cells.into_iter().zip(&is_shown).filter(|(_, shown)| **shown);
            shown.map(|(cell, _)| cell).collect::<Vec<_>>().join(" ")
        };
        let titles =
            columns.iter().map(|column| text(column.get("name").unwrap_or(&Value::Null)).to_uppercase());
        let mut lines = vec![line(titles.collect())];
        let rows = array(&table, "rows");
        lines.extend(rows.iter().map(|row| line(array(row, "cells").iter().map(text).collect())));
        lines.join("\n")
    }

    /// Merges `patch` into an object, or into its status with a path that ends so.
    ///
    /// # Panics
    ///
    /// If the server refuses.
    pub fn patch(&self, path: &str, patch: &Value) -> Value {
        let body = patch.to_string();
        let body = Some(("application/merge-patch+json", body.as_str()));
        let (status, answer) = self.client.call("PATCH", path, body).unwrap_or_else(fail);
        assert!(status == 200, "PATCH {path} answers {status}: {answer}");
        answer
    }

    /// Deletes an object by its path.
    ///
    /// # Panics
    ///
    /// If the server refuses.
    pub fn delete(&self, path: &str) {
        let (status, answer) = self.call("DELETE", path, None);
        assert!(matches!(status, 200 | 202 | 404), "DELETE {path} answers {status}: {answer}");
    }

    /// Applies the objects of a YAML text, in order, and their status after them. A definition of a kind is waited for.
    ///
    /// # Panics
    ///
    /// If the text is no YAML or the server refuses.
    pub fn apply(&self, yaml: &str) {
        self.client.apply(yaml, None).unwrap_or_else(fail);
    }

    /// The same; objects that name no namespace get this one, which is made first.
    ///
    /// # Panics
    ///
    /// If the text is no YAML or the server refuses.
    pub fn apply_in(&self, namespace: &str, yaml: &str) {
        let own = format!("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {namespace}\n");
        self.client.apply(&own, None).unwrap_or_else(fail);
        self.client.apply(yaml, Some(namespace)).unwrap_or_else(fail);
    }

    /// Applies a file.
    ///
    /// # Panics
    ///
    /// As [`KubeApiServer::apply`].
    pub fn apply_file(&self, path: &Path) {
        self.apply(&fs::read_to_string(path).unwrap_or_else(fail));
    }

    /// Makes many Ingresses at once, past the API: each has a name and a host, and all have this address. The namespace need not
    /// be there.
    ///
    /// # Panics
    ///
    /// If etcd refuses.
    pub fn put_ingresses(&self, namespace: &str, ingresses: &[(String, String)], address: &str) {
        let object = |(name, host): &(String, String)| {
            let number = ingresses.len();
            let digits = format!("{name}{number}")
                .bytes()
                .fold(0_u64, |all, byte| all.wrapping_mul(31).wrapping_add(u64::from(byte)));
            let object = serde_json::json!({
                "apiVersion": "networking.k8s.io/v1",
                "kind": "Ingress",
                "metadata": {
                    "name": name, "namespace": namespace, "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z",
                    "uid": format!("00000000-0000-4000-8000-{:012x}", digits & 0xffff_ffff_ffff),
                },
                "spec": {
                    "ingressClassName": "nginx",
                    "tls": [{ "hosts": [host], "secretName": name }],
                    "rules": [{ "host": host, "http": { "paths": [{ "path": "/", "pathType": "Prefix",
                        "backend": { "service": { "name": name, "port": { "number": 80 } } } }] } }],
                },
                "status": { "loadBalancer": { "ingress": [{ "ip": address }] } },
            });
            (format!("/registry/ingress/{namespace}/{name}"), object)
        };
        let objects: Vec<_> = ingresses.iter().map(object).collect();
        bulk::put(self.launch.etcd_client, &objects).unwrap_or_else(fail);
    }

    /// Shows the objects of a YAML text to the server, which keeps none of them; one line for each that it refuses.
    ///
    /// # Panics
    ///
    /// If the text is no YAML.
    pub fn dry_run(&self, yaml: &str, namespace: &str) -> Vec<String> {
        self.client.dry_run(yaml, namespace).unwrap_or_else(fail)
    }

    /// Starts the garbage collector and the controller of namespaces: objects whose owners are gone are deleted, owners wait for
    /// what blocks their deletion, and a namespace goes with what is in it.
    ///
    /// # Panics
    ///
    /// If it is not there or does not start.
    pub fn collect_garbage(&mut self) {
        self.garbage_collector = Some(self.launch.run_garbage_collector().unwrap_or_else(fail));
    }

    pub fn process(&mut self) -> &mut Process {
        &mut self.server
    }

    /// Ends the server at once; etcd goes on.
    pub fn stop(&mut self) -> io::Result<()> {
        self.server.kill().map(drop)
    }

    /// Starts it again, on the same port with the same data.
    pub fn restart(&mut self) -> io::Result<()> {
        let _ = self.server.kill();
        self.server = self.launch.run_server(&self.client)?;
        Ok(())
    }

    /// Where its etcd listens.
    pub fn etcd_address(&self) -> SocketAddr {
        self.launch.etcd_client
    }

    pub fn etcd(&mut self) -> &mut Process {
        &mut self.etcd
    }
}

impl Drop for KubeApiServer {
    fn drop(&mut self) {
        if let Some(collector) = &mut self.garbage_collector {
            let _ = collector.kill();
        }
        let _ = self.server.kill();
        let _ = self.etcd.kill();
        let _ = fs::remove_dir_all(&self.launch.dir);
    }
}

impl Launch {
    fn run_etcd(&self) -> io::Result<Process> {
        let mut command = dies_with_us(&self.etcd);
        let url = |address: SocketAddr| format!("http://{address}");
        let data = self.dir.join("etcd").display().to_string();
        for (flag, value) in [
            ("data-dir", data),
            ("listen-client-urls", url(self.etcd_client)),
            ("advertise-client-urls", url(self.etcd_client)),
            ("listen-peer-urls", url(self.etcd_peer)),
            ("initial-advertise-peer-urls", url(self.etcd_peer)),
            ("initial-cluster", format!("default={}", url(self.etcd_peer))),
            ("unsafe-no-fsync", "true".to_owned()),
            ("log-level", "error".to_owned()),
        ] {
            command.arg(format!("--{flag}={value}"));
        }
        let mut process = Process::start("etcd of kube-apiserver", &mut command)?;
        process.wait_for_port(self.etcd_client, SOON)?;
        Ok(process)
    }

    fn run_server(&self, client: &Client) -> io::Result<Process> {
        let mut command = dies_with_us(&self.server);
        let file = |name: &str| self.dir.join(name).display().to_string();
        for (flag, value) in [
            ("etcd-servers", format!("http://{}", self.etcd_client)),
            ("cert-dir", file("")),
            ("tls-cert-file", file("apiserver.crt")),
            ("tls-private-key-file", file("apiserver.key")),
            ("bind-address", self.address.ip().to_string()),
            ("advertise-address", self.address.ip().to_string()),
            ("secure-port", self.address.port().to_string()),
            ("client-ca-file", file("ca.crt")),
            ("authorization-mode", "RBAC".to_owned()),
            ("allow-privileged", "true".to_owned()),
            ("disable-admission-plugins", "ServiceAccount".to_owned()),
            ("service-cluster-ip-range", "10.0.0.0/16".to_owned()),
            ("service-account-issuer", format!("https://{}", self.address)),
            ("service-account-key-file", file("sa.pub")),
            ("service-account-signing-key-file", file("sa.key")),
            ("endpoint-reconciler-type", "none".to_owned()),
        ] {
            command.arg(format!("--{flag}={value}"));
        }
        command.args(&self.flags);
        let mut process = Process::start("kube-apiserver", &mut command)?;
        process.wait_for_port(self.address, SOON)?;
        let ready = wait_until(SOON, || {
            let answered = client.call("GET", "/readyz", None);
            if !process.running() {
                return Some(false);
            }
            matches!(answered, Ok((200, _))).then_some(true)
        });
        match ready {
            Some(true) => Ok(process),
            _ => Err(io::Error::other(format!("it is not ready:\n{}", process.log()))),
        }
    }
}

/// A command whose process ends with the thread that starts it, however this process ends.
fn dies_with_us(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

/// kube-apiserver and etcd: those that `KUBEBUILDER_ASSETS` names, or those that were built.
fn programs() -> io::Result<(PathBuf, PathBuf)> {
    let given = env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
    let found = match given {
        Some(dir) => Some((dir.join("kube-apiserver"), dir.join("etcd")))
            .filter(|(one, other)| one.is_file() && other.is_file()),
        None => tool(SERVER, "kube-apiserver").zip(tool(ETCD, "etcd")),
    };
    found.ok_or_else(|| {
        io::Error::other(format!(
            "{SERVER} is not here. `cargo xtask test --only test` builds it from the Go module proxy where there is a Go of at \
             least 1.26 (about five minutes, once); or set KUBEBUILDER_ASSETS to a directory with kube-apiserver and etcd"
        ))
    })
}

/// A directory that names this process, so that it can be removed once the process is gone: a server that all tests share is
/// never dropped.
fn own_directory() -> io::Result<PathBuf> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let dir = env::temp_dir().join(format!("{PREFIX}{}-{number}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir)?;
    Ok(dir)
}

/// Removes the directories of processes that are gone.
fn sweep() {
    let Ok(entries) = fs::read_dir(env::temp_dir()) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        if process.is_some_and(|id| !Path::new("/proc").join(id).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[expect(clippy::panic, reason = "this is how a test fails")]
#[allow(clippy::needless_pass_by_value, reason = "the end of a chain of calls")]
fn fail<T>(error: io::Error) -> T {
    panic!("kube-apiserver: {error}")
}
