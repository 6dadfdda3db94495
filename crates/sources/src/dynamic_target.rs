//! Dynamic targets: addresses that are found out while Netstead runs. The public address, or those of an interface.
//!
//! The last good addresses stay until there are others, so a lookup that fails changes nothing.

mod interface;
mod public_address;
mod resolver;
mod settings;

use std::{
    fmt::Debug,
    net::IpAddr,
    sync::{Arc, PoisonError, RwLock},
};

use async_trait::async_trait;

pub use self::{
    interface::InterfaceLookup,
    public_address::{ENDPOINTS, PublicAddressLookup},
    resolver::{DynamicTarget, TargetResolver},
    settings::{DynamicTargetConfig, LookupMethod, LookupSettings, TargetResolvers},
};

/// Looks up the addresses that names point at now.
#[async_trait]
pub trait AddressLookup: Send + Sync + Debug {
    /// The addresses now, given the last good ones. Bounded in time. An error names what was asked.
    async fn locate(&self, known: &[IpAddr]) -> Result<Vec<IpAddr>, String>;
}

/// Addresses that move, and the last good ones. Cheap to share.
#[derive(Debug)]
pub struct DynamicAddresses {
    locate: Arc<dyn AddressLookup>,
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    known: Vec<IpAddr>,
    error: Option<String>,
}

impl DynamicAddresses {
    /// `known` are the last good addresses of an earlier life.
    pub fn new(locate: Arc<dyn AddressLookup>, known: Vec<IpAddr>) -> Self {
        Self { locate, state: RwLock::new(State { known, error: None }) }
    }

    /// The last good addresses; empty if there never were any.
    pub fn addresses(&self) -> Vec<IpAddr> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).known.clone()
    }

    /// Why the last look found nothing new.
    pub fn error(&self) -> Option<String> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).error.clone()
    }

    /// Looks again; true if the addresses are others now. What cannot be found leaves them as they are.
    pub async fn refresh(&self) -> bool {
        let known = self.addresses();
        let found = self.locate.locate(&known).await;
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        match found {
            Ok(mut found) if !found.is_empty() => {
                found.sort();
                found.dedup();
                let moved = found != state.known;
                *state = State { known: found, error: None };
                moved
            }
            Ok(_) => {
                state.error = Some("there is no address".to_owned());
                false
            }
            Err(error) => {
                state.error = Some(error);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Debug)]
    struct Says(Mutex<Vec<Result<Vec<IpAddr>, String>>>);

    #[async_trait]
    impl AddressLookup for Says {
        async fn locate(&self, _: &[IpAddr]) -> Result<Vec<IpAddr>, String> {
            self.0.lock().unwrap().remove(0)
        }
    }

    #[tokio::test]
    async fn the_last_good_answer_stays() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let says = vec![
            Err("nobody there".to_owned()),
            Ok(vec![ip("203.0.113.7")]),
            Ok(vec![]),
            Ok(vec![ip("203.0.113.7")]),
            Ok(vec![ip("203.0.113.8")]),
        ];
        let target = DynamicAddresses::new(Arc::new(Says(Mutex::new(says))), Vec::new());
        assert!(!target.refresh().await && target.addresses().is_empty());
        assert_eq!(target.error().as_deref(), Some("nobody there"));
        assert!(target.refresh().await && target.error().is_none());
        assert!(!target.refresh().await, "an empty answer is none");
        assert_eq!(target.addresses(), [ip("203.0.113.7")]);
        assert!(!target.refresh().await, "the same is no news");
        assert!(target.refresh().await);
        assert_eq!(target.addresses(), [ip("203.0.113.8")]);
    }
}
