//! A ledger with vouchers in it, and what can be asked of it in a line.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use seckill_application::ports::{
    AdmissionBatch, Applied, BatchItem, EntryId, LedgerPorts, LedgerTally, NewVoucher,
    PartitionHead, Release, SaleSnapshot, UnitOfWork, Verdict,
};
use seckill_domain::{
    BuyerId, Claim, Decision, GateVersion, Money, Order, OrderId, OrderStatus, PartitionId,
    PaymentId, SaleStatus, SaleWindow, Stage, Ticket, Timestamp, Voucher, VoucherId, VoucherTerms,
};

use super::LedgerHarness;
use super::stall::new_order;

/// What a unit costs, in the vouchers of these promises.
pub(super) const PRICE_MINOR: u64 = 8_000;
/// How long their orders may stay unpaid, unless told otherwise.
pub(super) const PAYMENT_WINDOW: Duration = Duration::from_mins(15);
/// A payment window to wait for; the shortest there is.
pub(super) const SHORT_WINDOW: Duration = Duration::from_secs(1);

/// A ledger, and how far this writer has applied its streams.
pub(super) struct Desk<'a> {
    pub(super) harness: &'a dyn LedgerHarness,
    pub(super) ports: LedgerPorts,
    heads: Mutex<HashMap<PartitionId, PartitionHead>>,
}

/// Settings of a voucher.
pub(super) fn terms(limit: u32) -> VoucherTerms {
    let money = |minor| Money {
        minor,
        currency: "CNY".parse().expect("a currency"),
    };
    VoucherTerms {
        title: "Hot pot for two, \u{706b}\u{9505} \u{1f372}".to_owned(),
        description: Some("Weekdays 'only'\nno \"takeaway\"".to_owned()),
        face_value: money(10_000),
        price: money(PRICE_MINOR),
        per_buyer_limit: limit,
        window: SaleWindow {
            opens_at: Timestamp::from_millis(1_700_000_000_123),
            closes_at: Timestamp::from_millis(4_000_000_000_456),
        },
        payment_window: PAYMENT_WINDOW,
        waitlist_capacity: 50,
    }
}

impl<'a> Desk<'a> {
    pub(super) fn at(harness: &'a dyn LedgerHarness) -> Self {
        Self {
            harness,
            ports: harness.ledger().clone(),
            heads: Mutex::default(),
        }
    }

    pub(super) async fn begin(&self) -> Box<dyn UnitOfWork> {
        self.ports.ledger.begin().await.unwrap()
    }

    pub(super) async fn now(&self) -> Timestamp {
        self.begin().await.now().await.unwrap()
    }

    pub(super) async fn draft(&self, total_units: u32, terms: VoucherTerms) -> Voucher {
        let mut unit = self.begin().await;
        let new = NewVoucher { terms, total_units };
        let voucher = unit.insert_voucher(&new).await.unwrap();
        unit.commit().await.unwrap();
        voucher
    }

    /// A voucher on sale, of version 0.
    pub(super) async fn voucher(&self, total_units: u32, limit: u32) -> Voucher {
        self.on_sale(total_units, terms(limit)).await
    }

    pub(super) async fn on_sale(&self, total_units: u32, terms: VoucherTerms) -> Voucher {
        let voucher = self.draft(total_units, terms).await;
        self.set_status(voucher.id, SaleStatus::Published, false)
            .await
    }

    pub(super) async fn set_status(
        &self,
        id: VoucherId,
        status: SaleStatus,
        follow: bool,
    ) -> Voucher {
        let mut unit = self.begin().await;
        let mut voucher = unit.lock_voucher(id).await.unwrap().expect("a voucher");
        voucher.status = status;
        voucher.version = unit.save_voucher(&voucher, follow).await.unwrap();
        unit.commit().await.unwrap();
        voucher
    }

    pub(super) async fn stored(&self, id: VoucherId) -> Voucher {
        let voucher = self.ports.ledger.voucher(id).await.unwrap();
        voucher.expect("a voucher")
    }

    pub(super) fn partition_of(&self, voucher: VoucherId) -> PartitionId {
        self.harness.partitions().of(voucher)
    }

    /// How far this writer has applied a partition.
    pub(super) async fn head(&self, partition: PartitionId) -> PartitionHead {
        let known = self.heads.lock().unwrap().get(&partition).copied();
        match known {
            Some(head) => head,
            None => self.ports.admissions.head(partition).await.unwrap(),
        }
    }

    /// The next decisions, each in an entry of its own that was written at the ledger's time.
    pub(super) async fn batch(
        &self,
        partition: PartitionId,
        decisions: Vec<Decision>,
    ) -> AdmissionBatch {
        let head = self.head(partition).await;
        let now = self.now().await;
        batch_from(head, partition, decisions, now)
    }

    /// Applies the next decisions, about vouchers of one partition.
    pub(super) async fn apply(&self, decisions: Vec<Decision>) -> Vec<Verdict> {
        let partition = self.partition_of(decisions[0].voucher());
        let batch = self.batch(partition, decisions).await;
        self.commit(&batch).await
    }

    /// Applies a batch that goes on from where this writer is.
    pub(super) async fn commit(&self, batch: &AdmissionBatch) -> Vec<Verdict> {
        let applied = self.ports.admissions.apply(batch).await.unwrap();
        let Applied::Committed { verdicts, head, .. } = applied else {
            panic!("not applied: {applied:?}");
        };
        assert_eq!(verdicts.len(), batch.items.len());
        self.heads.lock().unwrap().insert(batch.partition, head);
        verdicts
    }

