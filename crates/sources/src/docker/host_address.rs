//! The address of a Docker host, as the network around it has it.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket},
    time::Duration,
};

use netstead_model::Address;
use tokio::{net::lookup_host, time::timeout};

use super::{host::DockerHost, network::Networks};

const PATIENCE: Duration = Duration::from_secs(5);
/// Documentation addresses: nothing lives there, and nothing is sent there.
const FAR_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1));
const FAR_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));

/// The host's address, or the reason why it is unknown. `node` is its address in a swarm.
pub(super) async fn of_host(
    host: &DockerHost,
    node: Option<&str>,
    networks: &Networks,
) -> Result<Vec<Address>, String> {
    let node = node.and_then(reachable);
    match host.remote() {
        None => of_this_machine(networks).or_else(|why| node.map(|node| vec![node]).ok_or(why)),
        Some(_) if node.is_some() => Ok(node.into_iter().collect()),
        Some(remote) => of_name(remote).await,
    }
}

/// A swarm may advertise loopback, as long as it has one node.
fn reachable(text: &str) -> Option<Address> {
    let ip: IpAddr = text.parse().ok()?;
    (!ip.is_loopback() && !ip.is_unspecified()).then(|| address(ip)).flatten()
}

/// The address on the default route: IPv4, or IPv6 where there is nothing else (of several the kernel may prefer one
/// that it changes every day).
fn of_this_machine(networks: &Networks) -> Result<Vec<Address>, String> {
    let found = source_towards(FAR_V4).or_else(|| source_towards(FAR_V6)).and_then(address);
    let Some(found) = found else {
        return Err("this machine has no default route, so its address is not known; set `target`".into());
    };
    if networks.inside(found) {
        return Err(format!(
            "Netstead runs in a container and knows its own address there ({found}), not the host's; \
             give it the host's network, or set `target`"
        ));
    }
    Ok(vec![found])
}

/// The address the kernel would send from. Connecting a UDP socket sends nothing.
fn source_towards(far: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = if far.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((far, 9)).ok()?;
    let own = socket.local_addr().ok()?.ip();
    (!own.is_unspecified() && !own.is_loopback()).then_some(own)
}

async fn of_name(host: &str) -> Result<Vec<Address>, String> {
    let wrong = |why: &str| format!("the address of {host} is not known ({why}); set `target`");
    let found = timeout(PATIENCE, lookup_host((host, 0))).await.map_err(|_| wrong("no answer"))?;
    let found: Vec<IpAddr> = found.map_err(|error| wrong(&error.to_string()))?.map(|at| at.ip()).collect();
    let mut addresses: Vec<Address> = found.into_iter().filter_map(address).collect();
    addresses.sort_unstable();
    addresses.dedup();
    if addresses.is_empty() { Err(wrong("it has none")) } else { Ok(addresses) }
}

fn address(ip: IpAddr) -> Option<Address> {
    ip.to_string().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_remote_host_is_where_its_swarm_or_its_url_says() {
        let host = |text: &str| text.parse::<DockerHost>().unwrap();
        let of = async |text, node| of_host(&host(text), node, &Networks::default()).await;
        let shown = |addresses: Vec<Address>| addresses[0].to_string();
        assert_eq!(shown(of("tcp://198.51.100.7:2376", None).await.unwrap()), "198.51.100.7");
        assert_eq!(shown(of("tcp://198.51.100.7:2376", Some("10.0.0.9")).await.unwrap()), "10.0.0.9");
        assert_eq!(shown(of("ssh://me@198.51.100.7", Some("127.0.0.1")).await.unwrap()), "198.51.100.7");
        let why = of("ssh://me@no-such-host.invalid", None).await.unwrap_err();
        assert!(why.starts_with("the address of no-such-host.invalid is not known"), "{why}");
    }
}
