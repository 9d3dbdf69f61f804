//! A sale that is open at the gate, and what can be asked of it in a line.

use std::sync::atomic::{AtomicU64, Ordering};

use seckill_application::ports::{
    Admitted, FollowReply, HotPath, LeaveReply, NotLoaded, OpenSale, Place, PlaceReply, SaleFacts,
};
use seckill_domain::{
    Admission, Attempt, BuyerId, Claim, Decision, Epoch, GateChange, GateUpdate, GateVersion,
    OrderId, PartitionId, Partitions, Pulse, SaleStatus, SaleTerms, Ticket, VoucherId,
};

use super::stream_log::StreamLog;

/// Ids of these promises fall while time rises, so nothing can pass that takes an order of arrival
/// from an id, and neighbours differ in a digit that a double does not keep.
static NEXT_ORDER: AtomicU64 = AtomicU64::new(9_609_848_294_759_202_817);

/// An open sale.
pub(super) struct Stall {
    pub(super) hot: HotPath,
    pub(super) voucher: VoucherId,
    pub(super) partition: PartitionId,
    pub(super) epoch: Epoch,
    pub(super) terms: SaleTerms,
    version: AtomicU64,
}

/// Turns have promises of their own; elsewhere they would only repeat what was asked before.
const ANY_TICKET: Ticket = Ticket::new(0);

/// The answer to who gets a place, with whatever turn.
pub(super) fn waitlisted(order: OrderId, position: u32) -> Admission {
    Admission::Waitlisted {
        order,
        position,
        ticket: ANY_TICKET,
    }
}

/// Makes answers comparable with [`waitlisted`].
pub(super) fn forget_tickets(admissions: &mut [Admission]) {
    for admission in admissions {
        if let Admission::Waitlisted { ticket, .. } = admission {
            *ticket = ANY_TICKET;
        }
    }
}

impl Stall {
    pub(super) fn new(
        hot: HotPath,
        partitions: Partitions,
        voucher: VoucherId,
        epoch: Epoch,
        sale: OpenSale,
    ) -> Self {
        Self {
            hot,
            voucher,
            partition: partitions.of(voucher),
            epoch,
            terms: sale.terms,
            version: AtomicU64::new(sale.version.get()),
        }
    }

