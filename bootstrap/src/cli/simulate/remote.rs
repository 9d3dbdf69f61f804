//! A server's REST API, from outside.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Method, Request, StatusCode, Uri, header};
use hyper_util::rt::TokioIo;
use seckill_application::ports::{Clock, NewVoucher};
use seckill_domain::invariants::Tally;
use seckill_domain::{BuyerId, IdempotencyKey, OrderId, OrderStatus, Timestamp, VoucherId};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_util::task::TaskTracker;

use super::door::{Done, Seen, Told, Weighed, payment};
use crate::cli::token::{TokenRole, issue};
use crate::clock::SystemClock;

/// A server, and connections to it.
pub(super) struct Remote {
    authority: String,
    secret: String,
    clock: SystemClock,
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
    idle_max: usize,
    connections: TaskTracker,
}

/// Who calls.
#[derive(Debug, Clone, Copy)]
enum Caller {
    Buyer(BuyerId),
    Admin,
}

const ADMIN: u64 = 1;
const TOKEN_TTL: Duration = Duration::from_hours(1);
const PATIENCE: Duration = Duration::from_secs(10);

impl Remote {
    pub(super) fn new(url: &str, secret: &str, idle_max: usize) -> anyhow::Result<Self> {
        let uri: Uri = url.parse().context("--url must be http://host:port")?;
        if uri.scheme_str() != Some("http") {
            bail!("--url must be http://host:port");
        }
        let authority = uri.authority().context("--url must be http://host:port")?;
        let authority = match authority.port() {
            Some(_) => authority.to_string(),
            None => format!("{authority}:80"),
        };
        Ok(Self {
            authority,
            secret: secret.to_owned(),
            clock: SystemClock::new(),
            idle: Mutex::default(),
            idle_max,
            connections: TaskTracker::new(),
        })
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &self.clock
    }

    pub(super) async fn put_on_sale(&self, new: &NewVoucher) -> anyhow::Result<VoucherId> {
        let terms = &new.terms;
        let body = json!({
            "title": terms.title,
            "face_value_minor": terms.face_value.minor,
            "price_minor": terms.price.minor,
            "currency": terms.price.currency.as_str(),
            "total_units": new.total_units,
            "per_buyer_limit": terms.per_buyer_limit,
            "opens_at": rfc3339(terms.window.opens_at),
            "closes_at": rfc3339(terms.window.closes_at),
            "payment_window_s": terms.payment_window.as_secs(),
            "waitlist_capacity": terms.waitlist_capacity,
        });
        let path = "/v1/admin/vouchers";
        let (status, voucher) = self
            .call(Method::POST, path, Caller::Admin, Some(&body))
            .await?;
        let id = voucher["id"].as_str().and_then(|id| id.parse().ok());
        let (StatusCode::CREATED, Some(id)) = (status, id) else {
            bail!("the voucher was not created: {status} {voucher}");
        };
        let path = format!("/v1/admin/vouchers/{id}/publish");
        let (status, voucher) = self.call(Method::POST, &path, Caller::Admin, None).await?;
        if status != StatusCode::OK {
            bail!("the voucher was not published: {status} {voucher}");
        }
        Ok(id)
    }

    pub(super) async fn buy(
        &self,
        voucher: VoucherId,
        buyer: BuyerId,
        key: Option<&IdempotencyKey>,
    ) -> Told {
        let path = format!("/v1/vouchers/{voucher}/purchases");
        let key = key.map(|key| ("idempotency-key", key.as_str()));
        let request = self.request(Method::POST, &path, Caller::Buyer(buyer), None, key);
        let Ok((status, answer)) = self.answer(request).await else {
            return Told::Failed("no_answer");
        };
        let order = answer["order_id"].as_str().and_then(|id| id.parse().ok());
        match (answer["outcome"].as_str(), order) {
            (Some("granted"), Some(order)) => Told::Granted(order),
            (Some("waitlisted"), Some(order)) => Told::Waitlisted(order),
            (Some("already_held"), Some(order)) => Told::AlreadyHeld(order),
            _ if may_be_repeated(status) => Told::Failed(word(&answer)),
            _ => Told::Refused(word(&answer)),
        }
    }

