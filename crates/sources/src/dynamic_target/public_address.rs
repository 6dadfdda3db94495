//! Looks up the public address: asks servers that echo it.

use std::{net::IpAddr, time::Duration};

use async_trait::async_trait;
use netstead_model::Ident;
use netstead_settings::BuildContext;
use netstead_wire::{
    Tls,
    http::{Endpoint, HttpError, Method, StatusCode},
};

use super::AddressLookup;

/// Default services to ask: each answers with only the caller's address, over one family.
pub const ENDPOINTS: [&str; 6] = [
    "https://api4.ipify.org",
    "https://ipv4.icanhazip.com",
    "https://v4.ident.me",
    "https://api6.ipify.org",
    "https://ipv6.icanhazip.com",
    "https://v6.ident.me",
];

const PATIENCE: Duration = Duration::from_secs(5);
/// The longest address there is, and line ends.
const LONGEST: usize = 64;

/// Asks several servers. A new address is taken only if all that answer agree on it, so one that lies changes nothing.
#[derive(Debug)]
pub struct PublicAddressLookup {
    endpoints: Vec<(String, Endpoint)>,
}

impl PublicAddressLookup {
    /// Asks these, in this order.
    pub fn new(endpoints: impl IntoIterator<Item = impl Into<String>>) -> Result<Self, String> {
        let context = BuildContext::new(Ident::from_static("public"));
        let open = |url: String| match Endpoint::open(&url, &Tls::default(), &context) {
            Ok(endpoint) => Ok((url, endpoint)),
            Err(error) => Err(format!("{url}: {}", error.problem)),
        };
        let endpoints = endpoints.into_iter().map(Into::into).map(open).collect::<Result<_, _>>()?;
        Ok(Self { endpoints })
    }
}

#[async_trait]
impl AddressLookup for PublicAddressLookup {
    async fn locate(&self, known: &[IpAddr]) -> Result<Vec<IpAddr>, String> {
        let (mut said, mut errors): (Vec<IpAddr>, Vec<String>) = (Vec::new(), Vec::new());
        for endpoint in &self.endpoints {
            if [true, false].into_iter().all(|v4| is_settled(&said, known, v4)) {
                break;
            }
            let (url, endpoint) = endpoint;
            match ask(endpoint).await {
                Ok(address) => said.push(address),
                Err(error) => errors.push(format!("{url}: {error}")),
            }
        }
        let mut found = Vec::new();
        for v4 in [true, false] {
            let mut answers: Vec<IpAddr> = said.iter().copied().filter(|one| one.is_ipv4() == v4).collect();
            answers.sort();
            answers.dedup();
            match answers.as_slice() {
                [one] => found.push(*one),
                // No server answered for this family, or the answers differ: the known address stays.
                [] => found.extend(known.iter().filter(|one| one.is_ipv4() == v4)),
                [one, other, ..] => {
                    errors.push(format!("those who were asked do not agree: {one} or {other}"));
                    found.extend(known.iter().filter(|one| one.is_ipv4() == v4));
                }
            }
        }
        if said.is_empty() || found.is_empty() {
            return Err(errors.join("; "));
        }
        Ok(found)
    }
}

async fn ask(endpoint: &Endpoint) -> Result<IpAddr, String> {
    // The next server is a better second attempt than the same one.
    let asked = endpoint.request(Method::GET).timeout(PATIENCE).limit(LONGEST).once().send().await;
    let reply = asked.map_err(|error| match error {
        HttpError::Unreachable { reason, .. } => reason,
        HttpError::Denied { status, .. } => {
            StatusCode::from_u16(status).map_or_else(|_| status.to_string(), |s| format!("it answers {s}"))
        }
        HttpError::Busy { .. } => "it asks to slow down".to_owned(),
        // Too long, or a page that points elsewhere.
        _ => "its answer is no address".to_owned(),
    })?;
    if !reply.is_success() {
        return Err(format!("it answers {}", reply.status));
    }
    let address = std::str::from_utf8(&reply.body).ok().and_then(|text| text.trim().parse().ok());
    let address = address.ok_or("its answer is no address")?;
    if is_public(address) { Ok(address) } else { Err(format!("it answers {address}, which is not public")) }
}

/// Whether no more answers are needed for one family: the known address was confirmed, or two say the same.
fn is_settled(said: &[IpAddr], known: &[IpAddr], v4: bool) -> bool {
    let answers: Vec<&IpAddr> = said.iter().filter(|one| one.is_ipv4() == v4).collect();
    let confirmed = answers.iter().any(|one| known.contains(one));
    confirmed || answers.iter().any(|one| answers.iter().filter(|other| *other == one).count() > 1)
}

/// Whether the world could reach it: a router or a captive portal may answer with its own.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(ip) => {
            !(ip.is_private()
                || ip.is_loopback()
                || ip.is_link_local()
                || ip.is_unspecified()
                || ip.is_multicast()
                || ip.is_broadcast())
        }
        IpAddr::V6(ip) => {
            !(ip.is_loopback()
                || ip.is_unspecified()
                || ip.is_multicast()
                || ip.is_unique_local()
                || ip.is_unicast_link_local())
        }
    }
}
