//! The payment provider, who says that money moved; and what goes back to it.

use std::time::{SystemTime, UNIX_EPOCH};

use seckill_domain::{BuyerId, OrderId};
use seckill_http::NoticeKey;
use serde_json::{Value, json};

use super::answer::Reply;
use super::call::{Call, Lost};
use super::history::{Asked, Told};
use super::shop::{Shop, payment_id};

/// The setting of the secret that the provider signs with.
pub const PAYMENTS_SECRET: &str = "SECKILL_PAYMENTS_SECRET";
/// The provider in a history: no buyer has this id.
const PROVIDER: BuyerId = BuyerId::new(0);
/// The provider's secret.
pub(super) const SECRET: &str = "provider-secret-provider-secret-0123456789";

/// What the provider says of a payment.
#[derive(Debug, Clone)]
pub struct Notice {
    body: Value,
    late_s: i64,
    secret: String,
}

impl Notice {
    /// The money for one unit of an [`Offer`](super::Offer) came, by the payment of that name for
    /// this order.
    pub fn of(order: OrderId, payment: &str) -> Self {
        let body = json!({
            "payment_id": payment_id(order, payment),
            "order_id": order.to_string(),
            "amount_minor": 8_000,
            "currency": "CNY",
        });
        Self {
            body,
            late_s: 0,
            secret: SECRET.to_owned(),
        }
    }

    /// With any field set to any value.
    #[must_use]
    pub fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.body[field] = value.into();
        self
    }

    /// Sent this many seconds ago; negative for the future.
    #[must_use]
    pub fn sent_before_s(mut self, seconds: i64) -> Self {
        self.late_s = seconds;
        self
    }

    /// Signed by somebody else.
    #[must_use]
    pub fn signed_with(mut self, secret: &str) -> Self {
        secret.clone_into(&mut self.secret);
        self
    }

    /// The call, as the provider makes it.
    pub fn call(&self) -> Call {
        self.call_saying(&self.body.to_string())
    }

    /// The call with this body, signed for the notice's own.
    pub fn call_saying(&self, body: &str) -> Call {
        let key = NoticeKey::new(self.secret.as_bytes()).expect("a long secret");
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.expect("the clock is past 1970").as_secs();
        let sent = i64::try_from(now).expect("this century") - self.late_s;
        let signature = key.sign(sent, self.body.to_string().as_bytes());
        Call::post("/v1/payments/notifications")
            .header("payment-timestamp", &sent.to_string())
            .header("payment-signature", &signature)
            .text(body.to_owned())
    }
}

impl Shop {
    /// The provider says that money moved; however that ends.
    pub async fn try_hear(&self, notice: &Notice) -> Result<Reply, Lost> {
        let begun = self.history().now();
        let answer = self.send(notice.call()).await;
        let told = match &answer {
            Ok(reply) if reply.status == 200 => Told::Done,
            Ok(reply) => Told::Refused {
                status: reply.status,
                code: reply.code().to_owned(),
            },
            Err(_) => Told::Nothing,
        };
        let payment = notice.body["payment_id"].as_str().unwrap_or_default();
        let asked = Asked::Notice {
            payment: payment.to_owned(),
        };
        self.history().record(begun, PROVIDER, asked, told);
        answer
    }

    /// The provider says that money moved.
    pub async fn hear(&self, notice: &Notice) -> Reply {
        let answer = self.try_hear(notice).await;
        answer.unwrap_or_else(|lost| panic!("{lost}, to {notice:?}"))
    }

    /// Every refund record of an order, newest first.
    pub async fn refunds(&self, order: OrderId) -> Vec<Value> {
        let mut found = Vec::new();
        let mut path = "/v1/admin/refunds?limit=100".to_owned();
        loop {
            let part = self.ask(Call::get(&path).by_admin()).await;
            part.assert_status(200);
            let items = part.body["items"].as_array().expect("items");
            let of_order = |item: &&Value| item["order_id"] == order.to_string();
            found.extend(items.iter().filter(of_order).cloned());
            match part.body["next_cursor"].as_str() {
                Some(cursor) => path = format!("/v1/admin/refunds?limit=100&cursor={cursor}"),
                None => return found,
            }
        }
    }
}
