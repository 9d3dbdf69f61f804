//! The use cases of one process.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::join;
use seckill_application::ports::{Clock, LeaseOwner, NewVoucher, Notifier};
use seckill_application::{
    AdjustStock, Balance, CancelOrder, CancelReply, DraftVoucher, ExpireOrders, GateUpkeep,
    HearPayment, LoadSale, Meters, OrderWriter, PayOrder, PublishEvents, Purchase, PurchaseRequest,
    PurchaseVoucher, ReadBalance, ReadOrders, Reconcile, RecoverPartition, RefundOrder,
    RelayUpdates, RememberedAnswers, RetireSales, SettleParked, SteerCommand, SteerReply,
    SteerSale, Step, WantedSales, WriterSettings,
};
use seckill_domain::invariants::Tally;
use seckill_domain::{
    BuyerId, Money, OrderId, OrderStatus, PartitionId, SaleWindow, Timestamp, Voucher, VoucherTerms,
};

use seckill_memory::SandboxPayments;

use super::Stores;
use super::bench::PARTITIONS;

/// Steps of a writer after which it should have nothing left to do.
const STEPS_MAX: usize = 100;

/// A voucher to put on sale.
#[derive(Debug, Clone, Copy)]
pub struct Offer {
    /// Units in all.
    pub units: u32,
    /// Most live units of a buyer.
    pub limit: u32,
    /// Most buyers who may wait.
    pub waitlist: u32,
}

/// One process of the service over some stores. Nothing in it runs by itself: a scenario takes every
/// step.
pub struct Branch {
    /// Its ports.
    pub stores: Stores,
    /// Adds and takes out units.
    pub adjust: AdjustStock,
    /// Gives an order up.
    pub cancel: CancelOrder,
    /// Ends payment windows.
    pub expire: ExpireOrders,
    /// Loads sales.
    pub load: LoadSale,
    /// Hears that money moved.
    pub hear: HearPayment,
    /// Reads orders.
    pub orders: Arc<ReadOrders>,
    /// Settles what could not be applied.
    pub parked: SettleParked,
    /// Pays.
    pub pay: PayOrder,
    /// Sends money and units back.
    pub refund: RefundOrder,
    /// Has the gate follow the ledger.
    pub relay: Arc<RelayUpdates>,
    /// Takes sales that are over out of the gate.
    pub retire: RetireSales,
    /// Publishes, pauses, resumes and closes.
    pub steer: Arc<SteerSale>,
    /// Keeps the gate complete.
    pub upkeep: GateUpkeep,
    draft: DraftVoucher,
    purchase: PurchaseVoucher,
    balance: Arc<ReadBalance>,
    recover: Arc<RecoverPartition>,
    wanted: Arc<WantedSales>,
    meters: Arc<Meters>,
}

impl Branch {
    /// Wires the use cases.
    pub fn over(stores: Stores) -> Self {
        let Stores { hot, ledger, clock } = &stores;
        let meters = Arc::new(Meters::default());
        let wanted = Arc::new(WantedSales::default());
        let remembered = Arc::new(RememberedAnswers::new(
            hot,
            ledger,
            clock.clone(),
            wanted.clone(),
            meters.clone(),
            PARTITIONS,
        ));
        let recover = Arc::new(RecoverPartition::new(
            hot,
            ledger,
            remembered.clone(),
            meters.clone(),
        ));
        let relay = RelayUpdates::new(hot, ledger, wanted.clone(), meters.clone());
        let relay = Arc::new(relay);
        let load = || {
            LoadSale::new(
                hot,
                ledger,
                recover.clone(),
                clock.clone(),
                meters.clone(),
                PARTITIONS,
            )
        };
        let (to_steer, steer_clock) = (Arc::new(load()), clock.clone());
        let steer = SteerSale::new(hot, ledger, relay.clone(), to_steer, steer_clock);
        let steer = Arc::new(steer);
        let orders = Arc::new(ReadOrders::new(
            hot,
            ledger,
            clock.clone(),
            remembered.clone(),
        ));
        let at_gate = (wanted.clone(), remembered);
        Self {
            adjust: AdjustStock::new(hot, ledger, steer.clone(), clock.clone()),
            cancel: CancelOrder::new(hot, ledger, orders.clone(), relay.clone(), clock.clone()),
            expire: ExpireOrders::new(hot, ledger, relay.clone(), meters.clone()),
            load: load(),
            hear: HearPayment::new(ledger, orders.clone(), clock.clone()),
            parked: SettleParked::new(ledger, relay.clone(), clock.clone()),
            pay: PayOrder::new(
                ledger,
                Arc::new(SandboxPayments::default()),
                orders.clone(),
                clock.clone(),
            ),
            draft: DraftVoucher::new(ledger),
            purchase: PurchaseVoucher::new(hot, ledger, clock.clone(), at_gate.0, at_gate.1),
            balance: Arc::new(ReadBalance::new(hot, ledger, clock.clone())),
            refund: RefundOrder::new(ledger, relay.clone(), clock.clone()),
            retire: RetireSales::new(hot, ledger, relay.clone(), recover.clone(), PARTITIONS),
            upkeep: GateUpkeep::new(hot, ledger, steer.clone(), relay.clone(), wanted.clone()),
            orders,
            relay,
            steer,
            recover,
            wanted,
            meters,
            stores,
        }
    }

