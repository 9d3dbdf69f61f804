//! One life of a process: its own use cases over its own ways to the stores. What it remembers dies
//! with it.

use std::sync::Arc;

use seckill_application::ports::{Clock, HotPath, LeaseOwner, LedgerPorts};
use seckill_application::{
    AdjustStock, CancelOrder, DraftVoucher, ExpireOrders, Fault, GateUpkeep, HearPayment,
    HearReply, LoadSale, Meters, PayOrder, PaymentNotice, PublishEvents, PurchaseVoucher,
    ReadBalance, ReadOrders, Reconcile, RecoverPartition, RefundOrder, RelayUpdates,
    RememberedAnswers, RetireSales, SendRefunds, SettleParked, SteerSale, WaitlistPlace,
    WantedSales,
};
use seckill_decorators::{BatchSettings, BatchedGate, SoldOutGate, SoldOutSettings};
use seckill_domain::Partitions;

use crate::bug::{self, Bug};
use crate::executor::Group;
use crate::faulty;
use crate::link::{Link, Nature, Store};
use crate::stores::{LocalClock, Stores};
use crate::watch::Watch;

/// The use cases of one life of a process, and the ports under them.
#[expect(missing_docs, reason = "each use case says what it is")]
pub struct Node {
    bug: Option<Bug>,
    pub watch: Arc<Watch>,
    pub nature: Nature,
    pub group: Group,
    pub clock: Arc<dyn Clock>,
    pub local_clock: Arc<LocalClock>,
    pub hot: HotPath,
    pub ledger: LedgerPorts,
    pub partitions: Partitions,
    pub purchase: PurchaseVoucher,
    pub orders: Arc<ReadOrders>,
    pub pay: PayOrder,
    pub cancel: CancelOrder,
    pub refund: RefundOrder,
    pub hear: HearPayment,
    pub send_refunds: SendRefunds,
    pub place: WaitlistPlace,
    pub expire: ExpireOrders,
    pub draft: DraftVoucher,
    pub steer: Arc<SteerSale>,
    pub adjust: AdjustStock,
    pub relay: Arc<RelayUpdates>,
    pub load: Arc<LoadSale>,
    pub recover: Arc<RecoverPartition>,
    pub upkeep: GateUpkeep,
    pub parked: SettleParked,
    pub retire: RetireSales,
    pub publish: PublishEvents,
    pub reconcile: Reconcile,
    pub wanted: Arc<WantedSales>,
    pub remembered: Arc<RememberedAnswers>,
    pub meters: Arc<Meters>,
}

impl Node {
    /// A process that has just started.
    pub fn start(nature: &Nature, stores: &Stores, watch: &Arc<Watch>, group: Group) -> Self {
        let link = |store| {
            Arc::new(Link {
                nature: nature.clone(),
                process: group,
                store,
            })
        };
        let local_clock = LocalClock::new(nature.clock.clone());
        let clock: Arc<dyn Clock> = local_clock.clone();
        let partitions = stores.partitions;
        let bug = stores.bug;
        let hot = faulty::hot(&bug::hot(bug, stores), &link(Store::Hot), watch);
        let hot = decorated(bug::in_process(bug, hot), &clock);
        let ledger = bug::ledger(bug, stores);
        let ledger = faulty::ledger(&ledger, &link(Store::Ledger), watch);
        let payments = faulty::payments(&stores.payments(), &link(Store::Provider), watch);
        let (hot, ledger) = (&hot, &ledger);
        let meters = Arc::new(Meters::default());
        let wanted = Arc::new(WantedSales::default());
        let remembered = Arc::new(RememberedAnswers::new(
            hot,
            ledger,
            clock.clone(),
            wanted.clone(),
            meters.clone(),
            partitions,
        ));
        let recover = RecoverPartition::new(hot, ledger, remembered.clone(), meters.clone());
        let recover = Arc::new(recover);
        let relay = RelayUpdates::new(hot, ledger, wanted.clone(), meters.clone());
        let relay = Arc::new(relay);
        let for_loading = bug::for_loading(bug, ledger.clone());
        let load = Arc::new(LoadSale::new(
            hot,
            &for_loading,
            recover.clone(),
            clock.clone(),
            meters.clone(),
            partitions,
        ));
        let (time, followed) = (clock.clone(), relay.clone());
        let steer = Arc::new(SteerSale::new(hot, ledger, followed, load.clone(), time));
        let (time, answers) = (clock.clone(), remembered.clone());
        let orders = Arc::new(ReadOrders::new(hot, ledger, time, answers));
        let paying = &bug::for_paying(bug, ledger.clone());
        let compared = bug::for_reconciling(bug, hot.clone(), ledger.clone());
        let balance = ReadBalance::new(&compared.0, &compared.1, clock.clone());
        let owner = |of: &str| LeaseOwner(format!("{}:{of}", group.0));
        Self {
            purchase: PurchaseVoucher::new(
                hot,
                ledger,
                clock.clone(),
                wanted.clone(),
                remembered.clone(),
            ),
            pay: PayOrder::new(paying, payments.clone(), orders.clone(), clock.clone()),
            cancel: CancelOrder::new(hot, paying, orders.clone(), relay.clone(), clock.clone()),
            refund: RefundOrder::new(ledger, relay.clone(), clock.clone()),
            hear: HearPayment::new(paying, orders.clone(), clock.clone()),
            send_refunds: SendRefunds::new(ledger, payments),
            place: WaitlistPlace::new(hot, ledger, clock.clone(), wanted.clone()),
            expire: ExpireOrders::new(hot, ledger, relay.clone(), meters.clone()),
            draft: DraftVoucher::new(ledger),
            adjust: AdjustStock::new(hot, ledger, steer.clone(), clock.clone()),
            upkeep: GateUpkeep::new(hot, ledger, steer.clone(), relay.clone(), wanted.clone()),
            parked: SettleParked::new(ledger, relay.clone(), clock.clone()),
            retire: RetireSales::new(hot, ledger, relay.clone(), recover.clone(), partitions),
            publish: PublishEvents::new(ledger, vec![hot.notifier.clone()], owner("events")),
            reconcile: Reconcile::new(
                &compared.0,
                &compared.1,
                Arc::new(balance),
                relay.clone(),
                wanted.clone(),
                clock.clone(),
                partitions,
                owner("reconcile"),
            ),
            bug,
            watch: watch.clone(),
            nature: nature.clone(),
            group,
            local_clock,
            hot: hot.clone(),
            ledger: ledger.clone(),
            partitions,
            orders,
            steer,
            relay,
            load,
            recover,
            wanted,
            remembered,
            meters,
            clock,
        }
    }
}

impl Node {
    /// Hears of a payment.
    pub async fn hear_of(&self, notice: PaymentNotice) -> Result<HearReply, Fault> {
        let notice = bug::notice(self.bug, &self.ledger, notice).await?;
        self.hear.run(&notice).await
    }
}

/// The gate as the product wraps it.
fn decorated(mut hot: HotPath, clock: &Arc<dyn Clock>) -> HotPath {
    let batches = BatchSettings::default();
    hot.gate = Arc::new(BatchedGate::new(hot.gate, clock.clone(), batches));
    // Eager: there are few buyers.
    let sold_out = SoldOutSettings {
        rejections_min: 1,
        ..SoldOutSettings::default()
    };
    hot.gate = Arc::new(SoldOutGate::new(hot.gate, clock.clone(), sold_out));
    hot
}
