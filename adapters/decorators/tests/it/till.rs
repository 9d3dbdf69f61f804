//! A gate that has one sale, by the domain's own rule, and counts what it is asked.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{
    Admitted, Claimant, EntryId, FollowReply, GateOrder, GateTally, HoldersPage, LeaveReply,
    NotLoaded, PlaceReply, PurchaseGate, SaleFacts, WaitersPage, WithdrawReply,
};
use seckill_domain::{
    AdjustmentId, Attempt, BuyerId, Claim, Epoch, Followed, GateUpdate, OrderId, Sale, Sequence,
    Ticket, Timestamp, VoucherId,
};

use crate::inner::Mood;

pub(crate) struct Till {
    pub(crate) sale: Mutex<Sale>,
    pub(crate) now: Mutex<Timestamp>,
    /// [`Mood::Grants`] means that the sale decides.
    pub(crate) mood: Mutex<Mood>,
    /// Never ends while this is held.
    pub(crate) door: tokio::sync::Mutex<()>,
    pub(crate) page: AtomicUsize,
    attempts: AtomicU64,
    pages: AtomicU64,
}

impl Till {
    pub(crate) fn of(sale: Sale) -> Self {
        Self {
            sale: Mutex::new(sale),
            now: Mutex::new(Timestamp::from_millis(1_000)),
            mood: Mutex::default(),
            door: tokio::sync::Mutex::default(),
            page: AtomicUsize::new(1_000),
            attempts: AtomicU64::new(0),
            pages: AtomicU64::new(0),
        }
    }

    /// Attempts that it was asked about.
    pub(crate) fn attempts(&self) -> u64 {
        self.attempts.load(Ordering::SeqCst)
    }

    /// Pages of holders that were read.
    pub(crate) fn pages(&self) -> u64 {
        self.pages.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl PurchaseGate for Till {
    async fn admit(&self, _: VoucherId, attempts: &[Attempt]) -> Result<Admitted, Fault> {
        self.attempts
            .fetch_add(attempts.len() as u64, Ordering::SeqCst);
        let _open = self.door.lock().await;
        match *self.mood.lock().unwrap() {
            Mood::NotLoaded => return Ok(Admitted::NotLoaded(NotLoaded::Voucher)),
            Mood::Unknown => return Err(Fault::unknown("till.admit", "no answer")),
            _ => {}
        }
        let (mut sale, now) = (self.sale.lock().unwrap(), *self.now.lock().unwrap());
        let turn = Ticket::drawn_at(Epoch::new(1), Sequence::new(1));
        let admissions = attempts
            .iter()
            .map(|attempt| sale.admit(attempt, now, turn).0)
            .collect();
        Ok(Admitted::Decided {
            admissions,
            pulse: sale.pulse(),
        })
    }

    async fn follow(&self, update: &GateUpdate) -> Result<FollowReply, Fault> {
        Ok(match self.sale.lock().unwrap().follow(update) {
            Followed::Applied => FollowReply::Applied { more: false },
            Followed::AlreadyApplied => FollowReply::AlreadyApplied,
            Followed::Gap { at } => FollowReply::Gap { at },
        })
    }

    async fn promote(&self, _: VoucherId) -> Result<bool, Fault> {
        Ok(false)
    }

    async fn leave(&self, _: VoucherId, _: BuyerId) -> Result<LeaveReply, Fault> {
        Ok(LeaveReply::NotWaiting)
    }

    async fn withdraw(
        &self,
        _: VoucherId,
        _: u32,
        _: AdjustmentId,
    ) -> Result<WithdrawReply, Fault> {
        Ok(WithdrawReply::Withdrawn)
    }

    async fn place(&self, _: VoucherId, _: BuyerId) -> Result<PlaceReply, Fault> {
        Ok(PlaceReply::Nowhere)
    }

    async fn has_decided(&self, _: OrderId) -> Result<bool, Fault> {
        Ok(false)
    }

    async fn find_order(&self, _: OrderId) -> Result<Option<GateOrder>, Fault> {
        Ok(None)
    }

    async fn facts(&self, vouchers: &[VoucherId]) -> Result<Vec<Option<SaleFacts>>, Fault> {
        Ok(vec![None; vouchers.len()])
    }

    async fn tally(&self, _: VoucherId, _: EntryId) -> Result<Option<GateTally>, Fault> {
        Ok(None)
    }

    async fn claimants(
        &self,
        _: VoucherId,
        buyers: &[BuyerId],
    ) -> Result<Option<Vec<Claimant>>, Fault> {
        Ok(Some(vec![Claimant::default(); buyers.len()]))
    }

    async fn holders(&self, voucher: VoucherId, cursor: u64) -> Result<Option<HoldersPage>, Fault> {
        self.pages.fetch_add(1, Ordering::SeqCst);
        let sale = self.sale.lock().unwrap();
        let mut claims: Vec<Claim> = sale
            .holders()
            .map(|(buyer, held)| Claim {
                order: held.order,
                voucher,
                buyer,
                quantity: held.quantity,
                key: None,
            })
            .collect();
        claims.sort_by_key(|claim| claim.order);
        let (from, size) = (
            usize::try_from(cursor).unwrap(),
            self.page.load(Ordering::SeqCst),
        );
        let next = (from + size < claims.len()).then_some(cursor + size as u64);
        let claims = claims.into_iter().skip(from).take(size).collect();
        Ok(Some(HoldersPage { claims, next }))
    }

    async fn waiters(&self, _: VoucherId, _: u64) -> Result<Option<WaitersPage>, Fault> {
        Ok(Some(WaitersPage {
            seats: Vec::new(),
            next: None,
        }))
    }

    async fn retire(&self, _: VoucherId) -> Result<bool, Fault> {
        Ok(true)
    }

    async fn ping(&self) -> Result<(), Fault> {
        Ok(())
    }
}
