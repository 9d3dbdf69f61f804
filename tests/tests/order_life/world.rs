//! The whole service in one process on a clock that stands still.

use std::num::NonZeroU16;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};
use futures::join;
use seckill_application::ports::{
    Clock, HotPath, LeaseOwner, LedgerPorts, NewVoucher, VoucherFilter,
};
use seckill_application::{
    AdjustStock, CancelOrder, DraftVoucher, ExpireOrders, FollowOrder, GateUpkeep, HearPayment,
    LoadSale, Meters, OrderWriter, PayOrder, PublishEvents, Purchase, PurchaseRequest,
    PurchaseVoucher, ReadBalance, ReadOrders, Reconcile, RecoverPartition, RefundOrder,
    RelayUpdates, RememberedAnswers, RetireSales, SendRefunds, SettleParked, SteerCommand,
    SteerReply, SteerSale, WaitlistPlace, WantedSales, WriterSettings,
};
use seckill_domain::{
    BuyerId, Order, OrderId, OrderStatus, PartitionId, Partitions, PaymentId, Timestamp, Voucher,
    VoucherId,
};
use seckill_memory::{HotPathOptions, MemoryHotPath, MemoryLedger, SandboxPayments, VirtualClock};
use tokio::sync::Mutex;

use crate::drive::drive;
pub(crate) use crate::offer::{Offer, PRICE_MINOR, money};
use crate::writers::Writers;

/// When every test begins.
pub(crate) const START: Timestamp = Timestamp::from_millis(1_796_000_000_000);
pub(crate) const PARTITION: PartitionId = PartitionId::new(0);
pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MINUTE: Duration = Duration::from_mins(1);
/// How long the sales of these tests last.
pub(crate) const SALE: Duration = Duration::from_hours(24 * 365);

