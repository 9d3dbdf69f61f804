//! Where a fault strikes: servers of its own, a network that fails when told to, and everything that
//! was asked and told.

use std::sync::Arc;
use std::time::Duration;

use seckill_domain::{BuyerId, OrderId, VoucherId};
use seckill_tests::harness::{
    Event, Gate, HeldWriters, History, Ledger, Load, Offer, Process, Proxy, Purchase, Shop, Site,
    Told, Verdict, audit, eventually,
};
use seckill_tests::matrix::Row;

use crate::PROGRAM;

/// How long a lease lasts here: those who take over need not be waited for.
pub(crate) const LEASE: Duration = Duration::from_millis(1_500);
/// How long anything may take that has to come about by itself.
const COMES_ABOUT_WITHIN: Duration = Duration::from_secs(30);

/// One deployment, with a proxy in front of each of its servers.
pub(crate) struct Scene {
    pub(crate) site: Site,
    pub(crate) redis: Proxy,
    pub(crate) mysql: Proxy,
    pub(crate) history: Arc<History>,
}

/// A crowd that buys from one process.
pub(crate) struct Sale {
    pub(crate) process: Process,
    pub(crate) voucher: VoucherId,
    pub(crate) load: Load,
}

impl Sale {
    /// Waits until it has sold so many more.
    pub(crate) async fn sells(&self, more: usize) {
        sells(&self.load, more).await;
    }

    /// The crowd goes home, and the checker has its verdict.
    pub(crate) async fn judged(self, scene: &Scene) -> Verdict {
        self.load.stop().await;
        scene.judged(&self.process, &[self.voucher]).await
    }

    /// The crowd goes home, and every promise held.
    pub(crate) async fn ends(self, scene: &Scene, row: Row) {
        row.held(&self.judged(scene).await);
    }
}

impl Scene {
    /// The row that the current test is named after, and where it is driven. `None` if there are to
    /// be no servers.
    pub(crate) async fn begin() -> Option<(Row, Self)> {
        let row = Row::begin();
        let Some(scene) = Self::set().await else {
            row.skipped("only memory was asked for");
            return None;
        };
        Some((row, scene))
    }

    async fn set() -> Option<Self> {
        let site = Site::private(PROGRAM).await?;
        let redis = site.proxy_to_redis().await;
        let mysql = site.proxy_to_mysql().await;
        let lease = LEASE.as_millis().to_string();
        // One partition, so that everything passes through one stream; and no round of
        // reconciliation but the first, so that nothing is mended that should have held.
        let site = site
            .with_redis_behind(&redis)
            .with_mysql_behind(&mysql)
            .with("SECKILL_PARTITIONS", "1")
            .with("SECKILL_LEASE_TTL_MS", &lease)
            .with("SECKILL_RECONCILE_EVERY_S", "86400");
        Some(Self {
            site,
            redis,
            mysql,
            history: Arc::default(),
        })
    }

    /// Processes started from now on have this setting too.
    pub(crate) fn with(mut self, setting: &str, value: &str) -> Self {
        self.site = self.site.with(setting, value);
        self
    }

    pub(crate) async fn start(&self) -> Process {
        self.site.start().await
    }

    /// A client whose calls are written down.
    pub(crate) fn shop(&self, process: &Process) -> Shop {
        process.shop().writing(&self.history)
    }

    /// A look past the proxies.
    pub(crate) async fn ledger(&self) -> Ledger {
        self.site.ledger().await
    }

    /// A crowd.
    pub(crate) fn load(&self, processes: &[&Process], voucher: VoucherId, at_once: usize) -> Load {
        let shops: Vec<Shop> = processes.iter().map(|process| process.shop()).collect();
        Load::start(&shops, &self.history, voucher, at_once)
    }

    /// A process that sells, to so many at once.
    pub(crate) async fn busy(&self, units: u32, at_once: usize) -> Sale {
        self.busy_with(&Offer::of(units), at_once).await
    }

    /// The same, of a certain offer.
    pub(crate) async fn busy_with(&self, offer: &Offer, at_once: usize) -> Sale {
        let process = self.start().await;
        let voucher = process.shop().sell(offer).await;
        let load = self.load(&[&process], voucher, at_once);
        sells(&load, 50).await;
        Sale {
            process,
            voucher,
            load,
        }
    }

    /// A look past the proxies, on a connection of its own: Redis may have been away.
    pub(crate) async fn gate(&self) -> Gate {
        self.site.gate().await
    }

    /// What the gate decided and the ledger is not known to have, by the gate's own books.
    pub(crate) async fn in_flight(&self) -> i64 {
        self.gate().await.in_flight().await
    }