    /// Puts a voucher on sale.
    pub async fn on_sale(&self, offer: Offer) -> Voucher {
        let draft = self.drafted(offer).await;
        self.steered(&draft, SteerCommand::Publish).await
    }

    /// Prepares a voucher.
    pub async fn drafted(&self, offer: Offer) -> Voucher {
        let new = NewVoucher {
            terms: terms(offer),
            total_units: offer.units,
        };
        let draft = self.draft.run(&new).await.unwrap();
        draft.expect("settings that fit")
    }

    /// Carries a command out that is possible.
    pub async fn steered(&self, voucher: &Voucher, command: SteerCommand) -> Voucher {
        match self.steer.run(voucher.id, command).await.unwrap() {
            SteerReply::Done(voucher) => voucher,
            reply => panic!("not done: {reply:?}"),
        }
    }

    /// A buyer presses the button.
    pub async fn buy(&self, voucher: &Voucher, buyer: u64, quantity: u32) -> Purchase {
        self.ask(voucher, buyer, quantity, None).await
    }

    /// A buyer presses the button, with a key.
    pub async fn buy_with_key(&self, voucher: &Voucher, buyer: u64, key: &str) -> Purchase {
        self.ask(voucher, buyer, 1, Some(key)).await
    }

    async fn ask(
        &self,
        voucher: &Voucher,
        buyer: u64,
        quantity: u32,
        key: Option<&str>,
    ) -> Purchase {
        let request = PurchaseRequest {
            voucher: voucher.id,
            buyer: BuyerId::new(buyer),
            quantity,
            key: key.map(|key| key.parse().expect("a key")),
        };
        self.purchase.run(request).await.unwrap()
    }

    /// A buyer gets one unit.
    pub async fn granted(&self, voucher: &Voucher, buyer: u64) -> OrderId {
        match self.buy(voucher, buyer, 1).await {
            Purchase::Granted { order, .. } => order,
            answer => panic!("not granted: {answer:?}"),
        }
    }

    /// A buyer gets a place on the waitlist.
    pub async fn waits(&self, voucher: &Voucher, buyer: u64, quantity: u32) -> OrderId {
        match self.buy(voucher, buyer, quantity).await {
            Purchase::Waitlisted { order, .. } => order,
            answer => panic!("does not wait: {answer:?}"),
        }
    }

    /// A buyer gives an order up that the ledger has.
    pub async fn give_up(&self, order: OrderId, buyer: u64) {
        let reply = self.cancel.run(order, BuyerId::new(buyer)).await.unwrap();
        assert!(matches!(reply, CancelReply::Cancelled(_)), "{reply:?}");
    }

    /// What a buyer reads of an order of his.
    pub async fn status(&self, order: OrderId, buyer: u64) -> Option<OrderStatus> {
        let view = self.orders.find(order, BuyerId::new(buyer)).await.unwrap();
        view.map(|view| view.order.status())
    }

