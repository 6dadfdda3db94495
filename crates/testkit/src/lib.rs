//! Test tools: real servers, networks, small disks, and documents whose commands are run.
//!
//! - [`Process`]: a server that runs as long as its value lives. On top of it: [`Etcd`], [`Bind`], [`Knot`], [`PowerDns`],
//!   [`Dnsmasq`], [`Dockerd`], [`Sshd`], [`AdGuardHome`], [`KubeApiServer`], [`NetBox`].
//! - [`WebhookReceiver`] and [`DnsweaverReceiver`]: receivers of webhooks that only pretend, and can be told to fail.
//! - [`FakeHttp`]: an HTTP server whose answers a test writes, or a proxy before a real one, and that fails on demand. On top of it: [`FakeAdGuard`],
//!   [`FakeCloudflare`], [`FakeNetBox`], [`FakePhpIpam`], [`FakePiHole`], [`FakePve`], [`FakeTechnitium`], [`FakeWebhookProvider`] and the receivers of webhooks.
//! - [`VirtualNetwork`] and [`Machine`]: machines in network namespaces, whose links can be cut. [`Tmpfs`]: a disk small enough
//!   to fill.
//! - [`RealExternalDns`] with an [`EndpointFeed`], [`start_dnsweaver`]: the real peers, where they were built.
//! - [`LossyProxy`], [`DelayingProxy`], [`RecordingProxy`], [`Link`]: proxies that lose answers, hold requests back, record them,
//!   or can be cut.
//! - [`NetaddrClient`]: the transactions of terraform-provider-netaddr, with its faults.
//! - [`Helm`]: the real Helm, where it was built.
//! - [`Terraform`]: the real Terraform, with a provider of this workspace.
//! - [`Transcript`]: runs the `console` blocks of a Markdown file and compares the output.
//! - [`history`]: decides whether what many clients saw of a ledger was possible at all (linearizability).
//! - [`wait_until`]: waits for a condition with a deadline. [`skip`]: ends a test that needs more than the machine has.
//!
//! Everything here blocks, and everything a value starts or mounts ends when the value is dropped.
//!
//! `cargo test` is green on any machine: a test that needs root, a mount or a program that is missing calls [`skip`] and
//! returns. Under `cargo xtask test` the same call fails the test (see [`full`]).

mod browser;
mod delaying_proxy;
mod dns;
mod dockerd;
mod etcd;
mod fake_http;
mod helm;
pub mod history;
mod ipam;
mod kubernetes;
mod link;
mod lossy_proxy;
mod netaddr_client;
mod peers;
mod process;
mod proxmox;
mod recording_proxy;
mod skip;
mod sshd;
mod tcp_forward;
mod terraform;
mod tmpfs;
mod tools;
mod transcript;
mod virtual_network;
mod wait;

use std::{
    io,
    net::{Ipv4Addr, TcpListener, UdpSocket},
    sync::atomic::{AtomicU32, Ordering},
};

pub use self::{
    browser::{Browser, axe},
    delaying_proxy::{DelayingProxy, RequestFilter},
    dns::{
        AdGuardHome, AdGuardVersion, Bind, Dnsmasq, DnsweaverReceiver, FakeAdGuard, FakeCloudflare,
        FakePiHole, FakeTechnitium, FakeWebhookProvider, Knot, Knotd, Named, PiHoleState, PowerDns, Primary,
        PrimaryKind, SecretiveBind, SecretiveNamed, TechnitiumRights, TsigKey, WebhookFault, WebhookHabits,
        WebhookReceiver,
    },
    dockerd::Dockerd,
    etcd::{Etcd, EtcdHost},
    fake_http::{FakeHttp, HttpFault, HttpRequest, HttpResponse},
    helm::Helm,
    ipam::{FakeNetBox, FakePhpIpam, IpamReceiver, NetBox, PhpIpamSecurity},
    kubernetes::{KubeApiServer, KubeUser},
    link::Link,
    lossy_proxy::LossyProxy,
    netaddr_client::{HardcodedCreation, NetaddrClient, netaddr_ipv4},
    peers::{EndpointFeed, FedEndpoint, RealExternalDns, real_dnsweaver, start_dnsweaver},
    process::Process,
    proxmox::{
        FakePve, PveAgent, PveCluster, PveGuest, PveGuestKind, PveInterface, PveRights, PveTask, PveVersion,
    },
    recording_proxy::RecordingProxy,
    skip::{full, has_command, has_commands, skip, skip_without},
    sshd::Sshd,
    terraform::{Terraform, TerraformRun},
    tmpfs::Tmpfs,
    tools::tool,
    transcript::Transcript,
    virtual_network::{Machine, VirtualNetwork},
    wait::wait_until,
};

/// A port of loopback that was free a moment ago, for TCP and UDP: none of those that outgoing connections of this
/// machine begin at, which come and go, so that a server which restarts finds its port free again.
///
/// Another process can take it before the caller does. [`Process::wait_for_port`] notices when the server that
/// was meant to have it has ended.
pub fn free_port() -> io::Result<u16> {
    const FIRST: u32 = 10_000;
    const COUNT: u32 = 20_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let begin = std::process::id().wrapping_mul(31);
    for _ in 0..COUNT {
        let number = NEXT.fetch_add(7, Ordering::Relaxed);
        let port = u16::try_from(FIRST + begin.wrapping_add(number) % COUNT).map_err(io::Error::other)?;
        let place = (Ipv4Addr::LOCALHOST, port);
        if TcpListener::bind(place).is_ok() && UdpSocket::bind(place).is_ok() {
            return Ok(port);
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
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
