//! IPAM systems on loopback: fakes that keep the rules of the real ones and fail on demand.

mod webhook;

pub use self::webhook::IpamReceiver;
