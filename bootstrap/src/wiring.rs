//! Every use case, built once over the chosen adapters.

mod gate;
mod metrics;
mod parts;

use std::sync::Arc;

use seckill_application::ports::{Clock, HotPath, LedgerPorts};
use seckill_application::{
    AdjustStock, BrowseVouchers, CancelOrder, DraftVoucher, ExpireOrders, FollowOrder, GateUpkeep,
    HearPayment, LoadSale, Meters, PayOrder, PublishEvents, PurchaseVoucher, ReadBalance,
    ReadOrders, Reconcile, RecoverPartition, RefundOrder, RelayUpdates, RememberedAnswers,
    RetireSales, SendRefunds, SettleParked, SteerSale, WaitlistPlace, WantedSales,
};
use seckill_decorators::{BatchedGate, GateMeters, SoldOutGate};
use seckill_domain::Partitions;
use seckill_http::{Api, Vitals};
use seckill_mysql::LedgerMeters;

use crate::adapters::Adapters;
use gate::DecoratedGate;
pub use gate::GateSettings;
use parts::Parts;

/// The use cases, and the ports under them.
pub struct System {
    /// The hot store, with its gate decorated.
    pub hot: HotPath,
    /// The database.
    pub ledger: LedgerPorts,
    /// How many partitions there are.
    pub partitions: Partitions,
    /// The process's clock.
    pub clock: Arc<dyn Clock>,
    /// A buyer presses the button.
    pub purchase: Arc<PurchaseVoucher>,
    /// A buyer looks his orders up.
    pub orders: Arc<ReadOrders>,
    /// A buyer pays.
    pub pay: Arc<PayOrder>,
    /// A buyer gives an order up.
    pub cancel: Arc<CancelOrder>,
    /// A buyer asks for his place, or gives it up.
    pub place: Arc<WaitlistPlace>,
    /// What is on sale.
    pub browse: Arc<BrowseVouchers>,
    /// An administrator prepares a voucher.
    pub draft: Arc<DraftVoucher>,
    /// An administrator publishes, pauses, resumes, closes or amends a voucher.
    pub steer: Arc<SteerSale>,
    /// An administrator adds or takes out units.
    pub adjust: Arc<AdjustStock>,
    /// Where every unit is.
    pub balance: Arc<ReadBalance>,
    /// A buyer follows an order of his.
    pub follow: Arc<FollowOrder>,
    /// The payment provider says that money moved.
    pub hear: Arc<HearPayment>,
    /// An administrator refunds an order.
    pub refund: Arc<RefundOrder>,
    /// An administrator settles messages that could not be applied.
    pub parked: Arc<SettleParked>,
    /// Finds and mends differences between gate and ledger.
    pub reconcile: Arc<Reconcile>,
    /// Events leave the outbox.
    pub publish: Arc<PublishEvents>,
    /// Refunds reach the payment provider.
    pub send_refunds: Arc<SendRefunds>,
    /// Closed sales leave the gate.
    pub retire: Arc<RetireSales>,
    /// Loads sales into the gate.
    pub load: Arc<LoadSale>,
    /// Brings partitions of the hot store back.
    pub recover: Arc<RecoverPartition>,
    /// The gate follows the ledger.
    pub relay: Arc<RelayUpdates>,
    /// Payment windows end.
    pub expire: Arc<ExpireOrders>,
    /// Keeps the gate complete.
    pub upkeep: Arc<GateUpkeep>,
    /// Sales that somebody found missing at the gate.
    pub wanted: Arc<WantedSales>,
    /// Grants and places that the ledger is not known to have.
    pub remembered: Arc<RememberedAnswers>,
    /// Counters of the use cases.
    pub meters: Arc<Meters>,
    batches: Arc<BatchedGate>,
    sold_out: Arc<SoldOutGate>,
    gate_meters: Arc<GateMeters>,
    ledger_meters: Option<Arc<LedgerMeters>>,
    persistence: String,
}

