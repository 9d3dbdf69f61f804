//! Every use case, built once over the chosen adapters.

use std::sync::Arc;

use seckill_application::ports::{Clock, HotPath, LedgerPorts};
use seckill_application::{
    AdjustStock, BrowseVouchers, CancelOrder, DraftVoucher, ExpireOrders, GateUpkeep, LoadSale,
    Meters, PayOrder, PurchaseVoucher, ReadBalance, ReadOrders, RecoverPartition, RelayUpdates,
    RememberedAnswers, SteerSale, WaitlistPlace, WantedSales,
};
use seckill_decorators::{
    BatchSettings, BatchedGate, GATE_LATENCY_BOUNDS_US, GateMeters, GateOutcome, MeteredGate,
};
use seckill_domain::Partitions;
use seckill_http::{Api, MetricSheet, MetricSource, Vitals};
use seckill_mysql::LedgerMeters;

use crate::adapters::Adapters;

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
    /// Grants that the ledger is not known to have.
    pub remembered: Arc<RememberedAnswers>,
    /// Counters of the use cases.
    pub meters: Arc<Meters>,
    batches: Arc<BatchedGate>,
    gate_meters: Arc<GateMeters>,
    ledger_meters: Option<Arc<LedgerMeters>>,
    persistence: String,
}

impl System {
    /// Builds the use cases. Starts nothing.
    pub fn wire(
        adapters: &Adapters,
        partitions: Partitions,
        batches: BatchSettings,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let gate_meters = Arc::new(GateMeters::default());
        let gate = adapters.hot.gate.clone();
        let gate = Arc::new(MeteredGate::new(gate, clock.clone(), gate_meters.clone()));
        let batches = Arc::new(BatchedGate::new(gate, clock.clone(), batches));
        let hot = HotPath {
            gate: batches.clone(),
            ..adapters.hot.clone()
        };
        let ledger = adapters.ledger.clone();

        let meters = Arc::new(Meters::default());
        let wanted = Arc::new(WantedSales::default());
        let remembered = Arc::new(RememberedAnswers::new(
            &hot,
            &ledger,
            clock.clone(),
            wanted.clone(),
            meters.clone(),
            partitions,
        ));
        let recover = Arc::new(RecoverPartition::new(&hot, &ledger, meters.clone()));
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
            clock.clone(),
            meters.clone(),
            partitions,
        ));
        let steer = Arc::new(SteerSale::new(
            &hot,
            &ledger,
            relay.clone(),
            load.clone(),
            clock.clone(),
        ));
        let orders = Arc::new(ReadOrders::new(&hot, &ledger, clock.clone()));
        Self {
            purchase: Arc::new(PurchaseVoucher::new(
                &hot,
                &ledger,
                clock.clone(),
                wanted.clone(),
                remembered.clone(),
            )),
            pay: Arc::new(PayOrder::new(&ledger, orders.clone(), clock.clone())),
            cancel: Arc::new(CancelOrder::new(
                &hot,
                &ledger,
                orders.clone(),
                relay.clone(),
                clock.clone(),
            )),
            place: Arc::new(WaitlistPlace::new(&hot, &ledger, clock.clone(), wanted.clone())),
            browse: Arc::new(BrowseVouchers::new(&hot, &ledger)),
            draft: Arc::new(DraftVoucher::new(&ledger)),
            adjust: Arc::new(AdjustStock::new(
                &hot,
                &ledger,
                steer.clone(),
                clock.clone(),
            )),
            balance: Arc::new(ReadBalance::new(&hot, &ledger, clock.clone())),
            expire: Arc::new(ExpireOrders::new(&ledger, relay.clone(), meters.clone())),
            upkeep: Arc::new(GateUpkeep::new(
                &hot,
                &ledger,
                steer.clone(),
                relay.clone(),
                wanted.clone(),
            )),
            ledger_meters: adapters.ledger_meters(),
            persistence: adapters.persistence.clone(),
            hot,
            ledger,
            partitions,
            clock,
            orders,
            steer,
            load,
            recover,
            relay,
            wanted,
            remembered,
            meters,
            batches,
            gate_meters,
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
            clock: self.clock.clone(),
        }
    }

    /// What health and metrics look at.
    pub fn vitals(&self, backlog_max: u64) -> Vitals {
        let mut sources = vec![gate_source(self.gate_meters.clone(), self.batches.clone())];
        sources.extend(self.ledger_meters.clone().map(ledger_source));
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

fn gate_source(meters: Arc<GateMeters>, batches: Arc<BatchedGate>) -> MetricSource {
    Box::new(move |sheet: &mut MetricSheet| {
        let seen = meters.snapshot();
        for (outcome, count) in GateOutcome::ALL.into_iter().zip(seen.outcomes) {
            sheet.counter(
                "seckill_gate_attempts",
                "Attempts by what the gate said; one purchase may ask more than once",
                &[("outcome", outcome.label())],
                count,
            );
        }
        sheet.latency(
            "seckill_gate_seconds",
            "How long a call of the gate took, for a whole batch of attempts",
            &[],
            &GATE_LATENCY_BOUNDS_US,
            &seen.buckets,
            seen.latency_us,
        );
        let turned_away = batches.tally().turned_away;
        let help = "Attempts that were not sent because too many waited, or for too long";
        sheet.counter("seckill_gate_turned_away", help, &[], turned_away);
    })
}

fn ledger_source(meters: Arc<LedgerMeters>) -> MetricSource {
    Box::new(move |sheet: &mut MetricSheet| {
        let counts = meters.counts();
        for (reason, count) in [
            ("deadlock", counts.deadlocks),
            ("lock_wait", counts.lock_wait_timeouts),
            ("statement_timeout", counts.statement_timeouts),
            ("batch_reexamined", counts.batches_reexamined),
        ] {
            let help = "Work of the database that had to be done again, by reason";
            sheet.counter(
                "seckill_database_retries",
                help,
                &[("reason", reason)],
                count,
            );
        }
        let (opened, dropped) = (counts.connects, counts.connections_dropped);
        let help = "Connections to the database that were opened";
        sheet.counter("seckill_database_connects", help, &[], opened);
        let help = "Connections to the database that were closed in the middle of their work";
        sheet.counter("seckill_database_connections_dropped", help, &[], dropped);
    })
}
