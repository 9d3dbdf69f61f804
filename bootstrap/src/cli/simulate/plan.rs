//! Who comes, and what they are up to. A seed decides everything.

use std::ops::RangeInclusive;
use std::time::Duration;

use clap::value_parser;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use seckill_domain::{BuyerId, IdempotencyKey, VoucherId};

use super::buyer::{Buyer, Fate};

/// The crowd and the sale.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Crowd")]
pub(crate) struct Plan {
    /// Buyers
    #[arg(long, value_name = "COUNT", default_value = "1000", value_parser = value_parser!(u32).range(1..=10_000_000))]
    pub(crate) buyers: u32,
    /// Units on sale
    #[arg(long, value_name = "COUNT", default_value = "100", value_parser = value_parser!(u32).range(1..=100_000_000))]
    pub(crate) units: u32,
    /// Most units of one buyer
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = value_parser!(u32).range(1..=1_000))]
    pub(crate) limit: u32,
    /// Places on the waitlist
    #[arg(long, value_name = "COUNT", default_value = "50", value_parser = value_parser!(u32).range(0..=1_000_000))]
    pub(crate) waitlist: u32,
    /// Share of buyers who press the button several times at once
    #[arg(long, value_name = "SHARE", default_value = "0.2", value_parser = share)]
    pub(crate) duplicates: f64,
    /// Share of buyers with an order who pay
    #[arg(long, value_name = "SHARE", default_value = "0.7", value_parser = share)]
    pub(crate) pay: f64,
    /// Share of buyers with an order who cancel; the others let it expire, unless they waited for it
    #[arg(long, value_name = "SHARE", default_value = "0.1", value_parser = share)]
    pub(crate) cancel: f64,
    /// How long an order may stay unpaid, in seconds
    #[arg(long, value_name = "S", default_value = "5", value_parser = value_parser!(u64).range(1..=86_400))]
    pub(crate) payment_window: u64,
    /// What decides who does what
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    pub(crate) seed: u64,
}

/// Presses of the button of a buyer who presses several times.
const PRESSES: RangeInclusive<u32> = 2..=5;
/// Numbers of buyers of one voucher begin at a multiple of this.
const CROWD: u64 = 100_000_000;

impl Plan {
    pub(super) fn payment_window(&self) -> Duration {
        Duration::from_secs(self.payment_window)
    }

    /// The crowd for a voucher. No buyer of one voucher is a buyer of another: what is said about
    /// them is only about this one.
    pub(super) fn buyers(&self, voucher: VoucherId) -> Vec<Buyer> {
        let mut chance = StdRng::seed_from_u64(self.seed);
        let first = (voucher.get() % 1_000_000) * CROWD + 1;
        (0..u64::from(self.buyers))
            .map(|number| self.buyer(BuyerId::new(first + number), &mut chance))
            .collect()
    }

    fn buyer(&self, id: BuyerId, chance: &mut StdRng) -> Buyer {
        let presses = if chance.random::<f64>() < self.duplicates {
            chance.random_range(PRESSES)
        } else {
            1
        };
        let fate = match chance.random::<f64>() {
            share if share < self.pay => Fate::Pays,
            share if share < self.pay + self.cancel => Fate::Cancels,
            _ => Fate::Abandons,
        };
        // Above a limit of 1 only a key makes two presses the same purchase.
        let keyed = self.limit > 1 || chance.random::<bool>();
        let key = keyed.then(|| format!("simulated-{id}"));
        let key = key.and_then(|key| key.parse::<IdempotencyKey>().ok());
        Buyer::new(id, presses, key, fate)
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("a share from 0 to 1 is needed".to_owned()),
    }
}
