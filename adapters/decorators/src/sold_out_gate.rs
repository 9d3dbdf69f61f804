//! Sold out, said without asking.

mod knowledge;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use seckill_application::ports::{Admitted, Clock, FollowReply, PurchaseGate};
use seckill_application::{Effect, Fault};
use seckill_domain::{Admission, Attempt, BuyerId, GateUpdate, GateVersion, Pulse, VoucherId};

use crate::forward::decorate_admit;
use knowledge::{Knowledge, Said, Turn};

/// How long the gate's word is repeated, and for whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SoldOutSettings {
    /// How often one attempt goes to the gate, to see whether it still is sold out. Zero: all go.
    pub recheck: Duration,
    /// Rejections by the gate, one soon after the other, after which it pays to read who holds
    /// units, at least 1.
    pub rejections_min: u32,
    /// Most holders of a voucher that are kept in mind. A sale that has more is always asked.
    pub holders_max: usize,
    /// Most vouchers that are kept in mind.
    pub vouchers_max: usize,
}

impl Default for SoldOutSettings {
    fn default() -> Self {
        Self {
            recheck: Duration::from_millis(50),
            rejections_min: 64,
            holders_max: 100_000,
            vouchers_max: 64,
        }
    }
}

impl SoldOutSettings {
    /// How old the gate's last word may be. Beyond it, it counts for nothing any more: not even a
    /// look that finds the sale as it was brings it back, because the hot data may have been lost
    /// and loaded again meanwhile.
    fn trusted(&self) -> Duration {
        self.recheck * 4
    }
}

/// How long nothing is answered locally after an attempt whose outcome nobody knows: the buyer may
/// have his units, and asks again with the same order id.
const DOUBT: Duration = Duration::from_secs(3);

/// A purchase gate that remembers when the inner gate has nothing left, and then turns buyers away
/// itself.
///
/// It says nothing but "sold out", and that only of a sale without a waitlist, to a buyer who wants
/// one unit, sends no idempotency key, and holds nothing: all others are asked about. Who holds
/// units is read from the gate once, page by page, and stays true as long as nothing is free and
/// the gate's version stays what it is, because nobody can come to hold units without one of them
/// changing. One attempt in every [`SoldOutSettings::recheck`] goes to the gate and tells. An update
/// of the ledger that passes here, an answer other than "sold out", or a fault ends it at once.
pub struct SoldOutGate {
    inner: Arc<dyn PurchaseGate>,
    clock: Arc<dyn Clock>,
    settings: SoldOutSettings,
    vouchers: Mutex<HashMap<VoucherId, Knowledge>>,
    /// How many there are, so that an attempt on a sale that has units takes no lock.
    known: AtomicUsize,
    /// On the monotonic clock, in microseconds.
    doubt_until: AtomicU64,
    lives: AtomicU64,
    answered: AtomicU64,
}

decorate_admit!(SoldOutGate, followed);

impl SoldOutGate {
    /// Around `inner`.
    pub fn new(
        inner: Arc<dyn PurchaseGate>,
        clock: Arc<dyn Clock>,
        settings: SoldOutSettings,
    ) -> Self {
        Self {
            inner,
            clock,
            settings,
            vouchers: Mutex::default(),
            known: AtomicUsize::new(0),
            doubt_until: AtomicU64::new(0),
            lives: AtomicU64::new(0),
            answered: AtomicU64::new(0),
        }
    }

    /// Attempts that were answered without the inner gate since this was made.
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    async fn decorated(&self, voucher: VoucherId, attempts: &[Attempt]) -> Result<Admitted, Fault> {
        if self.settings.recheck.is_zero() {
            return self.inner.admit(voucher, attempts).await;
        }
        let begun = self.clock.monotonic();
        let probe = match attempts {
            [attempt] => match self.ask(voucher, attempt, begun) {
                Said::SoldOut(version) => return Ok(self.sold_out(version)),
                Said::AskFor(buyer) => Some(Probe {
                    gate: self,
                    voucher,
                    buyer,
                }),
                Said::Nothing => None,
            },
            _ => None,
        };
        let reply = self.inner.admit(voucher, attempts).await;
        let turn = self.hear(voucher, begun, &reply);
        drop(probe);
        if let Some(turn) = turn {
            self.read_holders(voucher, turn).await;
        }
        reply
    }

    async fn followed(&self, update: &GateUpdate) -> Result<FollowReply, Fault> {
        let reply = self.inner.follow(update).await;
        self.forget(update.voucher);
        reply
    }

    fn sold_out(&self, version: GateVersion) -> Admitted {
        self.answered.fetch_add(1, Ordering::Relaxed);
        Admitted::Decided {
            admissions: vec![Admission::SoldOut],
            pulse: Pulse {
                free: 0,
                waiting: 0,
                waitlist_open: false,
                version,
            },
        }
    }

