//! Judges what there is by what was promised: at every quiet moment, and when all is at rest.

mod events;
mod money;
mod orders;
mod rest;
mod units;
mod waitlist;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use seckill_application::ports::VoucherFilter;
use seckill_domain::invariants::InvariantId;
use seckill_domain::{Order, Voucher};

use crate::site::Site;
use crate::stores::now;

/// What must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// One of the nine promises.
    Promise(InvariantId),
    /// The ledger refuses nothing that a gate granted which has lost nothing.
    HealthyGate,
    /// A partition begins another life only if it has lost something.
    NoFalseAlarm,
    /// Reconciliation mends nothing where nothing was lost.
    NoFalseRepair,
    /// What happens is written down, and told.
    Told,
    /// Money pays all of an order, or goes back whole.
    WholeMoney,
    /// A sale that is paused or over decides nothing new.
    Shut,
    /// Nothing panics.
    NoPanic,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Promise(promise) => promise.fmt(f),
            Self::HealthyGate => f.write_str("a healthy gate is never refused"),
            Self::NoFalseRepair => f.write_str("no repair without a loss"),
            Self::Told => f.write_str("what happens is told"),
            Self::WholeMoney => f.write_str("no part of the money pays or goes back"),
            Self::Shut => f.write_str("a sale that is shut sells nothing"),
            Self::NoPanic => f.write_str("nothing panics"),
            Self::NoFalseAlarm => f.write_str("no rebuild without a loss"),
        }
    }
}

/// Something that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// What should hold.
    pub rule: Rule,
    /// How it does not.
    pub how: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.how)
    }
}

/// Ends a judgement.
pub(crate) fn broken<T>(promise: InvariantId, how: impl Into<String>) -> Result<T, Violation> {
    against(Rule::Promise(promise), how)
}

fn against<T>(rule: Rule, how: impl Into<String>) -> Result<T, Violation> {
    let how = how.into();
    Err(Violation { rule, how })
}

/// Judges one site.
pub struct Judge {
    site: Arc<Site>,
    /// All has been at rest.
    rested: AtomicBool,
    /// Hot data was lost or forged since.
    damaged: AtomicBool,
    /// What the ledger had refused when all was at rest.
    refusals: AtomicU64,
}

impl Judge {
    /// Of a site that is new.
    pub fn new(site: Arc<Site>) -> Self {
        Self {
            site,
            rested: AtomicBool::new(false),
            damaged: AtomicBool::new(false),
            refusals: AtomicU64::new(0),
        }
    }

    /// Hot data is about to be lost or forged: until all is at rest again, gate and ledger differ.
    pub fn damaged(&self) {
        self.damaged.store(true, Ordering::Relaxed);
        self.site.nature.touched.store(true, Ordering::Relaxed);
    }

    /// What the ledger refuses leaves the gate with too little until the sale is loaded again.
    fn is_sound(&self) -> bool {
        let refused = self.site.watch.refusals() != self.refusals.load(Ordering::Relaxed);
        let damaged = self.damaged.load(Ordering::Relaxed);
        let sound = self.rested.load(Ordering::Relaxed) && !damaged && !refused;
        sound && !self.site.watch.has_spoilt()
    }

    /// What must hold at every moment. Looks only if anything may have moved.
    pub fn quiet(&self) -> Result<(), Violation> {
        if !self.site.nature.touched.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        for voucher in self.vouchers() {
            units::in_ledger(&self.site, &voucher)?;
            if self.is_sound() && !voucher.retired {
                units::conserved(&self.site, &voucher)?;
            }
        }
        self.site.watch.sold_while_shut()?;
        if !self.damaged.load(Ordering::Relaxed) {
            self.site.watch.unprovoked()?;
        }
        Ok(())
    }

    /// What must hold when all is at rest.
    pub fn at_rest(&self) -> Result<(), Violation> {
        let (vouchers, orders) = (self.vouchers(), self.orders());
        for voucher in &vouchers {
            units::in_ledger(&self.site, voucher)?;
            waitlist::fair(&self.site, voucher, &orders)?;
        }
        orders::judge(&self.site, &orders)?;
        money::judge(&self.site, &orders)?;
        events::judge(&self.site, &vouchers, &orders)?;
        self.site.watch.is_at_rest();
        self.refusals
            .store(self.site.watch.refusals(), Ordering::Relaxed);
        self.rested.store(true, Ordering::Relaxed);
        self.damaged.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Whether all is at rest, and gate and ledger agree; if not, what is not.
    pub fn unrest(&self) -> Result<(), Violation> {
        let vouchers = self.vouchers();
        rest::unrest(&self.site, &vouchers)?;
        let orders = self.orders();
        orders::nothing_lost(&self.site, &orders)?;
        for voucher in vouchers.into_iter().filter(|it| !it.retired) {
            units::conserved(&self.site, &voucher)?;
            units::gate_agrees(&self.site, &voucher, &orders)?;
        }
        Ok(())
    }

    fn vouchers(&self) -> Vec<Voucher> {
        let ledger = &self.site.stores.ledger.ledger;
        now(ledger.vouchers(VoucherFilter::Public, None, 1_000)).items
    }

    /// Every order there is, by id.
    pub fn orders(&self) -> Vec<Order> {
        let ledger = &self.site.stores.ledger.ledger;
        let mut orders = Vec::new();
        for buyer in self.site.all_buyers() {
            let mut before = None;
            loop {
                let page = now(ledger.orders_of(buyer, before, 100));
                before = page.items.last().map(|order| order.id);
                let more = page.next.is_some();
                orders.extend(page.items);
                if !more {
                    break;
                }
            }
        }
        orders.sort_unstable_by_key(|order| order.id);
        orders
    }
}
