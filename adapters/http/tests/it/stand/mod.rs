//! The whole service in one process, with its switches.

mod answer;
mod clock;
mod document;
mod request;
mod story;
mod workers;

use std::num::NonZeroU16;
use std::sync::Arc;

use seckill_application::ports::{Clock as _, HotPath, LeaseOwner, LedgerPorts};
use seckill_application::{
    AdjustStock, BrowseVouchers, CancelOrder, DraftVoucher, FollowOrder, HearPayment, LoadSale,
    Meters, PayOrder, PurchaseVoucher, ReadBalance, ReadOrders, Reconcile, RecoverPartition,
    RefundOrder, RelayUpdates, RememberedAnswers, SettleParked, SteerSale, WaitlistPlace,
    WantedSales,
};
use seckill_domain::Partitions;
use seckill_http::{Api, HttpApp, HttpSettings, MetricSource, NoticeKey, TokenVerifier, Vitals};
use seckill_memory::{HotPathOptions, MemoryHotPath, MemoryLedger, SandboxPayments};
use tokio_util::sync::CancellationToken;

pub(crate) use answer::Answer;
pub(crate) use clock::TestClock;
pub(crate) use document::openapi;
pub(crate) use request::{SECRET, bearer, token};
pub(crate) use story::{Next, Told};

/// Where the backlog is full.
pub(crate) const BACKLOG_MAX: u64 = 50;

/// A running service.
pub(crate) struct Stand {
    pub(crate) app: HttpApp,
    pub(crate) hot: MemoryHotPath,
    pub(crate) ledger: MemoryLedger,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) stopping: CancellationToken,
    workers: workers::Workers,
    parts: Parts,
}

/// What the workers need.
#[derive(Clone)]
struct Parts {
    hot: HotPath,
    ledger: LedgerPorts,
    partitions: Partitions,
    clock: Arc<TestClock>,
    recover: Arc<RecoverPartition>,
    load: Arc<LoadSale>,
    wanted: Arc<WantedSales>,
    meters: Arc<Meters>,
    remembered: Arc<RememberedAnswers>,
}