    /// Entries that were delivered to some consumer and not acknowledged.
    pub(crate) async fn pending(&self) -> u64 {
        self.gate().await.unacknowledged().await
    }

    /// Waits until nothing is on its way.
    pub(crate) async fn drained(&self) {
        drained(&self.gate().await).await;
    }

    /// Holds the writers until the crowd has so many orders in flight.
    pub(crate) async fn pile_up(&self, ledger: &Ledger, orders: i64) -> HeldWriters {
        let held = ledger.hold_writers().await;
        until("orders pile up", async || {
            let in_flight = self.in_flight().await;
            (in_flight >= orders)
                .then_some(())
                .ok_or(format!("{in_flight} of {orders}"))
        })
        .await;
        held
    }

    /// The checker's verdict, once all is quiet.
    pub(crate) async fn judged(&self, process: &Process, vouchers: &[VoucherId]) -> Verdict {
        let port = self.site.servers().redis.port();
        self.judged_at(process, vouchers, port).await
    }

    /// The same, of a deployment that has moved to another Redis.
    pub(crate) async fn judged_at(
        &self,
        process: &Process,
        vouchers: &[VoucherId],
        port: u16,
    ) -> Verdict {
        offered(process).await;
        drained(&self.site.gate_at(port).await).await;
        let ledger = self.site.ledger_beside(port).await;
        audit(&process.shop(), &self.history, vouchers, Some(&ledger)).await
    }
}

/// Waits until a process has answered nothing that the ledger has not: after a loss it offers that to
/// the gate again.
pub(crate) async fn offered(process: &Process) {
    let shop = process.shop();
    until("no answer is known to a process alone", async || {
        let remembered = shop.metric("seckill_remembered_answers").await;
        (remembered == Some(0.0))
            .then_some(())
            .ok_or(format!("{remembered:?}"))
    })
    .await;
}

/// How often a process noticed that Redis went back, or that it alone knows of an answer. What was
/// lost may be nothing that the ledger had: then the numbers go on, and only answers tell.
pub(crate) async fn noticed(shop: &Shop) -> f64 {
    let epochs = shop.metric("seckill_epochs_begun_total").await;
    let offered = shop.metric("seckill_answers_offered_total").await;
    epochs.expect("a metric") + offered.expect("a metric")
}

async fn drained(gate: &Gate) {
    until("stream and pending list drain", async || {
        let (in_flight, pending) = (gate.in_flight().await, gate.unacknowledged().await);
        let none = in_flight == 0 && pending == 0;
        none.then_some(())
            .ok_or(format!("{in_flight} in flight, {pending} pending"))
    })
    .await;
}

/// Looks until it is there, and panics if it does not come about.
pub(crate) async fn until<T, F, Fut>(what: &str, look: F) -> T
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, String>>,
{
    eventually(what, COMES_ABOUT_WITHIN, look).await
}

/// Waits until the crowd was told so many more times that it may have one.
pub(crate) async fn sells(load: &Load, more: usize) {
    let goal = load.granted() + more;
    eventually("people buy", COMES_ABOUT_WITHIN, async || {
        let granted = load.granted();
        (granted >= goal)
            .then_some(())
            .ok_or(format!("{granted} of {goal}"))
    })
    .await;
}

/// Purchases that were told to come back later.
pub(crate) fn put_off<'a>(events: impl IntoIterator<Item = &'a Event>) -> usize {
    let is_put_off = |event: &&Event| match &event.told {
        Told::Purchase(answer) => matches!(answer.code(), "unavailable" | "overloaded"),
        _ => false,
    };
    events.into_iter().filter(is_put_off).count()
}

/// Waits until buyers are told to come back later.
pub(crate) async fn refused(history: &History) {
    let before = put_off(&history.events());
    until("buyers are put off", async || {
        let more = put_off(&history.events()) - before;
        (more >= 5).then_some(()).ok_or(format!("{more}"))
    })
    .await;
}

/// Asks until there is an answer other than to come back later.
pub(crate) async fn insist(
    shop: &Shop,
    voucher: VoucherId,
    who: BuyerId,
    key: Option<&str>,
) -> Purchase {
    eventually("an answer", COMES_ABOUT_WITHIN, async || {
        match shop.try_buy(voucher, who, 1, key).await {
            Ok(answer) if !matches!(answer.code(), "unavailable" | "overloaded") => Ok(answer),
            other => Err(format!("{other:?}")),
        }
    })
    .await
}

/// The order that an answer names, whether it is new or the buyer had it.
pub(crate) fn order_of(answer: &Purchase) -> OrderId {
    answer
        .order()
        .unwrap_or_else(|| panic!("no order in {answer:?}"))
}