    /// What is to be said to an attempt.
    fn ask(&self, voucher: VoucherId, attempt: &Attempt, now: Duration) -> Said {
        if self.known.load(Ordering::Relaxed) == 0
            || attempt.quantity != 1
            || attempt.key.is_some()
            || micros(now) < self.doubt_until.load(Ordering::Relaxed)
        {
            return Said::Nothing;
        }
        let mut vouchers = self.lock();
        let Some(knowledge) = vouchers.get_mut(&voucher) else {
            return Said::Nothing;
        };
        knowledge.say(attempt.buyer, now, &self.settings)
    }

    /// Takes to heart what the gate said. Returns which page of holders to read next, if any.
    fn hear(
        &self,
        voucher: VoucherId,
        begun: Duration,
        reply: &Result<Admitted, Fault>,
    ) -> Option<Turn> {
        let (admissions, pulse) = match reply {
            Ok(Admitted::Decided { admissions, pulse }) => (admissions, pulse),
            Ok(Admitted::NotLoaded(_) | Admitted::BacklogFull) => {
                self.forget(voucher);
                return None;
            }
            Err(fault) => {
                if fault.effect() == Effect::Unknown {
                    let until = micros(self.clock.monotonic() + DOUBT);
                    self.doubt_until.fetch_max(until, Ordering::Relaxed);
                }
                self.forget(voucher);
                return None;
            }
        };
        let over = pulse.free == 0 && pulse.waiting == 0 && !pulse.waitlist_open;
        if !over || admissions.iter().any(contradicts) {
            self.forget(voucher);
            return None;
        }
        if !admissions.contains(&Admission::SoldOut) {
            return None;
        }
        let mut vouchers = self.lock();
        if !vouchers.contains_key(&voucher) && vouchers.len() >= self.settings.vouchers_max {
            vouchers.retain(|_, knowledge| knowledge.is_fresh(begun, &self.settings));
            self.known.store(vouchers.len(), Ordering::Relaxed);
            if vouchers.len() >= self.settings.vouchers_max {
                return None;
            }
        }
        let life = || self.lives.fetch_add(1, Ordering::Relaxed);
        let knowledge = vouchers
            .entry(voucher)
            .or_insert_with(|| Knowledge::new(pulse.version, begun, life()));
        if pulse.version < knowledge.version {
            return None;
        }
        if pulse.version != knowledge.version || !knowledge.is_fresh(begun, &self.settings) {
            *knowledge = Knowledge::new(pulse.version, begun, life());
        }
        let turn = knowledge.rejected(begun, &self.settings);
        self.known.store(vouchers.len(), Ordering::Relaxed);
        turn
    }

    /// Reads one page of those who hold units.
    async fn read_holders(&self, voucher: VoucherId, turn: Turn) {
        let unread = Unread {
            gate: self,
            voucher,
            life: turn.life,
        };
        if let Ok(Some(page)) = self.inner.holders(voucher, turn.cursor).await {
            std::mem::forget(unread);
            let now = self.clock.monotonic();
            if let Some(knowledge) = self.lock().get_mut(&voucher)
                && knowledge.life == turn.life
            {
                knowledge.read(&page, now, &self.settings);
            }
        }
    }

    fn forget(&self, voucher: VoucherId) {
        if self.known.load(Ordering::Relaxed) > 0 {
            self.forget_if(voucher, |_| true);
        }
    }

    fn forget_if(&self, voucher: VoucherId, wanted: impl FnOnce(&Knowledge) -> bool) {
        let mut vouchers = self.lock();
        if vouchers.get(&voucher).is_some_and(wanted) {
            vouchers.remove(&voucher);
            self.known.store(vouchers.len(), Ordering::Relaxed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<VoucherId, Knowledge>> {
        self.vouchers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an answer says that the sale is not simply sold out.
fn contradicts(admission: &Admission) -> bool {
    matches!(
        admission,
        Admission::Granted { .. }
            | Admission::Waitlisted { .. }
            | Admission::AlreadyWaiting { .. }
            | Admission::NotOpen { .. }
            | Admission::Paused
            | Admission::Closed
    )
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The one attempt that looks whether it still is sold out. Others may look once it has ended.
struct Probe<'a> {
    gate: &'a SoldOutGate,
    voucher: VoucherId,
    buyer: BuyerId,
}

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        if let Some(knowledge) = self.gate.lock().get_mut(&self.voucher) {
            knowledge.probed(self.buyer);
        }
    }
}

/// A page of holders that is not there yet: without it, nothing is known.
struct Unread<'a> {
    gate: &'a SoldOutGate,
    voucher: VoucherId,
    life: u64,
}

impl Drop for Unread<'_> {
    fn drop(&mut self) {
        let life = self.life;
        self.gate
            .forget_if(self.voucher, |knowledge| knowledge.life == life);
    }
}
