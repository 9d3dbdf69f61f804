//! What several use cases share, and those that take much of it.

use std::sync::Arc;

use crate::log_notifier::LogNotifier;
use seckill_application::ports::{Clock, HotPath, LeaseOwner, LedgerPorts, Notifier};
use seckill_application::{
    CancelOrder, ExpireOrders, GateUpkeep, LoadSale, Meters, PublishEvents, PurchaseVoucher,
    ReadBalance, ReadOrders, Reconcile, RecoverPartition, RelayUpdates, RememberedAnswers,
    RetireSales, SteerSale, WantedSales,
};
use seckill_domain::Partitions;

/// What use cases are built from.
pub(super) struct Parts<'a> {
    pub(super) hot: &'a HotPath,
    pub(super) ledger: &'a LedgerPorts,
    pub(super) clock: &'a Arc<dyn Clock>,
    pub(super) partitions: Partitions,
    pub(super) meters: Arc<Meters>,
    pub(super) wanted: Arc<WantedSales>,
    pub(super) remembered: Arc<RememberedAnswers>,
    pub(super) recover: Arc<RecoverPartition>,
    pub(super) relay: Arc<RelayUpdates>,
    pub(super) orders: Arc<ReadOrders>,
}

impl<'a> Parts<'a> {
    pub(super) fn new(
        hot: &'a HotPath,
        ledger: &'a LedgerPorts,
        clock: &'a Arc<dyn Clock>,
        partitions: Partitions,
    ) -> Self {
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
        let relay = RelayUpdates::new(hot, ledger, wanted.clone(), meters.clone());
        Self {
            recover: Arc::new(RecoverPartition::new(
                hot,
                ledger,
                remembered.clone(),
                meters.clone(),
            )),
            relay: Arc::new(relay),
            orders: Arc::new(ReadOrders::new(
                hot,
                ledger,
                clock.clone(),
                remembered.clone(),
            )),
            remembered,
            hot,
            ledger,
            clock,
            partitions,
            meters,
            wanted,
        }
    }

    pub(super) fn purchase(&self) -> PurchaseVoucher {
        PurchaseVoucher::new(
            self.hot,
            self.ledger,
            self.clock.clone(),
            self.wanted.clone(),
            self.remembered.clone(),
        )
    }

    pub(super) fn cancel(&self) -> CancelOrder {
        CancelOrder::new(
            self.hot,
            self.ledger,
            self.orders.clone(),
            self.relay.clone(),
            self.clock.clone(),
        )
    }

    pub(super) fn load(&self) -> LoadSale {
        LoadSale::new(
            self.hot,
            self.ledger,
            self.recover.clone(),
            self.clock.clone(),
            self.meters.clone(),
            self.partitions,
        )
    }

    pub(super) fn steer(&self, load: &Arc<LoadSale>) -> SteerSale {
        SteerSale::new(
            self.hot,
            self.ledger,
            self.relay.clone(),
            load.clone(),
            self.clock.clone(),
        )
    }

    pub(super) fn upkeep(&self, steer: &Arc<SteerSale>) -> GateUpkeep {
        GateUpkeep::new(
            self.hot,
            self.ledger,
            steer.clone(),
            self.relay.clone(),
            self.wanted.clone(),
        )
    }

    pub(super) fn expire(&self) -> ExpireOrders {
        ExpireOrders::new(
            self.hot,
            self.ledger,
            self.relay.clone(),
            self.meters.clone(),
        )
    }

    pub(super) fn retire(&self) -> RetireSales {
        RetireSales::new(
            self.hot,
            self.ledger,
            self.relay.clone(),
            self.recover.clone(),
            self.partitions,
        )
    }

    /// Events go to the log, and to whoever follows an order, in whichever process.
    pub(super) fn publish(&self, process: &str) -> PublishEvents {
        let log: Arc<dyn Notifier> = Arc::new(LogNotifier);
        let owner = LeaseOwner(format!("{process}:events"));
        PublishEvents::new(self.ledger, vec![log, self.hot.notifier.clone()], owner)
    }

    pub(super) fn reconcile(&self, balance: &Arc<ReadBalance>, process: &str) -> Reconcile {
        Reconcile::new(
            self.hot,
            self.ledger,
            balance.clone(),
            self.relay.clone(),
            self.wanted.clone(),
            self.clock.clone(),
            self.partitions,
            LeaseOwner(format!("{process}:reconcile")),
        )
    }
}
