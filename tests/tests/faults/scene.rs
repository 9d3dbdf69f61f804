//! Where a fault strikes: servers of its own, a network that fails when told to, and everything that
//! was asked and told.

use std::sync::Arc;
use std::time::Duration;

use seckill_domain::{BuyerId, OrderId, VoucherId};
use seckill_tests::harness::{
    Event, Gate, HeldWriters, History, Ledger, Load, Process, Proxy, Purchase, Shop, Site, Told,
    Verdict, audit, eventually,
};

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

impl Scene {
    /// `None` if there are to be no servers.
    pub(crate) async fn set() -> Option<Self> {
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

    /// A look past the proxies, on a connection of its own: Redis may have been away.
    pub(crate) async fn gate(&self) -> Gate {
        self.site.gate().await
    }

    /// What the gate decided and the ledger is not known to have, by the gate's own books.
    pub(crate) async fn in_flight(&self) -> i64 {
        in_flight(&self.gate().await).await
    }

    /// Entries that were delivered to some consumer and not acknowledged.
    pub(crate) async fn pending(&self) -> u64 {
        pending(&self.gate().await).await
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

async fn in_flight(gate: &Gate) -> i64 {
    let metas = gate.keys().await.into_keys();
    let mut behind = 0;
    for meta in metas.filter(|name| name.ends_with(":meta")) {
        let mut counts = redis::cmd("HMGET");
        counts.arg(meta).arg(&["seq", "applied"]);
        let (seq, applied): (Option<i64>, Option<i64>) = gate.run(&counts).await;
        behind += seq.unwrap_or(0) - applied.unwrap_or(0);
    }
    behind
}

async fn pending(gate: &Gate) -> u64 {
    let mut pending = 0;
    for stream in gate.keys_of_type("stream").await {
        let groups = gate.pending(&stream).await;
        pending += groups.iter().map(|(_, count)| count).sum::<u64>();
    }
    pending
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

async fn drained(gate: &Gate) {
    until("stream and pending list drain", async || {
        let (in_flight, pending) = (in_flight(gate).await, pending(gate).await);
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
