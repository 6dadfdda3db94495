//! What tests stand on: real processes, ports, small disks, and documents that are typed as they are written.
//!
//! Everything here blocks, and everything it starts or mounts ends with the value that stands for it.
//!
//! `cargo test` is green on any machine: a test that needs what the machine does not give calls [`skip`] and
//! returns. `cargo xtask test` is the whole: there the same call fails the test (see [`full`]).

mod dns;
mod dockerd;
mod etcd;
mod gate;
pub mod history;
mod lan;
mod lossy;
mod pipe;
mod process;
mod recorder;
mod skip;
mod stopwatch;
mod tmpfs;
mod transcript;

use std::{
    io,
    net::{Ipv4Addr, TcpListener},
};

pub use self::{
    dns::{Bind, Knot, Knotd, Make, Named, PowerDns, Primary, SecretiveBind, SecretiveNamed, TsigKey},
    dockerd::Dockerd,
    etcd::{Etcd, EtcdPlace},
    gate::{Gate, Held},
    lan::{Lan, Machine},
    lossy::Lossy,
    process::Process,
    recorder::Recorder,
    skip::{full, has_command, skip},
    stopwatch::until,
    tmpfs::Tmpfs,
    transcript::Transcript,
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
