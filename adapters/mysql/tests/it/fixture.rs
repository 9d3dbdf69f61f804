//! A ledger with a published voucher, and the decisions a gate could send it.

use std::time::Duration;

use seckill_application::ports::{
    AdmissionBatch, Applied, BatchItem, EntryId, LedgerPorts, NewVoucher, PartitionHead,
    Unreadable, Verdict,
};
use seckill_domain::{
    BuyerId, Claim, Decision, LeftReason, Money, Order, OrderId, PartitionId, SaleStatus,
    SaleWindow, Sequence, Ticket, Timestamp, Voucher, VoucherId, VoucherTerms,
};
use seckill_mysql::{LedgerConfig, MySqlLedger};
use sqlx::{AssertSqlSafe, MySqlConnection, Row};

use crate::server::FreshDatabase;

/// Everything is in partition 0.
pub(crate) const PARTITION: PartitionId = PartitionId::new(0);

pub(crate) const WINDOW: Duration = Duration::from_mins(15);
pub(crate) const PRICE: u64 = 80;

pub(crate) struct Fixture {
    pub(crate) database: FreshDatabase,
    pub(crate) ledger: MySqlLedger,
    pub(crate) ports: LedgerPorts,
    pub(crate) voucher: VoucherId,
    pub(crate) head: PartitionHead,
}

pub(crate) fn terms(per_buyer_limit: u32) -> VoucherTerms {
    let money = |minor| Money {
        minor,
        currency: "CNY".parse().unwrap(),
    };
    VoucherTerms {
        title: "满一百减二十 🎟".to_owned(),
        description: None,
        face_value: money(100),
        price: money(PRICE),
        per_buyer_limit,
        window: SaleWindow {
            opens_at: Timestamp::from_millis(1_700_000_000_123),
            closes_at: Timestamp::from_millis(4_100_000_000_456),
        },
        payment_window: WINDOW,
        waitlist_capacity: 50,
    }
}

pub(crate) async fn connect(database: &FreshDatabase) -> MySqlLedger {
    let config = LedgerConfig {
        acquire_timeout: Duration::from_secs(10),
        ..LedgerConfig::new(&database.url)
    };
    MySqlLedger::connect(config).await.unwrap()
}

impl Fixture {
    /// A published voucher of `total` units with this limit, in a ledger of one partition.
    pub(crate) async fn new(total: u32, per_buyer_limit: u32) -> Self {
        let database = FreshDatabase::create().await;
        let ledger = connect(&database).await;
        ledger.migrate().await.unwrap();
        let ports = ledger.ports();
        ports.admissions.settle_partitions(1).await.unwrap();
        let voucher = publish(&ports, total, per_buyer_limit).await.id;
        let head = ports.admissions.take_over(PARTITION).await.unwrap();
        Self {
            database,
            ledger,
            ports,
            voucher,
            head,
        }
    }

    pub(crate) fn claim(&self, order: u64, buyer: u64, quantity: u32) -> Claim {
        Claim {
            order: OrderId::new(order),
            voucher: self.voucher,
            buyer: BuyerId::new(buyer),
            quantity,
            key: None,
        }
    }

    pub(crate) fn granted(&self, order: u64, buyer: u64, quantity: u32) -> Decision {
        Decision::Granted(self.claim(order, buyer, quantity))
    }

    pub(crate) fn promoted(&self, order: u64, buyer: u64, quantity: u32) -> Decision {
        Decision::Promoted(self.claim(order, buyer, quantity))
    }

    pub(crate) fn joined(&self, order: u64, buyer: u64, quantity: u32, ticket: u64) -> Decision {
        Decision::Joined {
            claim: self.claim(order, buyer, quantity),
            ticket: Ticket::new(ticket),
        }
    }

    pub(crate) fn left(&self, order: u64, buyer: u64, reason: LeftReason) -> Decision {
        Decision::Left {
            claim: self.claim(order, buyer, 1),
            reason,
        }
    }

    /// These decisions as the next batch, an entry each.
    pub(crate) fn batch(&self, decisions: Vec<Decision>) -> AdmissionBatch {
        batch(self.head, decisions)
    }

    /// Applies decisions as the next batch.
    pub(crate) async fn apply(&mut self, decisions: Vec<Decision>) -> Vec<Verdict> {
        let batch = self.batch(decisions);
        self.apply_batch(&batch).await
    }

