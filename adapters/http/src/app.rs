//! One application: every request passes here once on its way in and once on its way out.

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderValue, Request, StatusCode, Version, header};
use axum::response::{IntoResponse, Response};
use axum::{BoxError, Router};
use futures::FutureExt as _;
use seckill_application::Effect;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service as _;
use tracing::Instrument as _;

use crate::auth::{NoticeKey, TokenVerifier};
use crate::context::{Api, Context, Ctx};
use crate::health::{Health, Vitals};
use crate::metrics::HttpMeters;
use crate::problem::Problem;
use crate::rate_limit::RateLimits;
use crate::report::FailureLog;
use crate::request_id::{REQUEST_ID, RequestIds};
use crate::router;
use crate::settings::HttpSettings;
use crate::streams::Streams;

/// Where a request comes from. [`serve`](crate::serve()) puts it into the request's extensions.
#[derive(Debug, Clone, Copy)]
pub struct PeerAddress(pub IpAddr);

/// The API. Cheap to clone.
#[derive(Clone)]
pub struct HttpApp(Arc<Inner>);

struct Inner {
    ctx: Ctx,
    router: Router,
    ids: RequestIds,
    failures: FailureLog,
    in_flight: Semaphore,
}

/// What answers even when the service is overloaded.
const ALWAYS_ANSWERED: [&str; 3] = ["/livez", "/readyz", "/metrics"];

impl HttpApp {
    /// Builds the application; starts nothing. `stopping` is cancelled when the process is about to
    /// stop: `/readyz` says so and [`serve`](crate::serve()) ends. Without a key for `notices`, the
    /// payment provider's notifications are answered with 503, so that it tries again.
    pub fn new(
        api: Api,
        vitals: Vitals,
        tokens: TokenVerifier,
        notices: Option<NoticeKey>,
        settings: HttpSettings,
        stopping: CancellationToken,
    ) -> Self {
        let (routes, document) = router::routes(settings.surface);
        let surface = settings.surface;
        let in_flight = Semaphore::new(settings.in_flight_max.min(Semaphore::MAX_PERMITS));
        let ctx = Arc::new(Context {
            rates: RateLimits::new(&settings.rates),
            meters: HttpMeters::new(&document),
            health: Health::new(vitals, &api.clock, stopping.clone()),
            streams: Streams::new(&settings),
            api,
            tokens,
            notices,
            settings,
            commands: TaskTracker::new(),
            stopping,
        });
        Self(Arc::new(Inner {
            router: router::assemble(routes, &document, surface).with_state(ctx.clone()),
            ctx,
            ids: RequestIds::new(),
            failures: FailureLog::default(),
            in_flight,
        }))
    }

    /// Answers a request. Every failure, a panic included, is answered with a problem.
    pub async fn answer<B>(&self, request: Request<B>) -> Response
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let inner = &*self.0;
        let clock = &*inner.ctx.api.clock;
        let begun = clock.monotonic();
        let id = inner.ids.of(request.headers());
        let method = request.method().clone();
        let uri = request.uri().clone();
        let span =
            tracing::debug_span!("http.request", %method, path = uri.path(), request_id = ?id);

        let mut response = inner.guarded(request.map(Body::new)).instrument(span).await;
        if let Some(problem) = problem_of(&mut response) {
            let id = id.to_str().unwrap_or_default();
            problem.write(&mut response, uri.path(), id);
            inner
                .failures
                .report(&problem, &method, &uri, id, clock.monotonic());
        }
        seal(&mut response, id);
        if inner.ctx.stopping.is_cancelled() {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        let meters = &inner.ctx.meters;
        let took = clock.monotonic().saturating_sub(begun);
        meters.request(&method, uri.path(), response.status(), took);
        response
    }

    /// Waits until every command that was begun has ended.
    pub async fn drain(&self) {
        self.0.ctx.commands.close();
        self.0.ctx.commands.wait().await;
    }

    /// Forgets what is no longer needed. [`serve`](crate::serve()) calls it now and then.
    pub(crate) fn tidy(&self) {
        self.0.ctx.rates.forget_the_quiet();
    }

    /// A name for what comes without a request that could be read.
    pub(crate) fn next_id(&self) -> HeaderValue {
        self.0.ids.next()
    }

    pub(crate) fn context(&self) -> &Ctx {
        &self.0.ctx
    }
}

impl Inner {
    /// Within the limits of address, load, time and sanity.
    async fn guarded(&self, request: Request<Body>) -> Response {
        let _permit = match self.admit(&request) {
            Ok(permit) => permit,
            Err(problem) => return problem.into_response(),
        };
        let effect = if request.method().is_safe() {
            Effect::None
        } else {
            Effect::Unknown
        };
        let mut router = self.router.clone();
        let work = AssertUnwindSafe(async move { router.call(request).await }).catch_unwind();
        match tokio::time::timeout(self.ctx.settings.request_deadline, work).await {
            Ok(Ok(Ok(response))) => response,
            Ok(Ok(Err(never))) => match never {},
            Ok(Err(_panic)) => Problem::Internal { effect }.into_response(),
            Err(_elapsed) => Problem::Unavailable {
                effect,
                retryable: true,
                cause: None,
            }
            .into_response(),
        }
    }

    fn admit(
        &self,
        request: &Request<Body>,
    ) -> Result<Option<tokio::sync::SemaphorePermit<'_>>, Problem> {
        // Whoever leaves it out, or gives two, is understood differently by different proxies.
        let hosts = request.headers().get_all(header::HOST).iter().count();
        if hosts != 1 && request.version() == Version::HTTP_11 {
            return Err(Problem::MalformedRequest);
        }
        if ALWAYS_ANSWERED.contains(&request.uri().path()) {
            return Ok(None);
        }
        if let Some(PeerAddress(address)) = request.extensions().get() {
            self.ctx.rates.address(*address)?;
        }
        match self.in_flight.try_acquire() {
            Ok(permit) => Ok(Some(permit)),
            Err(_) => Err(Problem::Overloaded),
        }
    }
}

/// The problem that a response carries, or that it is without saying so.
fn problem_of(response: &mut Response) -> Option<Problem> {
    let carried = response.extensions_mut().remove::<Problem>();
    carried.or_else(|| unnamed(response.status()))
}

/// Writes what every answer has: the request's id, and that nobody may keep or reinterpret it.
fn seal(response: &mut Response, id: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(REQUEST_ID, id);
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
}

/// Failures that come from below the handlers, such as an asset that does not exist.
fn unnamed(status: StatusCode) -> Option<Problem> {
    if status.is_server_error() {
        Some(Problem::Internal {
            effect: Effect::None,
        })
    } else if status.is_client_error() {
        Some(Problem::RouteNotFound)
    } else {
        None
    }
}
