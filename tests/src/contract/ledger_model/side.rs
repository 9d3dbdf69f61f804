//! One of the two ledgers, with what differs between them: numbers that a database draws.

use std::collections::BTreeSet;

use seckill_application::ports::{
    AdjustmentReply, AdmissionBatch, Applied, NewAdjustment, ParkedReply, ParkedState, Verdict,
};
use seckill_domain::{
    AdjustmentId, BuyerId, Claim, Decision, GateVersion, IdempotencyKey, Order, OrderId, Stage,
    Ticket, Voucher, VoucherId,
};

use crate::contract::LedgerHarness;
use crate::contract::desk::Desk;

/// A ledger with one sale.
pub(super) struct Side<'a> {
    desk: Desk<'a>,
    voucher: Voucher,
    adjustments: Vec<AdjustmentId>,
    last: Option<AdmissionBatch>,
}

/// A decision, whatever numbers the ledger has given.
#[derive(Debug, Clone)]
pub(super) enum Wish {
    /// About an order; its voucher is put in.
    Of(Decision),
    /// An adjustment, by its place, and how many units more or less were taken than it says.
    Withdrawn { place: usize, off: u32 },
}

/// How an order is: all that does not depend on a clock or on the voucher's number.
pub(super) type Trace = (BuyerId, u32, u64, Option<String>, Option<u64>, bool, Stage);

/// The sale: total, stock, parked, unpaid, paid, version, whether anything is unsettled.
pub(super) type Sums = (u32, u32, u32, u32, u32, GateVersion, bool);

/// The snapshot, sorted: holders, seats, uses of keys, each in words.
pub(super) type Contents = [BTreeSet<String>; 3];

impl<'a> Side<'a> {
    pub(super) async fn new(harness: &'a dyn LedgerHarness, units: u32, limit: u32) -> Self {
        let desk = Desk::at(harness);
        let voucher = desk.voucher(units, limit).await;
        Self {
            desk,
            voucher,
            adjustments: Vec::new(),
            last: None,
        }
    }

    fn decision(&self, wish: &Wish) -> Decision {
        let here = self.voucher.id;
        let claim = |claim: &Claim| Claim {
            voucher: here,
            ..claim.clone()
        };
        match wish {
            Wish::Of(Decision::Granted(it)) => Decision::Granted(claim(it)),
            Wish::Of(Decision::Promoted(it)) => Decision::Promoted(claim(it)),
            Wish::Of(Decision::Lost(it)) => Decision::Lost(claim(it)),
            Wish::Of(Decision::Joined { claim: it, ticket }) => Decision::Joined {
                claim: claim(it),
                ticket: *ticket,
            },
            Wish::Of(Decision::Left { claim: it, reason }) => Decision::Left {
                claim: claim(it),
                reason: *reason,
            },
            Wish::Of(Decision::Withdrawn { units, .. }) => Decision::Withdrawn {
                voucher: here,
                units: *units,
                adjustment: AdjustmentId::new(u64::MAX / 2),
            },
            Wish::Withdrawn { place, off } => Decision::Withdrawn {
                voucher: here,
                units: WITHDRAWN + off,
                adjustment: self.adjustments[*place],
            },
        }
    }

    /// Applies the next batch.
    pub(super) async fn apply(&mut self, wishes: &[Wish]) -> Vec<Verdict> {
        let decisions = wishes.iter().map(|wish| self.decision(wish)).collect();
        let partition = self.desk.partition_of(self.voucher.id);
        let batch = self.desk.batch(partition, decisions).await;
        let verdicts = self.desk.commit(&batch).await;
        let all = verdicts.iter().all(|it| *it == Verdict::Confirmed);
        self.last = all.then_some(batch);
        verdicts
    }

    /// Puts the last batch again: whether it is stale, and known to be applied. `None` if not all of
    /// it was confirmed: an order keeps the numbers of the last decisions that may have made it what it
    /// is, and not of those that contradict it.
    pub(super) async fn apply_again(&self) -> Option<(bool, bool)> {
        let batch = self.last.as_ref()?;
        let port = &self.desk.ports.admissions;
        let stale = matches!(port.apply(batch).await.unwrap(), Applied::Stale(_));
        let known = port.has_applied(batch.partition, &batch.items).await;
        Some((stale, known.unwrap()))
    }

