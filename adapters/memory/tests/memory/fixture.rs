//! One hot store and one ledger on a clock that stands still.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use seckill_application::ports::{
    AdmissionBatch, Admitted, Applied, BatchItem, EntryId, EpochBegun, HotPath, LedgerPorts,
    LoadBegun, LoadToken, NewVoucher, OpenSale, Opened, StreamReply, Verdict,
};
use seckill_domain::{
    Admission, Attempt, BuyerId, Claim, Decision, Epoch, GateVersion, Money, OrderId, PartitionId,
    Partitions, SaleStatus, SaleTerms, SaleWindow, Sequence, Timestamp, Voucher, VoucherId,
    VoucherTerms,
};
use seckill_memory::{HotPathOptions, MemoryHotPath, MemoryLedger, VirtualClock};

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const PARTITION: PartitionId = PartitionId::new(0);
pub(crate) const VOUCHER: VoucherId = VoucherId::new(1);
pub(crate) const EPOCH: Epoch = Epoch::new(1);
const START_MS: i64 = 1_800_000_000_000;

/// The answer of a call that has nothing to wait for.
pub(crate) fn now<T>(call: impl Future<Output = T>) -> T {
    call.now_or_never().expect("the call does not wait")
}

pub(crate) struct World {
    pub(crate) clock: Arc<VirtualClock>,
    pub(crate) hot: MemoryHotPath,
    pub(crate) gate: HotPath,
    pub(crate) ledger: MemoryLedger,
    pub(crate) book: LedgerPorts,
}

impl World {
    pub(crate) fn new() -> Self {
        let clock = Arc::new(VirtualClock::new(Timestamp::from_millis(START_MS)));
        let partitions = Partitions::new(NonZeroU16::MIN);
        let options = HotPathOptions {
            undo_depth: 64,
            ..HotPathOptions::new(partitions)
        };
        let hot = MemoryHotPath::new(options, clock.clone());
        let ledger = MemoryLedger::new(clock.clone(), partitions);
        Self {
            gate: hot.ports(),
            book: ledger.ports(),
            clock,
            hot,
            ledger,
        }
    }

    /// With one voucher open at the gate.
    pub(crate) fn on_sale(units: u32) -> Self {
        let world = Self::new();
        let begun = now(world
            .gate
            .loader
            .begin_epoch(PARTITION, EPOCH, Sequence::default()));
        assert_eq!(begun.unwrap(), EpochBegun::Begun);
        world.open(units);
        world
    }

    /// Loads the voucher with nobody in it.
    pub(crate) fn open(&self, units: u32) {
        let loader = &self.gate.loader;
        let token = LoadToken("loader".to_owned());
        let begun = now(loader.begin_load(VOUCHER, &token, SECOND)).unwrap();
        let LoadBegun::Begun { sequence, .. } = begun else {
            panic!("{begun:?}");
        };
        let sale = OpenSale {
            terms: sale_terms(units),
            free: units,
            version: GateVersion::default(),
            applied: sequence,
        };
        let opened = now(loader.open(VOUCHER, &token, &sale, 0)).unwrap();
        assert_eq!(opened, Opened::Opened);
    }

    /// One attempt, with the order id that is its buyer's number.
    pub(crate) fn buy(&self, buyer: u64) -> Admission {
        match self.attempt(buyer) {
            Admitted::Decided { mut admissions, .. } => admissions.remove(0),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn attempt(&self, buyer: u64) -> Admitted {
        now(self.gate.gate.admit(VOUCHER, &[attempt(buyer)])).unwrap()
    }

    pub(crate) fn free(&self) -> u32 {
        let facts = now(self.gate.gate.facts(&[VOUCHER])).unwrap();
        facts[0].expect("the voucher is open").pulse.free
    }

    /// Order ids in the stream, in its order.
    pub(crate) fn orders_in_stream(&self, epoch: Epoch) -> Vec<u64> {
        let read = self
            .gate
            .stream
            .read_after(PARTITION, epoch, EntryId::START, 512);
        let StreamReply::Entries(entries) = now(read).unwrap() else {
            return Vec::new();
        };
        let entries = entries.into_iter().filter_map(|it| it.body.ok());
        let decisions = entries.flat_map(|entry| entry.decisions);
        decisions
            .filter_map(|it| Some(it.claim()?.order.get()))
            .collect()
    }

    /// A published voucher in the ledger.
    pub(crate) fn publish(&self, units: u32) -> Voucher {
        let mut unit = now(self.book.ledger.begin()).unwrap();
        let draft = NewVoucher {
            terms: voucher_terms(),
            total_units: units,
        };
        let mut voucher = now(unit.insert_voucher(&draft)).unwrap();
        voucher.publish(now(unit.now()).unwrap()).unwrap();
        voucher.version = now(unit.save_voucher(&voucher, true)).unwrap();
        now(unit.commit()).unwrap();
        voucher
    }

    pub(crate) fn voucher(&self) -> Voucher {
        now(self.book.ledger.voucher(VOUCHER)).unwrap().unwrap()
    }

    /// The next decisions of the stream, as a batch.
    pub(crate) fn batch(&self, decisions: Vec<Decision>) -> AdmissionBatch {
        let head = now(self.book.admissions.head(PARTITION)).unwrap();
        let entry = EntryId {
            millis: START_MS.unsigned_abs(),
            counter: head.applied.get(),
        };
        let numbers = (head.applied.get() + 1..).map(Sequence::new);
        let items = numbers
            .zip(decisions)
            .map(|(sequence, decision)| BatchItem::Decision {
                sequence,
                entry,
                decision,
            });
        AdmissionBatch {
            partition: PARTITION,
            head,
            items: items.collect(),
            up_to: entry,
        }
    }

    /// Applies the next decisions of the stream.
    pub(crate) fn apply(&self, decisions: Vec<Decision>) -> Vec<Verdict> {
        let batch = self.batch(decisions);
        match now(self.book.admissions.apply(&batch)).unwrap() {
            Applied::Committed { verdicts, .. } => verdicts,
            Applied::Stale(head) => panic!("{head:?}"),
        }
    }
}

pub(crate) fn attempt(buyer: u64) -> Attempt {
    Attempt {
        order: OrderId::new(buyer),
        buyer: BuyerId::new(buyer),
        quantity: 1,
        key: None,
    }
}

/// What a buyer with this number claims with his first order.
pub(crate) fn claim(buyer: u64) -> Claim {
    Claim::of(VOUCHER, &attempt(buyer))
}

pub(crate) fn sale_terms(units: u32) -> SaleTerms {
    SaleTerms {
        status: SaleStatus::Published,
        opens_at: Timestamp::from_millis(0),
        closes_at: Timestamp::from_millis(i64::MAX),
        per_buyer_limit: 1,
        waitlist_capacity: 10,
        total_units: units,
    }
}

fn voucher_terms() -> VoucherTerms {
    let money = |minor| Money {
        minor,
        currency: "CNY".parse().unwrap(),
    };
    VoucherTerms {
        title: "Fifty off".to_owned(),
        description: None,
        face_value: money(5_000),
        price: money(4_000),
        per_buyer_limit: 1,
        window: SaleWindow {
            opens_at: Timestamp::from_millis(0),
            closes_at: Timestamp::from_millis(i64::MAX),
        },
        payment_window: 900 * SECOND,
        waitlist_capacity: 10,
    }
}