    pub(super) async fn pay(&self, buyer: BuyerId, order: OrderId) -> Done {
        let body = json!({ "payment_id": payment(order) });
        let path = format!("/v1/orders/{order}/payments");
        self.command(&path, buyer, Some(&body)).await
    }

    pub(super) async fn cancel(&self, buyer: BuyerId, order: OrderId) -> Done {
        let path = format!("/v1/orders/{order}/cancellation");
        self.command(&path, buyer, None).await
    }

    async fn command(&self, path: &str, buyer: BuyerId, body: Option<&Value>) -> Done {
        let called = self
            .call(Method::POST, path, Caller::Buyer(buyer), body)
            .await;
        match called {
            Ok((StatusCode::OK, _)) => Done::Yes,
            Ok((_, answer)) if word(&answer) == "order_queued" => Done::NotYet,
            Ok((status, answer)) if may_be_repeated(status) => Done::Failed(word(&answer)),
            Ok((_, answer)) => Done::Refused(word(&answer)),
            Err(_) => Done::Failed("no_answer"),
        }
    }

    pub(super) async fn order(&self, buyer: BuyerId, order: OrderId) -> Option<Seen> {
        let path = format!("/v1/orders/{order}");
        let called = self
            .call(Method::GET, &path, Caller::Buyer(buyer), None)
            .await;
        match called {
            Ok((StatusCode::OK, order)) => seen(&order),
            _ => None,
        }
    }

    pub(super) async fn orders(
        &self,
        buyer: BuyerId,
        voucher: VoucherId,
    ) -> anyhow::Result<Vec<(OrderId, Seen)>> {
        let path = "/v1/orders?limit=100";
        let (status, page) = self
            .call(Method::GET, path, Caller::Buyer(buyer), None)
            .await?;
        let items = page["items"].as_array();
        let items = items.with_context(|| format!("no list of orders: {status} {page}"))?;
        let voucher = voucher.to_string();
        Ok(items
            .iter()
            .filter(|order| order["voucher_id"].as_str() == Some(&voucher))
            .filter_map(|order| Some((order["id"].as_str()?.parse().ok()?, seen(order)?)))
            .collect())
    }

    pub(super) async fn balance(&self, voucher: VoucherId) -> Option<Weighed> {
        let path = format!("/v1/admin/vouchers/{voucher}/balance");
        let (_, balance) = self
            .call(Method::GET, &path, Caller::Admin, None)
            .await
            .ok()?;
        let units = |name: &str| balance[name].as_i64();
        Some(Weighed {
            tally: Tally {
                total: units("total")?,
                free: units("free")?,
                in_flight: units("in_flight")?,
                parked: units("parked")?,
                awaiting_payment: units("awaiting_payment")?,
                paid: units("paid")?,
            },
            holds: balance["holds"].as_bool()?,
        })
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        caller: Caller,
        body: Option<&Value>,
    ) -> anyhow::Result<(StatusCode, Value)> {
        self.answer(self.request(method, path, caller, body, None))
            .await
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        caller: Caller,
        body: Option<&Value>,
        extra: Option<(&'static str, &str)>,
    ) -> anyhow::Result<Request<Full<Bytes>>> {
        let (user, role) = match caller {
            Caller::Buyer(buyer) => (buyer.get(), TokenRole::Buyer),
            Caller::Admin => (ADMIN, TokenRole::Admin),
        };
        let token = issue(&self.secret, user, role, self.clock.now(), TOKEN_TTL)?;
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, &self.authority)
            .header(header::AUTHORIZATION, format!("Bearer {token}"));
        if let Some((name, value)) = extra {
            request = request.header(name, value);
        }
        let body = match body {
            None => Bytes::new(),
            Some(body) => {
                request = request.header(header::CONTENT_TYPE, "application/json");
                Bytes::from(body.to_string())
            }
        };
        Ok(request.body(Full::new(body))?)
    }