    pub(crate) async fn apply_batch(&mut self, batch: &AdmissionBatch) -> Vec<Verdict> {
        match self.ports.admissions.apply(batch).await.unwrap() {
            Applied::Committed { verdicts, head, .. } => {
                assert_eq!(verdicts.len(), batch.items.len(), "a verdict for each item");
                assert_eq!(
                    head,
                    self.ports.admissions.head(PARTITION).await.unwrap(),
                    "the reply says where the ledger is"
                );
                self.head = head;
                verdicts
            }
            Applied::Stale(head) => panic!("stale: {head:?}, not {:?}", self.head),
        }
    }

    pub(crate) async fn order(&self, id: u64) -> Option<Order> {
        self.ports.ledger.order(OrderId::new(id)).await.unwrap()
    }

    pub(crate) async fn voucher(&self) -> Voucher {
        let found = self.ports.ledger.voucher(self.voucher).await.unwrap();
        found.unwrap()
    }

    /// One number from the database.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        let mut connection = self.database.connect().await;
        number(&mut connection, sql).await
    }

    pub(crate) async fn held_by(&self, buyer: u64) -> i64 {
        self.number(&format!(
            "SELECT CAST(COALESCE(SUM(units), 0) AS SIGNED) FROM holdings WHERE user_id = {buyer}"
        ))
        .await
    }

    /// Units are where they should be: total = stock + parked + live, and what each buyer is said to
    /// hold is what his live orders say.
    pub(crate) async fn assert_sound(&self) {
        let tally = self
            .ports
            .ledger
            .tally(self.voucher, self.voucher().await.version);
        let tally = tally.await.unwrap().unwrap();
        assert_eq!(
            tally.total,
            tally.stock + tally.parked + tally.awaiting_payment + tally.paid,
            "{tally:?}"
        );
        let strays = "SELECT COUNT(*) FROM (SELECT h.voucher_id, h.user_id FROM holdings h \
             LEFT JOIN orders o ON o.voucher_id = h.voucher_id AND o.user_id = h.user_id \
               AND o.status IN ('pending_payment', 'paid') \
             GROUP BY h.voucher_id, h.user_id, h.units \
             HAVING h.units <> COALESCE(SUM(o.quantity), 0)) strays";
        assert_eq!(
            self.number(strays).await,
            0,
            "holdings without their orders"
        );
    }
}

pub(crate) async fn number(connection: &mut MySqlConnection, sql: &str) -> i64 {
    let row = sqlx::query(AssertSqlSafe(sql))
        .fetch_one(connection)
        .await
        .unwrap();
    row.get(0)
}

pub(crate) async fn run(connection: &mut MySqlConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql))
        .execute(connection)
        .await
        .unwrap();
}

/// Creates and publishes a voucher.
pub(crate) async fn publish(ports: &LedgerPorts, total: u32, per_buyer_limit: u32) -> Voucher {
    let mut unit = ports.ledger.begin().await.unwrap();
    let new = NewVoucher {
        terms: terms(per_buyer_limit),
        total_units: total,
    };
    let id = unit.insert_voucher(&new).await.unwrap().id;
    let mut voucher = unit.lock_voucher(id).await.unwrap().unwrap();
    let now = unit.now().await.unwrap();
    voucher.publish(now).unwrap();
    assert_eq!(voucher.status, SaleStatus::Published);
    voucher.version = unit.save_voucher(&voucher, true).await.unwrap();
    unit.commit().await.unwrap();
    voucher
}

/// The entry of the decision with this number, a millisecond each.
pub(crate) fn entry(sequence: Sequence) -> EntryId {
    EntryId {
        millis: 1_790_000_000_000 + sequence.get(),
        counter: 0,
    }
}

pub(crate) fn batch(head: PartitionHead, decisions: Vec<Decision>) -> AdmissionBatch {
    let mut sequence = head.applied;
    let items = decisions
        .into_iter()
        .map(|decision| {
            sequence = sequence.next();
            BatchItem::Decision {
                sequence,
                entry: entry(sequence),
                decision,
            }
        })
        .collect();
    AdmissionBatch {
        partition: PARTITION,
        head,
        items,
        up_to: entry(sequence),
    }
}

pub(crate) fn unreadable(entry: EntryId) -> BatchItem {
    BatchItem::Unreadable {
        entry,
        body: Unreadable {
            raw: "{\"who\": \"knows\"}".to_owned(),
            reason: "no version".to_owned(),
            named: None,
        },
        taken: None,
    }
}