    /// Applies one decision.
    pub(super) async fn apply_one(&self, decision: Decision) -> Verdict {
        let verdicts = self.apply(vec![decision]).await;
        verdicts[0]
    }

    /// Grants units, which the ledger must confirm.
    pub(super) async fn granted(&self, voucher: &Voucher, buyer: u64, quantity: u32) -> Claim {
        let claim = claim(voucher, buyer, quantity);
        let verdict = self.apply_one(Decision::Granted(claim.clone())).await;
        assert_eq!(verdict, Verdict::Confirmed, "{claim:?}");
        claim
    }

    /// Gives a place, with the turn `ticket`.
    pub(super) async fn joined(&self, voucher: &Voucher, buyer: u64, ticket: u64) -> Claim {
        let claim = claim(voucher, buyer, 1);
        let verdict = self.apply_one(joining(&claim, ticket)).await;
        assert_eq!(verdict, Verdict::Confirmed, "{claim:?}");
        claim
    }

    pub(super) async fn order(&self, id: OrderId) -> Order {
        let order = self.ports.ledger.order(id).await.unwrap();
        order.unwrap_or_else(|| panic!("the ledger has no order {id}"))
    }

    pub(super) async fn status(&self, claim: &Claim) -> OrderStatus {
        self.order(claim.order).await.status()
    }

    /// Moves an order into a stage, and its units back if they are not live any more.
    pub(super) async fn turn(&self, claim: &Claim, stage: Stage) -> GateVersion {
        let mut unit = self.begin().await;
        let mut order = unit
            .lock_order(claim.order)
            .await
            .unwrap()
            .expect("an order");
        let from = order.status();
        order.stage = stage;
        let to = order.status();
        assert_eq!(unit.save_orders(from, &[order]).await.unwrap(), 1);
        let mut version = GateVersion::default();
        if from.is_live() && !to.is_live() {
            version = unit
                .release(claim.voucher, &[release(claim)])
                .await
                .unwrap();
        }
        unit.commit().await.unwrap();
        version
    }

    pub(super) async fn cancel(&self, claim: &Claim) -> GateVersion {
        self.turn(claim, Stage::Cancelled).await
    }

    pub(super) async fn pay(&self, claim: &Claim) {
        let payment: PaymentId = "pay-1".parse().expect("a payment id");
        self.turn(claim, Stage::Paid { payment }).await;
    }

    /// The ledger's side of the balance, which must hold by itself at every moment.
    pub(super) async fn tally(&self, voucher: VoucherId) -> LedgerTally {
        let tally = self
            .ports
            .ledger
            .tally(voucher, GateVersion::default())
            .await;
        let tally = tally.unwrap().expect("a voucher");
        assert_eq!(
            tally.total,
            tally.stock + tally.parked + tally.awaiting_payment + tally.paid,
            "I1 within the ledger: {tally:?}"
        );
        let stored = self.stored(voucher).await;
        assert_eq!(stored.total_units, tally.total);
        let last = tally.stock + tally.parked;
        assert!(
            (tally.stock..=last).contains(&stored.stock_units),
            "but for what was parked while there was no stock: {stored:?}, {tally:?}"
        );
        tally
    }

    pub(super) async fn stock(&self, voucher: &Voucher) -> u32 {
        self.tally(voucher.id).await.stock
    }

    pub(super) async fn snapshot(&self, voucher: VoucherId) -> SaleSnapshot {
        let snapshot = self.ports.ledger.sale_snapshot(voucher).await.unwrap();
        snapshot.expect("a voucher")
    }
}

/// A new order's claim.
pub(super) fn claim(voucher: &Voucher, buyer: u64, quantity: u32) -> Claim {
    Claim {
        order: new_order(),
        voucher: voucher.id,
        buyer: BuyerId::new(buyer),
        quantity,
        key: None,
    }
}

/// A new order's claim, made with a key.
pub(super) fn keyed(voucher: &Voucher, buyer: u64, quantity: u32, key: &str) -> Claim {
    let key = Some(key.parse().expect("a key"));
    Claim {
        key,
        ..claim(voucher, buyer, quantity)
    }
}

pub(super) fn joining(claim: &Claim, ticket: u64) -> Decision {
    Decision::Joined {
        claim: claim.clone(),
        ticket: Ticket::new(ticket),
    }
}

pub(super) fn release(claim: &Claim) -> Release {
    Release {
        order: claim.order,
        buyer: claim.buyer,
        quantity: claim.quantity,
    }
}

/// A batch that goes on from `head`.
pub(super) fn batch_from(
    head: PartitionHead,
    partition: PartitionId,
    decisions: Vec<Decision>,
    now: Timestamp,
) -> AdmissionBatch {
    let mut sequence = head.applied;
    let mut entry = EntryId {
        millis: u64::try_from(now.as_millis()).expect("after 1970"),
        counter: 0,
    };
    if entry.millis <= head.entry.millis {
        entry = head.entry;
    }
    let items = decisions.into_iter().map(|decision| {
        sequence = sequence.next();
        entry.counter += 1;
        BatchItem::Decision {
            sequence,
            entry,
            decision,
        }
    });
    let items: Vec<BatchItem> = items.collect();
    AdmissionBatch {
        partition,
        head,
        items,
        up_to: entry,
    }
}