impl Parts {
    fn over(
        hot: HotPath,
        ledger: LedgerPorts,
        clock: &Arc<TestClock>,
        partitions: Partitions,
    ) -> Self {
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
        let recover = Arc::new(RecoverPartition::new(
            &hot,
            &ledger,
            remembered.clone(),
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
        Self {
            hot,
            ledger,
            partitions,
            clock: clock.clone(),
            recover,
            load,
            wanted,
            meters,
            remembered,
        }
    }
}

impl Stand {
    /// With the settings that the documentation promises, and every worker running.
    pub(crate) async fn new() -> Self {
        Self::with(HttpSettings::default()).await
    }

    /// With these settings, and every worker running.
    pub(crate) async fn with(settings: HttpSettings) -> Self {
        let verifier = TokenVerifier::hs256(SECRET.as_bytes()).unwrap();
        Self::build(settings, verifier, Vec::new()).await
    }

    /// With tokens of another kind.
    pub(crate) async fn verifying(verifier: TokenVerifier) -> Self {
        Self::build(HttpSettings::default(), verifier, Vec::new()).await
    }

    /// Without a secret for the payment provider.
    pub(crate) async fn without_notices(settings: HttpSettings) -> Self {
        let verifier = TokenVerifier::hs256(SECRET.as_bytes()).unwrap();
        Self::over(settings, verifier, None, Vec::new()).await
    }

    pub(crate) async fn build(
        settings: HttpSettings,
        verifier: TokenVerifier,
        sources: Vec<MetricSource>,
    ) -> Self {
        let notices = NoticeKey::new(SECRET.as_bytes()).unwrap();
        Self::over(settings, verifier, Some(notices), sources).await
    }

    async fn over(
        settings: HttpSettings,
        verifier: TokenVerifier,
        notices: Option<NoticeKey>,
        sources: Vec<MetricSource>,
    ) -> Self {
        let clock = Arc::new(TestClock::default());
        let partitions = Partitions::new(NonZeroU16::MIN);
        let options = HotPathOptions {
            backlog_limit: BACKLOG_MAX,
            ..HotPathOptions::new(partitions)
        };
        let hot = MemoryHotPath::new(options, clock.clone());
        let ledger = MemoryLedger::new(clock.clone(), partitions);
        let parts = Parts::over(hot.ports(), ledger.ports(), &clock, partitions);
        let vitals = Vitals {
            hot: parts.hot.clone(),
            ledger: parts.ledger.clone(),
            partitions,
            backlog_max: BACKLOG_MAX,
            persistence: "none: in memory".to_owned(),
            meters: parts.meters.clone(),
            remembered: parts.remembered.clone(),
            sources,
        };
        let stopping = CancellationToken::new();
        let api = api(&parts, &clock);
        let app = HttpApp::new(api, vitals, verifier, notices, settings, stopping.clone());
        let workers = workers::Workers::start(&parts).await;
        Self {
            app,
            hot,
            ledger,
            clock,
            stopping,
            workers,
            parts,
        }
    }

    /// Orders are not written down until the writer goes on.
    pub(crate) async fn pause_writer(&self) {
        self.workers.pause_writer().await;
    }

    pub(crate) fn resume_writer(&self) {
        self.workers.resume_writer(&self.parts);
    }

    /// Nobody loads sales that are missing.
    pub(crate) fn stop_loading(&self) {
        self.workers.stop_loading();
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.clock.now().as_millis()
    }
}

fn api(parts: &Parts, clock: &Arc<TestClock>) -> Api {
    let Parts {
        hot,
        ledger,
        load,
        wanted,
        meters,
        ..
    } = parts;
    let relay = Arc::new(RelayUpdates::new(
        hot,
        ledger,
        wanted.clone(),
        meters.clone(),
    ));
    let steer = Arc::new(SteerSale::new(
        hot,
        ledger,
        relay.clone(),
        load.clone(),
        clock.clone(),
    ));
    let orders = Arc::new(ReadOrders::new(
        hot,
        ledger,
        clock.clone(),
        parts.remembered.clone(),
    ));
    let balance = Arc::new(ReadBalance::new(hot, ledger, clock.clone()));
    Api {
        purchase: Arc::new(PurchaseVoucher::new(
            hot,
            ledger,
            clock.clone(),
            wanted.clone(),
            parts.remembered.clone(),
        )),
        pay: Arc::new(PayOrder::new(
            ledger,
            Arc::new(SandboxPayments::default()),
            orders.clone(),
            clock.clone(),
        )),
        cancel: Arc::new(CancelOrder::new(
            hot,
            ledger,
            orders.clone(),
            relay.clone(),
            clock.clone(),
        )),
        follow: Arc::new(FollowOrder::new(hot, ledger, orders.clone())),
        hear: Arc::new(HearPayment::new(ledger, orders.clone(), clock.clone())),
        refund: Arc::new(RefundOrder::new(ledger, relay.clone(), clock.clone())),
        money: ledger.money.clone(),
        reconcile: Arc::new(Reconcile::new(
            hot,
            ledger,
            balance.clone(),
            relay.clone(),
            wanted.clone(),
            clock.clone(),
            parts.partitions,
            LeaseOwner("stand".to_owned()),
        )),
        parked: Arc::new(SettleParked::new(ledger, relay, clock.clone())),
        orders,
        place: Arc::new(WaitlistPlace::new(
            hot,
            ledger,
            clock.clone(),
            wanted.clone(),
        )),
        browse: Arc::new(BrowseVouchers::new(hot, ledger)),
        draft: Arc::new(DraftVoucher::new(ledger)),
        adjust: Arc::new(AdjustStock::new(hot, ledger, steer.clone(), clock.clone())),
        steer,
        balance,
        clock: clock.clone(),
    }
}
