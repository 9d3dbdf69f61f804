//! How often a buyer, or an address, may call.

use std::hash::Hash;
use std::net::IpAddr;
use std::num::NonZeroU32;

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use seckill_domain::BuyerId;

use crate::problem::Problem;
use crate::settings::Rates;

/// Token buckets, kept in this process: each process allows the full rate. They protect the
/// process from one eager client; fairness of the sale is the gate's.
pub(crate) struct RateLimits {
    purchases: DefaultKeyedRateLimiter<u64>,
    others: DefaultKeyedRateLimiter<u64>,
    addresses: Option<DefaultKeyedRateLimiter<IpAddr>>,
    clock: DefaultClock,
}

/// Beyond this many full buckets the sweep also gives memory back.
const KEYS_KEPT: usize = 100_000;

impl RateLimits {
    pub(crate) fn new(rates: &Rates) -> Self {
        let purchases = Quota::per_second(rates.purchases_per_s).allow_burst(rates.purchases_burst);
        let even = |per_s: NonZeroU32| Quota::per_second(per_s);
        Self {
            purchases: RateLimiter::keyed(purchases),
            others: RateLimiter::keyed(even(rates.others_per_s)),
            addresses: rates
                .per_address_per_s
                .map(|per_s| RateLimiter::keyed(even(per_s))),
            clock: DefaultClock::default(),
        }
    }

    pub(crate) fn purchase(&self, buyer: BuyerId) -> Result<(), Problem> {
        self.check(&self.purchases, &buyer.get())
    }

    pub(crate) fn other(&self, buyer: BuyerId) -> Result<(), Problem> {
        self.check(&self.others, &buyer.get())
    }

    pub(crate) fn address(&self, address: IpAddr) -> Result<(), Problem> {
        match &self.addresses {
            Some(addresses) => self.check(addresses, &network(address)),
            None => Ok(()),
        }
    }

    fn check<K: Hash + Eq + Clone>(
        &self,
        limiter: &DefaultKeyedRateLimiter<K>,
        key: &K,
    ) -> Result<(), Problem> {
        limiter.check_key(key).map_err(|until| {
            let wait = until.wait_time_from(self.clock.now());
            Problem::RateLimited {
                retry_after_s: crate::problem::whole_seconds(wait),
            }
        })
    }

    /// Forgets everybody whose bucket is full again: memory is bounded by who called within the
    /// last few seconds.
    pub(crate) fn forget_the_quiet(&self) {
        forget(&self.purchases);
        forget(&self.others);
        if let Some(addresses) = &self.addresses {
            forget(addresses);
        }
    }
}

fn forget<K: Hash + Eq + Clone>(limiter: &DefaultKeyedRateLimiter<K>) {
    let before = limiter.len();
    limiter.retain_recent();
    if before > KEYS_KEPT {
        limiter.shrink_to_fit();
    }
}

/// A customer has at least 64 bits of IPv6 addresses to himself.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & (u128::MAX << 64)).into()),
        v4 @ IpAddr::V4(_) => v4,
    }
}