    /// A buyer's live units in these orders, each of one unit and asked after once.
    pub async fn live_units(&self, buyer: u64, orders: &[OrderId]) -> u32 {
        let mut asked: Vec<OrderId> = orders.to_vec();
        asked.sort_unstable();
        asked.dedup();
        let mut units = 0;
        for order in asked {
            let status = self.status(order, buyer).await;
            units += u32::from(status.is_some_and(OrderStatus::is_live));
        }
        units
    }

    /// A writer with a fence of its own.
    pub async fn writer(&self, consumer: &str) -> OrderWriter {
        let settings = WriterSettings {
            block: Duration::from_millis(5),
            ..WriterSettings::default()
        };
        let writer = OrderWriter::take_over(
            PartitionId::new(0),
            consumer.to_owned(),
            settings,
            &self.stores.hot,
            &self.stores.ledger,
            self.recover.clone(),
            self.wanted.clone(),
            self.meters.clone(),
        );
        writer.await.unwrap()
    }

    /// A new writer brings everything into the ledger.
    pub async fn settle(&self) {
        drain(&mut self.writer("settler").await).await;
    }

    /// Loads the sales that somebody found missing, while a writer does its work.
    pub async fn load_wanted(&self, writer: &mut OrderWriter) {
        while let Some(voucher) = self.wanted.next().now_or_never() {
            let load = self.load.run(voucher, Duration::ZERO);
            beside(writer, load).await.unwrap();
        }
    }

    /// A reconciler with a clock of its own, since it pauses.
    pub fn reconcile(&self, owner: &str, clock: Arc<dyn Clock>) -> Reconcile {
        Reconcile::new(
            &self.stores.hot,
            &self.stores.ledger,
            self.balance.clone(),
            self.relay.clone(),
            self.wanted.clone(),
            clock,
            PARTITIONS,
            LeaseOwner(owner.to_owned()),
        )
    }

    /// A relay of events.
    pub fn publisher(&self, owner: &str, notifiers: Vec<Arc<dyn Notifier>>) -> PublishEvents {
        let owner = LeaseOwner(owner.to_owned());
        PublishEvents::new(&self.stores.ledger, notifiers, owner)
    }

    /// Where a voucher's units are.
    pub async fn tally(&self, voucher: &Voucher) -> Tally {
        self.balance(voucher).await.tally
    }

    /// Where a voucher's units are, and whether that adds up.
    pub async fn balance(&self, voucher: &Voucher) -> Balance {
        let balance = self.balance.run(voucher.id).await.unwrap();
        balance.expect("a voucher")
    }

    /// Units that the gate has free; the voucher may be out of the gate.
    pub async fn free_at_gate(&self, voucher: &Voucher) -> Option<u32> {
        let facts = self.stores.hot.gate.facts(&[voucher.id]).await.unwrap();
        facts[0].map(|facts| facts.pulse.free)
    }
}

/// Lets a writer work until it finds nothing to do.
pub async fn drain(writer: &mut OrderWriter) {
    for _ in 0..STEPS_MAX {
        match writer.step().await.unwrap() {
            Step::Applied(_) => {}
            Step::Idle => return,
            Step::Fenced => panic!("somebody else writes"),
        }
    }
    panic!("there is always more to apply");
}

/// The outcome of some work beside which a writer does its own.
pub async fn beside<T>(writer: &mut OrderWriter, work: impl Future<Output = T>) -> T {
    let is_done = Cell::new(false);
    let working = async {
        let outcome = work.await;
        is_done.set(true);
        outcome
    };
    let writing = async {
        while !is_done.get() {
            let step = writer.step().await.unwrap();
            assert_ne!(step, Step::Fenced, "somebody else writes");
        }
    };
    join!(working, writing).0
}

fn terms(offer: Offer) -> VoucherTerms {
    let money = |minor| Money {
        minor,
        currency: "CNY".parse().expect("a currency"),
    };
    VoucherTerms {
        title: "Hot pot for two".to_owned(),
        description: None,
        face_value: money(10_000),
        price: money(8_000),
        per_buyer_limit: offer.limit,
        window: SaleWindow {
            opens_at: Timestamp::from_millis(1_700_000_000_000),
            closes_at: Timestamp::from_millis(4_000_000_000_000),
        },
        payment_window: Duration::from_mins(15),
        waitlist_capacity: offer.waitlist,
    }
}