    /// Moves an order on.
    pub(super) async fn turn(&self, claim: &Claim, stage: Stage) -> GateVersion {
        let claim = Claim {
            voucher: self.voucher.id,
            ..claim.clone()
        };
        self.desk.turn(&claim, stage).await
    }

    /// Writes down that units are added, or are to be taken out; then adds them.
    pub(super) async fn adjust(&mut self, delta: i32) -> Option<GateVersion> {
        let mut unit = self.desk.begin().await;
        let adjustment = NewAdjustment {
            voucher: self.voucher.id,
            delta,
            reason: "model".to_owned(),
            key: None,
        };
        let reply = unit.record_adjustment(&adjustment).await.unwrap();
        let AdjustmentReply::Recorded(recorded) = reply else {
            panic!("{reply:?}");
        };
        let mut version = None;
        if let Ok(units) = u32::try_from(delta) {
            let added = unit.add_units(self.voucher.id, recorded.id, units).await;
            version = Some(added.unwrap());
        } else {
            self.adjustments.push(recorded.id);
        }
        unit.commit().await.unwrap();
        version
    }

    /// How many adjustments take units out.
    pub(super) fn withdrawals(&self) -> usize {
        self.adjustments.len()
    }

    /// Settles the oldest parked message of the sale.
    pub(super) async fn settle(&mut self, replay: bool) -> Option<ParkedReply> {
        self.last = None;
        let parked = &self.desk.ports.parked;
        let waiting = parked.list(true, None, 100).await.unwrap().items;
        let ours = |voucher: Option<VoucherId>| voucher == Some(self.voucher.id);
        let message = waiting.iter().rev().find(|it| ours(it.voucher))?;
        assert_eq!(message.state, ParkedState::Parked);
        let settled = if replay {
            parked.replay(message.id).await
        } else {
            parked.discard(message.id, "model").await
        };
        Some(settled.unwrap())
    }

    pub(super) async fn order(&self, id: OrderId) -> Option<Trace> {
        let order = self.desk.ports.ledger.order(id).await.unwrap()?;
        assert_eq!(order.voucher, self.voucher.id);
        Some(trace(order))
    }

    /// Where an order waits.
    pub(super) async fn position(&self, id: OrderId) -> Option<u32> {
        let position = self.desk.ports.ledger.waiting_position(id).await;
        position.unwrap()
    }

    /// What a buyer and his key are answered once the sale has left.
    pub(super) async fn orders_on(
        &self,
        buyer: BuyerId,
        key: &IdempotencyKey,
    ) -> BTreeSet<OrderId> {
        let ledger = &self.desk.ports.ledger;
        let found = ledger.orders_on(self.voucher.id, buyer, Some(key)).await;
        found.unwrap().iter().map(|order| order.id).collect()
    }

    pub(super) async fn sums(&self) -> Sums {
        let tally = self.desk.tally(self.voucher.id).await;
        let unsettled = self.desk.ports.ledger.is_unsettled(self.voucher.id).await;
        (
            tally.total,
            tally.stock,
            tally.parked,
            tally.awaiting_payment,
            tally.paid,
            tally.version,
            unsettled.unwrap(),
        )
    }

    pub(super) async fn contents(&self) -> Contents {
        let snapshot = self.desk.snapshot(self.voucher.id).await;
        let mut contents = Contents::default();
        let [holders, seats, keys] = &mut contents;
        for chunk in snapshot.chunks {
            holders.extend(chunk.holders.iter().map(|it| format!("{it:?}")));
            seats.extend(chunk.seats.iter().map(|it| format!("{it:?}")));
            keys.extend(chunk.keys.iter().map(|it| format!("{it:?}")));
        }
        contents
    }
}

/// Units of every adjustment that takes units out.
pub(super) const WITHDRAWN: u32 = 2;

fn trace(order: Order) -> Trace {
    let key = order.key.map(|key| key.to_string());
    (
        order.buyer,
        order.quantity,
        order.amount.minor,
        key,
        order.ticket.map(Ticket::get),
        order.expires_at.is_some(),
        order.stage,
    )
}
