//! Limits on how often something may happen: a token bucket for each caller, on the monotonic clock.
//!
//! A bucket holds `burst` tokens and gains one every `interval`. It is stored as the time at which it is full again, so an
//! idle bucket needs no state and can be forgotten.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The most callers that a limiter remembers. Beyond that it forgets the caller whose bucket is nearest to full.
const MAX_CALLERS: usize = 10_000;

/// How often something may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How many at once.
    pub burst: u32,
    /// The time in which one more is allowed.
    pub interval: Duration,
}

impl Rate {
    pub(crate) const fn per_minute(count: u32) -> Rate {
        Rate { burst: count, interval: Duration::from_millis(60_000 / count as u64) }
    }

    /// This many per second, and `burst` at once.
    pub fn per_second(count: u32, burst: u32) -> Rate {
        Rate { burst: burst.max(1), interval: Duration::from_secs(1) / count.max(1) }
    }

    /// The time in which an empty bucket fills.
    fn window(self) -> Duration {
        self.interval * self.burst
    }
}

/// The bucket of one caller.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    full_at: Duration,
    /// How often it was empty since it last was not.
    refused: u64,
}

impl Bucket {
    /// Takes a token at this time, or returns how long to wait for one.
    fn take(&mut self, rate: Rate, now: Duration) -> Result<Quota, Refused> {
        let full_at = self.full_at.max(now) + rate.interval;
        let missing = full_at.saturating_sub(now);
        let quota = |missing: Duration, refused| Quota {
            limit: rate.burst,
            window: seconds(rate.window()),
            remaining: (rate.window().saturating_sub(missing).as_nanos() / rate.interval.as_nanos().max(1)) as u32,
            reset: seconds(missing),
            refused,
        };
        if missing > rate.window() {
            self.refused += 1;
            let wait = seconds(missing.saturating_sub(rate.window())).max(1);
            return Err(Refused { wait, quota: quota(self.full_at.saturating_sub(now), self.refused) });
        }
        self.full_at = full_at;
        Ok(quota(missing, std::mem::take(&mut self.refused)))
    }
}

/// Seconds, rounded up.
fn seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

/// The state of a caller's bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    pub(crate) limit: u32,
    /// The window in seconds.
    pub window: u64,
    pub(crate) remaining: u32,
    /// Seconds until nothing is used any more.
    pub reset: u64,
    /// How many attempts were refused since the last one that was not.
    pub refused: u64,
}

impl Quota {
    /// `RateLimit-Policy` and `RateLimit`, as draft-ietf-httpapi-ratelimit-headers describes them.
    pub fn headers(&self, policy: &str) -> [(&'static str, String); 2] {
        let Quota { limit, window, remaining, reset, .. } = self;
        [
            ("ratelimit-policy", format!("\"{policy}\";q={limit};w={window}")),
            ("ratelimit", format!("\"{policy}\";r={remaining};t={reset}")),
        ]
    }
}

/// An attempt beyond the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Seconds until the next attempt is allowed; at least 1.
    pub wait: u64,
    pub(crate) quota: Quota,
}

/// A limit for each caller.
#[derive(Debug)]
pub struct Limiter<K> {
    rate: Rate,
    buckets: Mutex<HashMap<K, Bucket>>,
}

impl<K: Hash + Eq + Clone> Limiter<K> {
    pub(crate) fn new(rate: Rate) -> Limiter<K> {
        Limiter { rate, buckets: Mutex::default() }
    }

    /// Counts an attempt of this caller at this time of the monotonic clock.
    pub fn take(&self, caller: &K, now: Duration) -> Result<Quota, Refused> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_CALLERS && !buckets.contains_key(caller) {
            buckets.retain(|_, bucket| bucket.full_at > now);
            if buckets.len() >= MAX_CALLERS {
                let fullest = buckets.iter().min_by_key(|(_, bucket)| bucket.full_at).map(|(key, _)| key.clone());
                fullest.and_then(|key| buckets.remove(&key));
            }
        }
        buckets.entry(caller.clone()).or_default().take(self.rate, now)
    }
}

/// Returns the network of a client. One customer of a provider has a whole /64 of IPv6.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn bucket_allows_a_burst_and_then_the_rate() {
        let limiter = Limiter::new(Rate::per_second(2, 3));
        let left: Vec<u32> = (0..3).map(|_| limiter.take(&"a", at(0)).unwrap().remaining).collect();
        assert_eq!(left, [2, 1, 0]);
        let refused = limiter.take(&"a", at(0)).unwrap_err();
        assert_eq!((refused.wait, refused.quota.remaining, refused.quota.reset), (1, 0, 2));
        assert!(limiter.take(&"b", at(0)).is_ok());
        // One is there again after half a second, all of them after one and a half.
        assert!(limiter.take(&"a", at(499)).is_err());
        let quota = limiter.take(&"a", at(500)).unwrap();
        assert_eq!((quota.remaining, quota.refused), (0, 2));
        assert!(limiter.take(&"a", at(500)).is_err());
        assert_eq!(limiter.take(&"a", at(10_000)).unwrap().remaining, 2);
    }

    #[test]
    fn quota_is_told_as_the_draft_says() {
        let quota = Limiter::new(Rate::per_second(50, 500)).take(&"a", at(0)).unwrap();
        let [policy, limit] = quota.headers("writes");
        assert_eq!(policy, ("ratelimit-policy", "\"writes\";q=500;w=10".to_owned()));
        assert_eq!(limit, ("ratelimit", "\"writes\";r=499;t=1".to_owned()));
    }

    #[test]
    fn limiter_remembers_a_bounded_number_of_callers() {
        let limiter = Limiter::new(Rate::per_minute(20));
        for caller in 0..2 * MAX_CALLERS {
            limiter.take(&caller, at(caller as u64)).unwrap();
        }
        assert!(limiter.buckets.lock().unwrap().len() <= MAX_CALLERS);
        // The newest are those that are remembered.
        assert!(limiter.buckets.lock().unwrap().contains_key(&(2 * MAX_CALLERS - 1)));
    }

    #[test]
    fn a_network_of_ipv6_is_one_caller() {
        let network = |text: &str| network(text.parse().unwrap()).to_string();
        assert_eq!(network("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(network("::ffff:192.0.2.7"), "192.0.2.7");
        assert_eq!(network("192.0.2.7"), "192.0.2.7");
    }
}
