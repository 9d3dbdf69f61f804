//! Asking the API.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, Request, header};
use http_body_util::BodyExt as _;
use jsonwebtoken::{EncodingKey, Header};
use seckill_application::ports::Clock as _;
use seckill_domain::Timestamp;
use seckill_http::NoticeKey;
use serde_json::{Value, json};

use super::{Answer, Stand};

/// The secret of the tokens.
pub(crate) const SECRET: &str = "a secret of more than thirty-two bytes, for tests";
/// The administrator.
const ADMIN: u64 = 1;

/// A signed token with these claims.
pub(crate) fn token(claims: &Value) -> String {
    let key = EncodingKey::from_secret(SECRET.as_bytes()).unwrap();
    jsonwebtoken::encode(&Header::default(), claims, &key).unwrap()
}

/// The value of an `Authorization` header.
pub(crate) fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

/// A request while it is being put together.
pub(crate) struct Call<'a> {
    stand: &'a Stand,
    method: Method,
    path: String,
    headers: HeaderMap,
    body: Body,
}

impl Stand {
    pub(crate) fn call(&self, method: &str, path: &str) -> Call<'_> {
        Call {
            stand: self,
            method: method.parse().unwrap(),
            path: path.to_owned(),
            headers: HeaderMap::new(),
            body: Body::empty(),
        }
    }

    pub(crate) fn get(&self, path: &str) -> Call<'_> {
        self.call("GET", path)
    }

    pub(crate) fn post(&self, path: &str) -> Call<'_> {
        self.call("POST", path)
    }

    /// A token of a user, good for an hour.
    pub(crate) fn token_of(&self, user: u64, role: &str) -> String {
        let exp = self.clock.now().as_millis() / 1_000 + 3_600;
        token(&json!({"sub": user.to_string(), "role": role, "exp": exp}))
    }

    /// A voucher with some settings changed, as a draft.
    pub(crate) async fn draft(&self, changes: Value) -> String {
        let answer = self
            .post("/v1/admin/vouchers")
            .admin()
            .json(&self.terms(&changes))
            .answer()
            .await;
        answer.is(201);
        answer.body["id"].as_str().unwrap().to_owned()
    }

    /// A voucher on sale.
    pub(crate) async fn voucher(&self, changes: Value) -> String {
        let id = self.draft(changes).await;
        let path = format!("/v1/admin/vouchers/{id}/publish");
        self.post(&path).admin().answer().await.is(200);
        id
    }

    /// Settings that fit, with some changed.
    pub(crate) fn terms(&self, changes: &Value) -> Value {
        let mut terms = json!({
            "title": "Dinner for two", "face_value_minor": 10_000, "price_minor": 8_000,
            "currency": "CNY", "total_units": 10,
            "opens_at": self.time(-5_000), "closes_at": self.time(3_600_000),
        });
        for (name, value) in changes.as_object().unwrap() {
            terms[name] = value.clone();
        }
        terms
    }

    /// A time some milliseconds from now.
    pub(crate) fn time(&self, from_now_ms: i64) -> String {
        rfc3339(self.now_ms() + from_now_ms)
    }

    pub(crate) async fn buy(&self, voucher: &str, user: u64) -> Answer {
        self.purchase(voucher, user).answer().await
    }

    pub(crate) fn purchase(&self, voucher: &str, user: u64) -> Call<'_> {
        self.post(&format!("/v1/vouchers/{voucher}/purchases"))
            .user(user)
    }

    /// Buys, and waits until the ledger has the order. Returns its id.
    pub(crate) async fn order(&self, voucher: &str, user: u64) -> String {
        let bought = self.buy(voucher, user).await;
        bought.is(202);
        let order = bought.text("order_id");
        self.settled(&order, user).await;
        order
    }

    pub(crate) async fn steer(&self, voucher: &str, verb: &str) -> Answer {
        let path = format!("/v1/admin/vouchers/{voucher}/{verb}");
        self.post(&path).admin().answer().await
    }

    pub(crate) async fn balance(&self, voucher: &str) -> Answer {
        let path = format!("/v1/admin/vouchers/{voucher}/balance");
        self.get(&path).admin().answer().await
    }

    pub(crate) async fn pay(&self, order: &str, user: u64, payment: &str) -> Answer {
        let path = format!("/v1/orders/{order}/payments");
        let body = json!({"payment_id": payment});
        self.post(&path).user(user).json(&body).answer().await
    }

    /// What the payment provider says.
    pub(crate) async fn notify(&self, payment: &str, order: &str, amount_minor: u64) -> Answer {
        let body = json!({"payment_id": payment, "order_id": order, "amount_minor": amount_minor,
            "currency": "CNY"});
        self.notice(&body.to_string()).answer().await
    }

    /// A notification that is signed now.
    pub(crate) fn notice(&self, body: &str) -> Call<'_> {
        let now_s = self.now_ms() / 1_000;
        let key = NoticeKey::new(SECRET.as_bytes()).unwrap();
        self.post("/v1/payments/notifications")
            .header("payment-timestamp", &now_s.to_string())
            .header("payment-signature", &key.sign(now_s, body.as_bytes()))
            .raw(body.to_owned())
    }

    pub(crate) async fn refund(&self, order: &str) -> Answer {
        let path = format!("/v1/admin/orders/{order}/refunds");
        self.post(&path).admin().answer().await
    }

    /// Reads a list as an administrator.
    pub(crate) async fn list(&self, path: &str) -> Answer {
        let list = self.get(path).admin().answer().await;
        list.is(200);
        list
    }

    pub(crate) async fn cancel(&self, order: &str, user: u64) -> Answer {
        self.post(&format!("/v1/orders/{order}/cancellation"))
            .user(user)
            .answer()
            .await
    }

    /// Waits, within reason, until something is so.
    pub(crate) async fn wait_until(&self, is_so: impl AsyncFn() -> bool) {
        for _ in 0..500 {
            if is_so().await {
                return;
            }
            self.clock.sleep(Duration::from_millis(10)).await;
        }
        panic!("it does not come to be");
    }

    /// A buyer's list once it has so many orders.
    pub(crate) async fn settled_list(&self, user: u64, orders: usize) -> Answer {
        for _ in 0..500 {
            let seen = self.get("/v1/orders?limit=100").user(user).answer().await;
            if seen.body["items"].as_array().unwrap().len() == orders {
                return seen;
            }
            self.clock.sleep(Duration::from_millis(10)).await;
        }
        panic!("the list does not have {orders} orders");
    }

    /// An order once it is no longer queued.
    pub(crate) async fn settled(&self, order: &str, user: u64) -> Answer {
        for _ in 0..500 {
            let seen = self
                .get(&format!("/v1/orders/{order}"))
                .user(user)
                .answer()
                .await;
            if seen.body["status"] != "queued" {
                return seen;
            }
            self.clock.sleep(Duration::from_millis(10)).await;
        }
        panic!("order {order} stays queued");
    }
}

