//! What handlers work with.

use std::future::Future;
use std::sync::Arc;

use seckill_application::ports::{Clock, MoneyMovements};
use seckill_application::{
    AdjustStock, BrowseVouchers, CancelOrder, DraftVoucher, FollowOrder, HearPayment, PayOrder,
    PurchaseVoucher, ReadBalance, ReadOrders, Reconcile, RefundOrder, SettleParked, SteerSale,
    WaitlistPlace,
};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use crate::auth::{NoticeKey, TokenVerifier};
use crate::command::Command;
use crate::health::Health;
use crate::metrics::HttpMeters;
use crate::problem::Problem;
use crate::rate_limit::RateLimits;
use crate::settings::HttpSettings;
use crate::streams::Streams;

/// The use cases that the API offers.
pub struct Api {
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
    /// Money that goes back, for administrators to read.
    pub money: Arc<dyn MoneyMovements>,
    /// Finds and mends differences between gate and ledger.
    pub reconcile: Arc<Reconcile>,
    /// An administrator settles messages that could not be applied.
    pub parked: Arc<SettleParked>,
    /// The process's clock: for `server_time`, deadlines and tokens.
    pub clock: Arc<dyn Clock>,
}

/// What every handler can reach; one per application.
pub(crate) struct Context {
    pub(crate) api: Api,
    pub(crate) tokens: TokenVerifier,
    pub(crate) notices: Option<NoticeKey>,
    pub(crate) rates: RateLimits,
    pub(crate) meters: HttpMeters,
    pub(crate) health: Health,
    pub(crate) streams: Arc<Streams>,
    pub(crate) settings: HttpSettings,
    /// Commands that were begun.
    pub(crate) commands: TaskTracker,
    /// Cancelled when the process is about to stop.
    pub(crate) stopping: CancellationToken,
}

/// The context, as routers and handlers hold it.
pub(crate) type Ctx = Arc<Context>;

impl Context {
    /// Runs a command to its end, even when the client goes away meanwhile: what was granted to
    /// him must be remembered, whether or not he hears of it.
    pub(crate) async fn finish<T, E, F>(&self, command: F) -> Result<T, Problem>
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
        Problem: From<E>,
    {
        // Clients who go away leave commands behind that no request counts any more.
        if self.commands.len() >= self.settings.in_flight_max.saturating_mul(2) {
            return Err(Problem::Overloaded);
        }
        let done = Command::new(command.in_current_span(), &self.commands).await;
        done.map_err(Problem::from)
    }
}