/// Every use case over one hot store and one ledger.
pub(crate) struct World {
    pub(crate) clock: Arc<VirtualClock>,
    pub(crate) store: MemoryHotPath,
    pub(crate) book: MemoryLedger,
    pub(crate) sandbox: Arc<SandboxPayments>,
    pub(crate) hot: HotPath,
    pub(crate) ledger: LedgerPorts,
    pub(crate) purchase: PurchaseVoucher,
    pub(crate) orders: Arc<ReadOrders>,
    pub(crate) pay: PayOrder,
    pub(crate) cancel: CancelOrder,
    pub(crate) refund: RefundOrder,
    pub(crate) hear: HearPayment,
    pub(crate) send_refunds: SendRefunds,
    pub(crate) place: WaitlistPlace,
    pub(crate) expire: ExpireOrders,
    pub(crate) draft: DraftVoucher,
    pub(crate) steer: Arc<SteerSale>,
    pub(crate) adjust: AdjustStock,
    pub(crate) relay: Arc<RelayUpdates>,
    pub(crate) load: Arc<LoadSale>,
    pub(crate) balance: Arc<ReadBalance>,
    pub(crate) upkeep: GateUpkeep,
    pub(crate) parked: SettleParked,
    pub(crate) retire: RetireSales,
    pub(crate) follow: FollowOrder,
    pub(crate) wanted: Arc<WantedSales>,
    pub(crate) remembered: Arc<RememberedAnswers>,
    partitions: Partitions,
    writers: Writers,
    writer: Mutex<OrderWriter>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::that_remembers(0)
    }

    /// One whose hot store can lose so many of its latest writes.
    pub(crate) fn that_remembers(undo_depth: usize) -> Self {
        seckill_tests::stack::memory();
        let clock = Arc::new(VirtualClock::new(START));
        let partitions = Partitions::new(NonZeroU16::MIN);
        let options = HotPathOptions {
            undo_depth,
            ..HotPathOptions::new(partitions)
        };
        let store = MemoryHotPath::new(options, clock.clone());
        let book = MemoryLedger::new(clock.clone(), partitions);
        Self::wire(&clock, store, book, partitions)
    }

    fn wire(
        clock: &Arc<VirtualClock>,
        store: MemoryHotPath,
        book: MemoryLedger,
        partitions: Partitions,
    ) -> Self {
        let (hot, ledger) = (store.ports(), book.ports());
        let time: Arc<dyn Clock> = clock.clone();
        let sandbox = Arc::new(SandboxPayments::default());
        let meters = Arc::new(Meters::default());
        let wanted = Arc::new(WantedSales::default());
        let remembered = Arc::new(RememberedAnswers::new(
            &hot,
            &ledger,
            time.clone(),
            wanted.clone(),
            meters.clone(),
            partitions,
        ));
        let recover = Arc::new(RecoverPartition::new(
            &hot,
            &ledger,
            remembered.clone(),
            meters.clone(),
        ));
        let relay = Arc::new(RelayUpdates::new(
            &hot,
            &ledger,
            wanted.clone(),
            meters.clone(),
        ));
        let load = Arc::new(LoadSale::new(
            &hot,
            &ledger,
            recover.clone(),
            time.clone(),
            meters.clone(),
            partitions,
        ));
        let steer = Arc::new(SteerSale::new(
            &hot,
            &ledger,
            relay.clone(),
            load.clone(),
            time.clone(),
        ));
        let orders = Arc::new(ReadOrders::new(
            &hot,
            &ledger,
            time.clone(),
            remembered.clone(),
        ));
        let writers = Writers {
            recover: recover.clone(),
            wanted: wanted.clone(),
            meters: meters.clone(),
        };
        let writer = writers.next(&hot, &ledger, "writer");
        let writer = Mutex::new(drive(clock, writer).expect("a healthy start"));
        Self {
            purchase: PurchaseVoucher::new(
                &hot,
                &ledger,
                time.clone(),
                wanted.clone(),
                remembered.clone(),
            ),
            pay: PayOrder::new(&ledger, sandbox.clone(), orders.clone(), time.clone()),
            cancel: CancelOrder::new(&hot, &ledger, orders.clone(), relay.clone(), time.clone()),
            refund: RefundOrder::new(&ledger, relay.clone(), time.clone()),
            hear: HearPayment::new(&ledger, orders.clone(), time.clone()),
            send_refunds: SendRefunds::new(&ledger, sandbox.clone()),
            place: WaitlistPlace::new(&hot, &ledger, time.clone(), wanted.clone()),
            expire: ExpireOrders::new(&hot, &ledger, relay.clone(), meters.clone()),
            draft: DraftVoucher::new(&ledger),
            adjust: AdjustStock::new(&hot, &ledger, steer.clone(), time.clone()),
            balance: Arc::new(ReadBalance::new(&hot, &ledger, time.clone())),
            upkeep: GateUpkeep::new(&hot, &ledger, steer.clone(), relay.clone(), wanted.clone()),
            parked: SettleParked::new(&ledger, relay.clone(), time.clone()),
            retire: RetireSales::new(&hot, &ledger, relay.clone(), recover.clone(), partitions),
            follow: FollowOrder::new(&hot, &ledger, orders.clone()),
            clock: clock.clone(),
            store,
            book,
            sandbox,
            hot,
            ledger,
            orders,
            steer,
            relay,
            load,
            wanted,
            remembered,
            partitions,
            writers,
            writer,
        }
    }

    pub(crate) fn partitions(&self) -> Partitions {
        self.partitions
    }

    /// A reconciler of one process.
    pub(crate) fn reconcile(&self, owner: &str) -> Reconcile {
        Reconcile::new(
            &self.hot,
            &self.ledger,
            self.balance.clone(),
            self.relay.clone(),
            self.wanted.clone(),
            self.clock.clone(),
            self.partitions,
            LeaseOwner(owner.to_owned()),
        )
    }

    /// A relay of events of one process.
    pub(crate) fn publisher(&self, owner: &str) -> PublishEvents {
        let owner = LeaseOwner(owner.to_owned());
        PublishEvents::new(&self.ledger, vec![self.hot.notifier.clone()], owner)
    }

    /// The outcome of some work while the order writer and the loader of sales do theirs.
    pub(crate) fn run<T>(&self, work: impl Future<Output = T>) -> T {
        let workers = async { join!(self.write_orders(), self.load_sales()) };
        let all = async {
            match select(pin!(work), pin!(workers)).await {
                Either::Left((outcome, _)) => outcome,
                Either::Right(_) => unreachable!("workers never stop"),
            }
        };
        drive(&self.clock, all)
    }

    /// The outcome of some work while nobody else works.
    pub(crate) fn alone<T>(&self, work: impl Future<Output = T>) -> T {
        drive(&self.clock, work)
    }

    /// One step of the order writer, and of nobody else.
    pub(crate) fn write_once(&self) {
        let step = async { self.writer.lock().await.step().await };
        drive(&self.clock, step).expect("healthy stores");
    }

    async fn write_orders(&self) {
        let mut writer = self.writer.lock().await;
        loop {
            if writer.step().await.is_err() {
                self.clock.sleep(10 * MS).await;
            }
        }
    }

    async fn load_sales(&self) {
        loop {
            let voucher = self.wanted.next().await;
            // One that did not get through is asked for again by whoever needs it.
            let _ = self.load.run(voucher, Duration::ZERO).await;
        }
    }

    /// Lets the order writer finish what is there, the gate follow, and sales be loaded.
    pub(crate) fn settle(&self) {
        self.run(async {
            for _ in 0..1_000 {
                self.clock.sleep(25 * MS).await;
                self.upkeep.run().await.unwrap();
                self.relay.sweep().await.unwrap();
                if self.is_quiet().await {
                    return;
                }
            }
            panic!("something does not drain");
        });
    }

    async fn is_quiet(&self) -> bool {
        let backlog = self.hot.stream.backlog(PARTITION).await.unwrap();
        let updates = self.ledger.updates.waiting(1).await.unwrap();
        let on_sale = self
            .ledger
            .ledger
            .vouchers(VoucherFilter::OnSale, None, 100);
        let on_sale: Vec<VoucherId> = on_sale
            .await
            .unwrap()
            .items
            .iter()
            .map(|it| it.id)
            .collect();
        let facts = self.hot.gate.facts(&on_sale).await.unwrap();
        let loaded = facts.iter().all(Option::is_some);
        backlog.decisions == 0 && backlog.pending == 0 && updates.is_empty() && loaded
    }

    /// A sale that is open.
    pub(crate) fn sale(&self, offer: Offer) -> VoucherId {
        let id = self.new_draft(offer).id;
        self.steered(id, SteerCommand::Publish);
        id
    }

    pub(crate) fn new_draft(&self, offer: Offer) -> Voucher {
        let new = NewVoucher {
            terms: offer.terms(),
            total_units: offer.units,
        };
        self.run(self.draft.run(&new)).unwrap().unwrap()
    }

    pub(crate) fn steered(&self, id: VoucherId, command: SteerCommand) {
        let reply = self.run(self.steer.run(id, command)).unwrap();
        assert!(matches!(reply, SteerReply::Done(_)), "{reply:?}");
    }

    pub(crate) fn ask(&self, voucher: VoucherId, buyer: u64, quantity: u32) -> Purchase {
        let request = request(voucher, buyer, quantity);
        self.run(self.purchase.run(request)).unwrap()
    }

    /// An order that is granted; not in the ledger yet, perhaps.
    pub(crate) fn granted(&self, voucher: VoucherId, buyer: u64, quantity: u32) -> OrderId {
        match self.ask(voucher, buyer, quantity) {
            Purchase::Granted { order, .. } => order,
            other => panic!("buyer {buyer}: {other:?}"),
        }
    }

    /// An order that waits for payment.
    pub(crate) fn bought(&self, voucher: VoucherId, buyer: u64, quantity: u32) -> OrderId {
        let order = self.granted(voucher, buyer, quantity);
        self.settle();
        order
    }

    /// An order that waits for units.
    pub(crate) fn waiting(&self, voucher: VoucherId, buyer: u64, quantity: u32) -> OrderId {
        let order = match self.ask(voucher, buyer, quantity) {
            Purchase::Waitlisted {
                order,
                joined: true,
                ..
            } => order,
            other => panic!("buyer {buyer}: {other:?}"),
        };
        self.settle();
        order
    }

    pub(crate) fn order(&self, id: OrderId) -> Order {
        let order = self.alone(self.ledger.ledger.order(id)).unwrap();
        order.unwrap_or_else(|| panic!("the ledger has no order {id}"))
    }

    pub(crate) fn status(&self, id: OrderId) -> OrderStatus {
        self.order(id).status()
    }

    pub(crate) fn statuses(&self, ids: &[OrderId]) -> Vec<OrderStatus> {
        ids.iter().map(|id| self.status(*id)).collect()
    }

    pub(crate) fn free(&self, voucher: VoucherId) -> u32 {
        let facts = self.alone(self.hot.gate.facts(&[voucher])).unwrap();
        facts[0].expect("the sale is at the gate").pulse.free
    }

    /// Lets time go by with nobody at work but the writer and the loader.
    pub(crate) fn pass(&self, time: Duration) {
        self.run(self.clock.sleep(time));
    }

    /// Lets a long time go by with nobody at work.
    pub(crate) fn skip(&self, time: Duration) {
        self.alone(self.clock.sleep(time));
    }

    /// I1, I2 and I3 of a sale at rest.
    pub(crate) fn assert_sound(&self, voucher: VoucherId) {
        self.settle();
        let balance = self.run(self.balance.run(voucher)).unwrap();
        let balance = balance.expect("a voucher");
        assert!(balance.holds, "{balance:?}");
        assert_eq!(balance.tally.in_flight, 0, "{balance:?}");
    }
}