/// Unix milliseconds as the API writes them.
pub(crate) fn rfc3339(millis: i64) -> String {
    let at = Timestamp::from_millis(millis).as_millis();
    let (days, ms) = (at.div_euclid(86_400_000), at.rem_euclid(86_400_000));
    let (s, ms) = (ms / 1_000, ms % 1_000);
    let (year, month, day) = civil(days);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{ms:03}Z",
        s / 3_600,
        s / 60 % 60,
        s % 60
    )
}

/// The date of a day counted from 1970-01-01, without the code under test.
fn civil(days: i64) -> (i64, i64, i64) {
    let leap = |year: i64| (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let (mut year, mut left) = (1970, days);
    while left >= 365 + i64::from(leap(year)) {
        left -= 365 + i64::from(leap(year));
        year += 1;
    }
    let february = 28 + i64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    (year, month, left + 1)
}

impl Call<'_> {
    pub(crate) fn user(self, user: u64) -> Self {
        let token = self.stand.token_of(user, "buyer");
        self.header("authorization", &bearer(&token))
    }

    pub(crate) fn admin(self) -> Self {
        let token = self.stand.token_of(ADMIN, "admin");
        self.header("authorization", &bearer(&token))
    }

    pub(crate) fn key(self, key: &str) -> Self {
        self.header("idempotency-key", key)
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.append(name, value.parse().unwrap());
        self
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.raw(body.to_string())
    }

    /// A body that claims to be JSON.
    pub(crate) fn raw(mut self, body: impl Into<Body>) -> Self {
        self.body = body.into();
        self.headers
            .insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
        self
    }

    pub(crate) fn content_type(mut self, kind: &str) -> Self {
        self.headers
            .insert(header::CONTENT_TYPE, kind.parse().unwrap());
        self
    }

    pub(crate) fn request(self) -> Request<Body> {
        let mut request = Request::new(self.body);
        *request.method_mut() = self.method;
        *request.uri_mut() = self.path.parse().unwrap();
        *request.headers_mut() = self.headers;
        let host = HeaderValue::from_static("stand");
        request.headers_mut().insert(header::HOST, host);
        request
    }

    /// Sends it, and checks the answer against the document.
    pub(crate) async fn answer(self) -> Answer {
        let stand = self.stand;
        let request = self.request();
        let method = request.method().clone();
        let path = request.uri().path().to_owned();
        let response = stand.app.answer(request).await;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let answer = Answer::new(parts, &bytes);
        answer.check(&method, &path);
        answer
    }
}
