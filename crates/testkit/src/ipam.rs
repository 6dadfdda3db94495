//! IPAM systems on loopback: NetBox itself, and fakes that keep the rules of the real ones and fail on demand.

mod fake_netbox;
mod netbox;
mod phpipam;
mod webhook;

pub use self::{
    fake_netbox::FakeNetBox,
    netbox::NetBox,
    phpipam::{FakePhpIpam, PhpIpamSecurity},
    webhook::IpamReceiver,
};
