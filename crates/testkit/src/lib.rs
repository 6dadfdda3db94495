//! What tests stand on: real processes, ports, small disks, and documents that are typed as they are written.
//!
//! Everything here blocks, and everything it starts or mounts ends with the value that stands for it.
//!
//! `cargo test` is green on any machine: a test that needs what the machine does not give calls [`skip`] and
//! returns. `cargo xtask test` is the whole: there the same call fails the test (see [`full`]).

mod delaying_proxy;
mod dns;
mod dockerd;
mod etcd;
pub mod history;
mod lossy_proxy;
mod process;
mod recording_proxy;
mod skip;
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
    dns::{Bind, Knot, Knotd, Named, PowerDns, Primary, PrimaryKind, SecretiveBind, SecretiveNamed, TsigKey},
    dockerd::Dockerd,
    etcd::{Etcd, EtcdHost},
    lossy_proxy::LossyProxy,
    process::Process,
    recording_proxy::RecordingProxy,
    skip::{full, has_command, skip},
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
