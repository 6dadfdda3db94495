//! Test tools: real servers, networks, small disks, and documents whose commands are run.
//!
//! - [`Process`]: a server that runs as long as its value lives. On top of it: [`Etcd`], [`Bind`], [`Knot`], [`PowerDns`],
//!   [`Dockerd`], [`Sshd`].
//! - [`FakeHttp`]: an HTTP server whose answers a test writes. On top of it: [`FakeCloudflare`],
//!   [`FakeTechnitium`].
//! - [`VirtualNetwork`] and [`Machine`]: machines in network namespaces, whose links can be cut. [`Tmpfs`]: a disk small enough
//!   to fill.
//! - [`LossyProxy`], [`DelayingProxy`], [`RecordingProxy`]: proxies that lose answers, hold requests back, or record them.
//! - [`Transcript`]: runs the `console` blocks of a Markdown file and compares the output.
//! - [`history`]: decides whether what many clients saw of a ledger was possible at all (linearizability).
//! - [`wait_until`]: waits for a condition with a deadline. [`skip`]: ends a test that needs more than the machine has.
//!
//! Everything here blocks, and everything a value starts or mounts ends when the value is dropped.
//!
//! `cargo test` is green on any machine: a test that needs root, a mount or a program that is missing calls [`skip`] and
//! returns. Under `cargo xtask test` the same call fails the test (see [`full`]).

mod delaying_proxy;
mod dns;
mod dockerd;
mod etcd;
mod fake_http;
pub mod history;
mod lossy_proxy;
mod process;
mod recording_proxy;
mod skip;
mod sshd;
mod tcp_forward;
mod tmpfs;
mod transcript;
mod virtual_network;
mod wait;

use std::{
    io,
    net::{Ipv4Addr, TcpListener},
};

pub use self::{
    delaying_proxy::{DelayingProxy, RequestFilter},
    dns::{
        Bind, FakeCloudflare, FakeTechnitium, Knot, Knotd, Named, PowerDns, Primary, PrimaryKind,
        SecretiveBind, SecretiveNamed, TechnitiumRights, TsigKey,
    },
    dockerd::Dockerd,
    etcd::{Etcd, EtcdHost},
    fake_http::{FakeHttp, HttpFault, HttpRequest, HttpResponse},
    lossy_proxy::LossyProxy,
    process::Process,
    recording_proxy::RecordingProxy,
    skip::{full, has_command, has_commands, skip},
    sshd::Sshd,
    tmpfs::Tmpfs,
    transcript::Transcript,
    virtual_network::{Machine, VirtualNetwork},
    wait::wait_until,
};

/// A port of loopback that was free a moment ago: the kernel picked it.
///
/// Another process can take it before the caller does. [`Process::wait_for_port`] notices when the server that
/// was meant to have it has ended.
pub fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_port_can_be_bound() {
        let port = free_port().unwrap();
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    }
}
