//! A gate with one unit for everybody, that answers when it is told to.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{
    Admitted, Claimant, Clock, EntryId, FollowReply, GateOrder, GateTally, HoldersPage, LeaveReply,
    NotLoaded, PlaceReply, PurchaseGate, SaleFacts, WaitersPage, WithdrawReply,
};
use seckill_decorators::{BatchSettings, BatchedGate};
use seckill_domain::{
    AdjustmentId, Admission, Attempt, BuyerId, GateUpdate, GateVersion, OrderId, Pulse, Timestamp,
    VoucherId,
};
use tokio::sync::Semaphore;

/// What the gate does with its next calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mood {
    #[default]
    Grants,
    NotLoaded,
    Unknown,
    Unavailable,
    Broken,
    Panics,
    ForgetsOne,
}

pub(crate) struct Inner {
    /// One permit lets one call end.
    pub(crate) replies: Semaphore,
    pub(crate) mood: Mutex<Mood>,
    /// How often a call lets others run before it ends.
    pub(crate) yields: AtomicU64,
    calls: Mutex<Vec<(u64, Vec<u64>)>>,
    ended: AtomicU64,
}

impl Inner {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            replies: Semaphore::new(0),
            mood: Mutex::default(),
            yields: AtomicU64::new(0),
            calls: Mutex::default(),
            ended: AtomicU64::new(0),
        })
    }

    pub(crate) fn batched(self: &Arc<Self>, settings: BatchSettings) -> (BatchedGate, Arc<Hand>) {
        let clock = Arc::new(Hand::default());
        let gate = BatchedGate::new(self.clone(), clock.clone(), settings);
        (gate, clock)
    }

    /// The orders of each call, in the order in which the calls were begun.
    pub(crate) fn calls(&self) -> Vec<Vec<u64>> {
        let calls = self.calls.lock().unwrap();
        calls.iter().map(|(_, orders)| orders.clone()).collect()
    }

    pub(crate) fn ended(&self) -> u64 {
        self.ended.load(Ordering::SeqCst)
    }

    pub(crate) fn set(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }
}

pub(crate) fn attempt(order: u64) -> [Attempt; 1] {
    [Attempt {
        order: OrderId::new(order),
        buyer: BuyerId::new(order),
        quantity: 1,
        key: None,
    }]
}

/// The order that was granted to a single attempt.
pub(crate) fn granted(reply: Result<Admitted, Fault>) -> u64 {
    match reply {
        Ok(Admitted::Decided { admissions, .. }) => match admissions.as_slice() {
            [Admission::Granted { order }] => order.get(),
            other => panic!("not one grant: {other:?}"),
        },
        other => panic!("not decided: {other:?}"),
    }
}

#[async_trait]
impl PurchaseGate for Inner {
    async fn admit(&self, voucher: VoucherId, attempts: &[Attempt]) -> Result<Admitted, Fault> {
        let orders = attempts.iter().map(|attempt| attempt.order.get()).collect();
        self.calls.lock().unwrap().push((voucher.get(), orders));
        self.replies.acquire().await.unwrap().forget();
        for _ in 0..self.yields.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
        self.ended.fetch_add(1, Ordering::SeqCst);
        let mood = *self.mood.lock().unwrap();
        let forgotten = match mood {
            Mood::Grants => 0,
            Mood::ForgetsOne => 1,
            Mood::NotLoaded => return Ok(Admitted::NotLoaded(NotLoaded::Loading)),
            Mood::Unknown => return Err(Fault::unknown("redis.admit", "connection reset")),
            Mood::Unavailable => return Err(Fault::unavailable("redis.admit", "refused")),
            Mood::Broken => return Err(Fault::broken("redis.admit", "nonsense")),
            Mood::Panics => panic!("planned"),
        };
        let admissions = attempts[forgotten..]
            .iter()
            .map(|attempt| Admission::Granted {
                order: attempt.order,
            })
            .collect();
        let pulse = Pulse {
            free: 1,
            waiting: 0,
            waitlist_open: false,
            version: GateVersion::default(),
        };
        Ok(Admitted::Decided { admissions, pulse })
    }

    async fn follow(&self, _: &GateUpdate) -> Result<FollowReply, Fault> {
        Ok(FollowReply::AlreadyApplied)
    }

    async fn promote(&self, _: VoucherId) -> Result<bool, Fault> {
        Ok(true)
    }

    async fn leave(&self, _: VoucherId, _: BuyerId) -> Result<LeaveReply, Fault> {
        Ok(LeaveReply::NotWaiting)
    }

    async fn withdraw(
        &self,
        _: VoucherId,
        units: u32,
        _: AdjustmentId,
    ) -> Result<WithdrawReply, Fault> {
        Ok(WithdrawReply::NotEnough { free: units })
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

    async fn holders(&self, _: VoucherId, cursor: u64) -> Result<Option<HoldersPage>, Fault> {
        Ok(Some(HoldersPage {
            claims: Vec::new(),
            next: Some(cursor + 1),
        }))
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

/// A clock that is moved by hand.
#[derive(Default)]
pub(crate) struct Hand(AtomicU64);

impl Hand {
    pub(crate) fn advance(&self, by: Duration) {
        let millis = u64::try_from(by.as_millis()).unwrap();
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}

#[async_trait]
impl Clock for Hand {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::SeqCst))
    }

    async fn sleep(&self, pause: Duration) {
        self.advance(pause);
    }
}