pub(crate) fn request(voucher: VoucherId, buyer: u64, quantity: u32) -> PurchaseRequest {
    PurchaseRequest {
        voucher,
        buyer: BuyerId::new(buyer),
        quantity,
        key: None,
    }
}

pub(crate) fn buyer(number: u64) -> BuyerId {
    BuyerId::new(number)
}

pub(crate) fn payment(id: &str) -> PaymentId {
    id.parse().expect("a payment id")
}

/// What tests look at and workers do now and then.
impl World {
    /// The order writer is gone, and another takes over.
    pub(crate) fn replace_writer(&self, consumer: &str) {
        self.alone(async {
            let next = self.writers.next(&self.hot, &self.ledger, consumer).await;
            *self.writer.lock().await = next.expect("the ports answer");
        });
    }

    /// An order writer beside the one at work, whose batches are of one decision.
    pub(crate) fn slow_writer(&self, consumer: &str) -> OrderWriter {
        self.small_writer(consumer, 1)
    }

    /// An order writer beside the one at work, with batches of so many decisions.
    pub(crate) fn small_writer(&self, consumer: &str, batch_min: usize) -> OrderWriter {
        let settings = WriterSettings {
            batch_min,
            block: SECOND,
            ..WriterSettings::default()
        };
        let (hot, ledger) = (&self.hot, &self.ledger);
        let writer = self.writers.next_with(hot, ledger, consumer, settings);
        self.alone(writer).expect("the ports answer")
    }

    pub(crate) fn clock_ms(&self) -> i64 {
        self.clock.now().as_millis()
    }

    /// Removes what is applied and old from the stream.
    pub(crate) fn trim(&self) {
        let trimmed = self.alone(async { self.writer.lock().await.trim().await });
        assert!(trimmed.unwrap() > 0, "nothing was old");
    }
}

impl World {
    /// The life of the partition.
    pub(crate) fn epoch(&self) -> seckill_domain::Epoch {
        let head = self.alone(self.ledger.admissions.head(PARTITION));
        head.unwrap().epoch
    }
}
