//! IPAM systems on loopback: fakes that keep the rules of the real ones and fail on demand.

mod phpipam;
mod webhook;

pub use self::{
    phpipam::{FakePhpIpam, PhpIpamSecurity},
    webhook::IpamReceiver,
};