    async fn answer(
        &self,
        request: anyhow::Result<Request<Full<Bytes>>>,
    ) -> anyhow::Result<(StatusCode, Value)> {
        let request = request?;
        let answered = async {
            let mut connection = self.connection().await?;
            let response = connection.send_request(request).await?;
            let status = response.status();
            let body = response.into_body().collect().await?.to_bytes();
            self.keep(connection);
            let body = if body.is_empty() {
                Value::Null
            } else {
                serde_json::from_slice(&body).context("no JSON in the answer")?
            };
            Ok((status, body))
        };
        let late = self.clock.sleep(PATIENCE);
        tokio::select! {
            answered = answered => answered,
            () = late => bail!("no answer in {} s", PATIENCE.as_secs()),
        }
    }

    async fn connection(&self) -> anyhow::Result<SendRequest<Full<Bytes>>> {
        loop {
            let kept = self
                .idle
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .pop();
            let Some(mut kept) = kept else { break };
            if kept.ready().await.is_ok() {
                return Ok(kept);
            }
        }
        let stream = TcpStream::connect(&self.authority).await;
        let stream = stream.with_context(|| format!("{} cannot be reached", self.authority))?;
        stream.set_nodelay(true)?;
        let (connection, driver) = handshake(TokioIo::new(stream)).await?;
        self.connections.spawn(driver);
        Ok(connection)
    }

    fn keep(&self, connection: SendRequest<Full<Bytes>>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < self.idle_max {
            idle.push(connection);
        }
    }
}

fn may_be_repeated(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}

/// The `code` of a problem, as one of the words that are known here.
fn word(problem: &Value) -> &'static str {
    const KNOWN: [&str; 18] = [
        "sold_out",
        "not_open",
        "paused",
        "limit_exceeded",
        "closed",
        "voucher_not_found",
        "validation_failed",
        "idempotency_key_reused",
        "unauthenticated",
        "forbidden",
        "rate_limited",
        "unavailable",
        "overloaded",
        "order_queued",
        "order_expired",
        "order_cancelled",
        "order_paid",
        "order_not_found",
    ];
    let code = problem["code"].as_str().unwrap_or_default();
    KNOWN
        .into_iter()
        .find(|known| *known == code)
        .unwrap_or("other")
}

fn seen(order: &Value) -> Option<Seen> {
    Some(Seen {
        status: match order["status"].as_str()? {
            "waiting" => OrderStatus::Waiting,
            "queued" => OrderStatus::Queued,
            "pending_payment" => OrderStatus::PendingPayment,
            "paid" => OrderStatus::Paid,
            "cancelled" => OrderStatus::Cancelled,
            "expired" => OrderStatus::Expired,
            "refunded" => OrderStatus::Refunded,
            "rejected" => OrderStatus::Rejected,
            "withdrawn" => OrderStatus::Withdrawn,
            "closed_out" => OrderStatus::ClosedOut,
            _ => return None,
        },
        quantity: u32::try_from(order["quantity"].as_u64()?).ok()?,
        ticket: None,
        expires_at: None,
    })
}

/// Whole seconds: enough for the window of a sale.
fn rfc3339(at: Timestamp) -> String {
    let seconds = at.as_millis().div_euclid(1_000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days to a date of the Gregorian calendar, counted from 0000-03-01, in eras of 400 years.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_dates() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (1_795_962_487_382, "2026-11-29T14:28:07Z"),
            (-1_000, "1969-12-31T23:59:59Z"),
        ] {
            assert_eq!(rfc3339(Timestamp::from_millis(millis)), text);
        }
    }
}
