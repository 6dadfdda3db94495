//! Limits the log lines about peers that were rejected: each is reported, and none can fill the log.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Mutex, PoisonError},
};

/// Ticks for which a repeated rejection of one peer is not logged again: a minute.
const PAUSE: u64 = 600;

/// Most lines in that time.
const MOST: usize = 16;

/// The rejections that were logged, by peer and reason, with their ticks.
#[derive(Debug, Default)]
pub(super) struct RejectedPeers(Mutex<HashMap<(IpAddr, String), u64>>);

impl RejectedPeers {
    /// Whether this rejection should be logged now.
    pub(super) fn should_log(&self, from: IpAddr, why: &str, now: u64) -> bool {
        let key = (from, why.to_owned());
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.retain(|_, at| now.saturating_sub(*at) < PAUSE);
        if told.contains_key(&key) || told.len() >= MOST {
            return false;
        }
        told.insert(key, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_told_of_once_a_minute_and_a_crowd_in_part() {
        let (strangers, begin) = (RejectedPeers::default(), 7);
        let one = |number: u8| IpAddr::from([192, 0, 2, number]);
        assert!(strangers.should_log(one(1), "a secret", begin));
        assert!(!strangers.should_log(one(1), "a secret", begin + PAUSE / 2));
        assert!(strangers.should_log(one(1), "a certificate", begin + PAUSE / 2));
        assert!(strangers.should_log(one(2), "a secret", begin + PAUSE / 2));
        assert!(strangers.should_log(one(1), "a secret", begin + PAUSE));
        let later = begin + PAUSE * 5;
        let told = (0..200).filter(|number| strangers.should_log(one(*number), "a secret", later)).count();
        assert_eq!(told, MOST);
    }
}