    /// A new attempt.
    #[expect(
        clippy::unused_self,
        reason = "reads as what it is: an attempt at this stall"
    )]
    pub(super) fn attempt(&self, buyer: u64, quantity: u32) -> Attempt {
        Attempt {
            order: new_order(),
            buyer: BuyerId::new(buyer),
            quantity,
            key: None,
        }
    }

    /// A new attempt with a key.
    pub(super) fn keyed(&self, buyer: u64, quantity: u32, key: &str) -> Attempt {
        let key = Some(key.parse().expect("a key"));
        Attempt {
            key,
            ..self.attempt(buyer, quantity)
        }
    }

    pub(super) fn claim(&self, attempt: &Attempt) -> Claim {
        Claim::of(self.voucher, attempt)
    }

    /// Presses the button for a new order, and returns what was asked and what was answered.
    pub(super) async fn buy(&self, buyer: u64, quantity: u32) -> (Attempt, Admission) {
        let attempt = self.attempt(buyer, quantity);
        let admission = self.admit(&attempt).await;
        (attempt, admission)
    }

    /// A buyer who gets units.
    pub(super) async fn granted(&self, buyer: u64, quantity: u32) -> Attempt {
        let (attempt, admission) = self.buy(buyer, quantity).await;
        let order = attempt.order;
        assert_eq!(admission, Admission::Granted { order }, "{attempt:?}");
        attempt
    }

    /// A buyer who gets a place.
    pub(super) async fn waiting(&self, buyer: u64, quantity: u32) -> Attempt {
        let (attempt, admission) = self.buy(buyer, quantity).await;
        assert!(
            matches!(admission, Admission::Waitlisted { .. }),
            "{attempt:?}: {admission:?}"
        );
        attempt
    }

    /// The answer to one attempt.
    pub(super) async fn admit(&self, attempt: &Attempt) -> Admission {
        let mut admissions = self.admit_all(std::slice::from_ref(attempt)).await;
        admissions.pop().expect("one answer")
    }

    /// The answers to a batch, without their tickets: see [`waitlisted`].
    pub(super) async fn admit_all(&self, attempts: &[Attempt]) -> Vec<Admission> {
        let mut admissions = self.admit_with_tickets(attempts).await;
        forget_tickets(&mut admissions);
        admissions
    }

    /// The answers to a batch, as they are.
    pub(super) async fn admit_with_tickets(&self, attempts: &[Attempt]) -> Vec<Admission> {
        let reply = self.ask(attempts).await;
        let Admitted::Decided { admissions, pulse } = reply else {
            panic!("not decided: {reply:?}");
        };
        assert_eq!(admissions.len(), attempts.len());
        assert_eq!(
            pulse,
            self.pulse().await,
            "the pulse is the sale after the batch"
        );
        admissions
    }

    /// The gate's whole reply.
    pub(super) async fn ask(&self, attempts: &[Attempt]) -> Admitted {
        self.hot.gate.admit(self.voucher, attempts).await.unwrap()
    }

    pub(super) async fn facts(&self) -> SaleFacts {
        let facts = self.hot.gate.facts(&[self.voucher]).await.unwrap();
        let [Some(facts)] = facts.as_slice() else {
            panic!("not loaded: {facts:?}");
        };
        *facts
    }

    pub(super) async fn pulse(&self) -> Pulse {
        self.facts().await.pulse
    }

    pub(super) async fn free(&self) -> u32 {
        self.pulse().await.free
    }

    pub(super) async fn place(&self, buyer: u64) -> Option<Place> {
        match self.place_reply(buyer).await {
            PlaceReply::At(place) => Some(place),
            PlaceReply::Nowhere => None,
            PlaceReply::NotLoaded(why) => panic!("not loaded: {why:?}"),
        }
    }

    /// The gate's whole reply to a buyer who asks for his place.
    pub(super) async fn place_reply(&self, buyer: u64) -> PlaceReply {
        let buyer = BuyerId::new(buyer);
        self.hot.gate.place(self.voucher, buyer).await.unwrap()
    }

    pub(super) async fn leave(&self, buyer: u64) -> LeaveReply {
        self.hot
            .gate
            .leave(self.voucher, BuyerId::new(buyer))
            .await
            .unwrap()
    }

    /// Everything the gate wrote down about this voucher, in order.
    pub(super) async fn decisions(&self) -> Vec<Decision> {
        let log = StreamLog::read(&self.hot, self.partition, self.epoch).await;
        log.about(self.voucher)
    }

    pub(super) async fn log(&self) -> StreamLog {
        StreamLog::read(&self.hot, self.partition, self.epoch).await
    }

    /// An update with a version of its own choice.
    pub(super) async fn follow_at(&self, version: u64, changes: Vec<GateChange>) -> FollowReply {
        let update = GateUpdate {
            voucher: self.voucher,
            version: GateVersion::new(version),
            changes,
        };
        self.hot.gate.follow(&update).await.unwrap()
    }

    /// The next update. Returns whether promotions are left to do.
    pub(super) async fn follow(&self, changes: Vec<GateChange>) -> bool {
        let version = self.version.fetch_add(1, Ordering::Relaxed) + 1;
        match self.follow_at(version, changes).await {
            FollowReply::Applied { more } => more,
            reply => panic!("update {version} was not applied: {reply:?}"),
        }
    }

    /// The next update: this order gives its units back.
    pub(super) async fn release(&self, attempt: &Attempt) -> bool {
        self.follow(vec![release_of(attempt)]).await
    }

    /// The next update: units are added.
    pub(super) async fn add(&self, units: u32) -> bool {
        self.follow(vec![GateChange::AddUnits { units }]).await
    }

    /// The next update: another status.
    pub(super) async fn turn(&self, status: SaleStatus) -> bool {
        let terms = SaleTerms {
            status,
            ..self.terms
        };
        self.follow(vec![GateChange::SetTerms(terms)]).await
    }

    /// Serves and drains the waitlist until nothing is left to do.
    pub(super) async fn settle(&self) {
        for _ in 0..100 {
            if !self.hot.gate.promote(self.voucher).await.unwrap() {
                return;
            }
        }
        panic!("there is always more to promote");
    }

    /// Nothing is answered, because of this.
    pub(super) async fn assert_not_loaded(&self, why: NotLoaded) {
        let reply = self.ask(&[self.attempt(4_711, 1)]).await;
        assert_eq!(reply, Admitted::NotLoaded(why));
    }
}

/// An order id that was never used.
pub(super) fn new_order() -> OrderId {
    OrderId::new(NEXT_ORDER.fetch_sub(1, Ordering::Relaxed))
}

/// This order gives its units back.
pub(super) fn release_of(attempt: &Attempt) -> GateChange {
    GateChange::Release {
        order: attempt.order,
        buyer: attempt.buyer,
        quantity: attempt.quantity,
    }
}

/// The place of this order is dropped.
pub(super) fn drop_of(attempt: &Attempt) -> GateChange {
    GateChange::DropPlace {
        order: attempt.order,
        buyer: attempt.buyer,
    }
}