impl System {
    /// Builds the use cases. Starts nothing. `process` is unique among all processes.
    pub fn wire(
        adapters: &Adapters,
        partitions: Partitions,
        decorations: GateSettings,
        clock: Arc<dyn Clock>,
        process: &str,
    ) -> Self {
        let gate = DecoratedGate::around(&adapters.hot, decorations, &clock);
        let (hot, ledger) = (&gate.hot, &adapters.ledger);
        let parts = Parts::new(hot, ledger, &clock, partitions);
        let Parts { relay, orders, .. } = &parts;
        let load = Arc::new(parts.load());
        let steer = Arc::new(parts.steer(&load));
        let balance = Arc::new(ReadBalance::new(hot, ledger, clock.clone()));
        let payments = &adapters.payments;
        Self {
            purchase: Arc::new(parts.purchase()),
            pay: Arc::new(PayOrder::new(
                ledger,
                payments.clone(),
                orders.clone(),
                clock.clone(),
            )),
            cancel: Arc::new(parts.cancel()),
            place: Arc::new(WaitlistPlace::new(
                hot,
                ledger,
                clock.clone(),
                parts.wanted.clone(),
            )),
            browse: Arc::new(BrowseVouchers::new(hot, ledger)),
            draft: Arc::new(DraftVoucher::new(ledger)),
            adjust: Arc::new(AdjustStock::new(hot, ledger, steer.clone(), clock.clone())),
            follow: Arc::new(FollowOrder::new(hot, ledger, orders.clone())),
            hear: Arc::new(HearPayment::new(ledger, orders.clone(), clock.clone())),
            refund: Arc::new(RefundOrder::new(ledger, relay.clone(), clock.clone())),
            parked: Arc::new(SettleParked::new(ledger, relay.clone(), clock.clone())),
            reconcile: Arc::new(parts.reconcile(&balance, process)),
            publish: Arc::new(parts.publish(process)),
            send_refunds: Arc::new(SendRefunds::new(ledger, payments.clone())),
            retire: Arc::new(parts.retire()),
            expire: Arc::new(parts.expire()),
            upkeep: Arc::new(parts.upkeep(&steer)),
            orders: orders.clone(),
            relay: relay.clone(),
            recover: parts.recover.clone(),
            wanted: parts.wanted.clone(),
            remembered: parts.remembered.clone(),
            meters: parts.meters.clone(),
            hot: hot.clone(),
            ledger: ledger.clone(),
            partitions,
            clock,
            balance,
            steer,
            load,
            batches: gate.batches.clone(),
            sold_out: gate.sold_out.clone(),
            gate_meters: gate.meters.clone(),
            ledger_meters: adapters.ledger_meters(),
            persistence: adapters.persistence.clone(),
        }
    }

    /// What the REST API offers.
    pub fn api(&self) -> Api {
        Api {
            purchase: self.purchase.clone(),
            orders: self.orders.clone(),
            pay: self.pay.clone(),
            cancel: self.cancel.clone(),
            place: self.place.clone(),
            browse: self.browse.clone(),
            draft: self.draft.clone(),
            steer: self.steer.clone(),
            adjust: self.adjust.clone(),
            balance: self.balance.clone(),
            follow: self.follow.clone(),
            hear: self.hear.clone(),
            refund: self.refund.clone(),
            money: self.ledger.money.clone(),
            reconcile: self.reconcile.clone(),
            parked: self.parked.clone(),
            clock: self.clock.clone(),
        }
    }

    /// What health and metrics look at.
    pub fn vitals(&self, backlog_max: u64) -> Vitals {
        let mut sources = vec![metrics::gate_source(
            self.gate_meters.clone(),
            self.batches.clone(),
            self.sold_out.clone(),
        )];
        sources.extend(self.ledger_meters.clone().map(metrics::ledger_source));
        Vitals {
            hot: self.hot.clone(),
            ledger: self.ledger.clone(),
            partitions: self.partitions,
            backlog_max,
            persistence: self.persistence.clone(),
            meters: self.meters.clone(),
            remembered: self.remembered.clone(),
            sources,
        }
    }
}
