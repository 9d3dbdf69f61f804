//! Where a fault strikes: servers of its own, a network that fails when told to, and everything that
//! was asked and told.

use std::sync::Arc;
use std::time::Duration;

use seckill_domain::{BuyerId, OrderId, VoucherId};
use seckill_tests::harness::{
    Demand, Event, Exercised, Gate, HeldWriters, History, Ledger, Load, Offer, Process, Proxy,
    Purchase, Shop, Site, Told, Verdict, audit, eventually,
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

/// Of each thing that a crowd of all kinds does, so much must have been done in a row.
const LIVELY: usize = 5;

/// A crowd that buys from one process.
pub(crate) struct Sale {
    pub(crate) process: Process,
    /// Of which there is plenty.
    pub(crate) voucher: VoucherId,
    pub(crate) demand: Demand,
    pub(crate) load: Load,
}

impl Sale {
    /// Waits until it has sold so many more.
    pub(crate) async fn sells(&self, more: usize) {
        sells(&self.load, more).await;
    }

    /// The crowd goes home, and the checker has its verdict.
    pub(crate) async fn judged(self, scene: &Scene) -> Verdict {
        let vouchers = self.demand.vouchers();
        self.load.stop().await;
        scene.judged(&self.process, &vouchers).await
    }

    /// The crowd goes home, every promise held, and each was made use of.
    pub(crate) async fn ends(self, scene: &Scene, row: Row) {
        let demand = self.demand;
        let verdict = self.judged(scene).await;
        held(scene, row, &verdict, demand);
    }
}

/// Every promise held, and each was made use of that a crowd with this demand makes use of.
pub(crate) fn held(scene: &Scene, row: Row, verdict: &Verdict, demand: Demand) {
    verdict.assert_none_rejected();
    held_after_a_loss(scene, row, verdict, demand);
}

/// The same after Redis has lost what it acknowledged. What was granted of the last units may be taken
/// back, and the buyer is told that it was lost. Whoever asked again before the loss was noticed, since
/// he had no answer, may have been given a second order, and keeps one of the two.
///
/// Until then the turn that somebody has lost may be given to another as well, which is documented: so
/// it is calm meanwhile.
pub(crate) fn held_after_a_loss(scene: &Scene, mut row: Row, verdict: &Verdict, demand: Demand) {
    let tried = Exercised::by(&scene.history.events(), &verdict.facts);
    demand.assert_tried(&tried, LIVELY);
    if demand.is_of_all_kinds() {
        row.tell(tried);
    }
    let orders = &verdict.facts.orders;
    for order in &verdict.rejected {
        let refused = &orders[order];
        let is_fair = match refused.reason.as_deref() {
            Some("lost") => demand.is_scarce(refused.voucher),
            Some("limit_reached") => orders.values().any(|other| {
                let same = (other.voucher, other.buyer) == (refused.voucher, refused.buyer);
                same && other.was_served()
            }),
            _ => false,
        };
        assert!(is_fair, "{order} was taken back: {refused:?}");
    }
    row.held_with_rejections(verdict);
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

    /// A crowd that only buys.
    pub(crate) fn load(&self, processes: &[&Process], voucher: VoucherId, at_once: usize) -> Load {
        self.load_of(processes, Demand::of(voucher), at_once)
    }

    /// A crowd that wants this.
    pub(crate) fn load_of(&self, processes: &[&Process], demand: Demand, at_once: usize) -> Load {
        let shops: Vec<Shop> = processes.iter().map(|process| process.shop()).collect();
        Load::of(&shops, &self.history, demand, at_once)
    }

    /// A process that sells, to so many at once, of all kinds.
    pub(crate) async fn busy(&self, units: u32, at_once: usize) -> Sale {
        self.busy_with(&Offer::of(units), at_once).await
    }

    /// The same, of a certain offer.
    pub(crate) async fn busy_with(&self, offer: &Offer, at_once: usize) -> Sale {
        self.opened(offer, None, at_once, Demand::of_all_kinds)
            .await
    }

    /// The same, to people who only buy.
    pub(crate) async fn selling(&self, units: u32, at_once: usize) -> Sale {
        let offer = Offer::of(units);
        self.opened(&offer, None, at_once, |demand| demand).await
    }

    /// The same, to people of all kinds, some of whom want what there is little of: up to three units
    /// each, and there is a line for it.
    pub(crate) async fn contested(&self, at_once: usize, want: fn(Demand) -> Demand) -> Sale {
        let little = Offer::of(24).limit(3).waitlist(8);
        self.opened(&Offer::of(20_000), Some(&little), at_once, want)
            .await
    }

    async fn opened(
        &self,
        offer: &Offer,
        little: Option<&Offer>,
        at_once: usize,
        want: fn(Demand) -> Demand,
    ) -> Sale {
        let process = self.start().await;
        let voucher = process.shop().sell(offer).await;
        let mut demand = want(Demand::of(voucher));
        if let Some(little) = little {
            demand = demand.and_scarce(process.shop().sell(little).await);
        }
        let load = self.load_of(&[&process], demand, at_once);
        sells(&load, 50).await;
        Sale {
            process,
            voucher,
            demand,
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

    /// How many decisions the partition has seen.
    pub(crate) async fn decided(&self) -> i64 {
        decided(&self.gate().await).await
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

/// How many decisions the partition has seen, by this Redis.
pub(crate) async fn decided(gate: &Gate) -> i64 {
    let keys = gate.keys().await;
    let meta = keys.keys().find(|name| name.ends_with(":meta"));
    let meta = meta.expect("the partition's books");
    gate.run(redis::cmd("HGET").arg(meta).arg("seq")).await
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
