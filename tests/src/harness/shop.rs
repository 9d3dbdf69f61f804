//! A client of one process: the calls of the contract.

use std::sync::Arc;
use std::time::Duration;

use seckill_domain::{BuyerId, OrderId, OrderStatus, VoucherId};
use serde_json::json;

use super::answer::{Balance, Purchase, Reply};
use super::call::{Call, Lost, Wire};
use super::history::{Asked, History, Told};
use super::offer::Offer;
use super::wait::eventually;

/// How long the ledger may take for what the gate decided, while nothing is broken.
const SETTLED_WITHIN: Duration = Duration::from_secs(30);

/// Calls one process; cheap to clone. Whoever buys, pays, cancels or looks through it is written
/// down in its history.
#[derive(Debug, Clone)]
pub struct Shop {
    pub(super) wire: Wire,
    history: Arc<History>,
}

impl Shop {
    pub(super) fn at(base: &str) -> Self {
        Self {
            wire: Wire::to(base),
            history: Arc::default(),
        }
    }

    /// The same client, writing into this history.
    #[must_use]
    pub fn writing(mut self, history: &Arc<History>) -> Self {
        self.history = Arc::clone(history);
        self
    }

    /// What was asked and told through this client.
    pub fn history(&self) -> &Arc<History> {
        &self.history
    }

    /// Sends a call that may well remain without an answer.
    pub async fn send(&self, call: Call) -> Result<Reply, Lost> {
        self.wire.send(call).await
    }

    /// Sends a call that must be answered.
    pub async fn ask(&self, call: Call) -> Reply {
        let asked = format!("{call:?}");
        self.send(call)
            .await
            .unwrap_or_else(|lost| panic!("{lost}, to {asked}"))
    }

    /// Creates a draft.
    pub async fn draft(&self, offer: &Offer) -> VoucherId {
        let call = Call::post("/v1/admin/vouchers").by_admin();
        let reply = self.ask(call.json(offer.body())).await;
        reply.assert_status(201);
        assert_eq!(reply.word("status"), "draft", "{}", reply.text);
        reply.voucher_id("id")
    }

    /// Creates a voucher and puts it on sale.
    pub async fn sell(&self, offer: &Offer) -> VoucherId {
        let voucher = self.draft(offer).await;
        // The ledger has it, and the gate may follow later than a command waits: it is repeatable.
        let reply = eventually("it is published", SETTLED_WITHIN, async || {
            let reply = self.steer(voucher, "publish").await;
            match reply.status {
                503 => Err(reply.text),
                _ => Ok(reply),
            }
        });
        let reply = reply.await;
        reply.assert_status(200);
        assert_eq!(reply.word("status"), "published", "{}", reply.text);
        voucher
    }

    /// `publish`, `pause`, `resume` or `close`.
    pub async fn steer(&self, voucher: VoucherId, command: &str) -> Reply {
        self.ask(Call::post(format!("/v1/admin/vouchers/{voucher}/{command}")).by_admin())
            .await
    }

    /// Adds units, or takes free ones out.
    pub async fn adjust(&self, voucher: VoucherId, delta: i64) -> Reply {
        self.ask(adjustment(voucher, delta)).await
    }

    /// The same, under a key.
    pub async fn adjust_once(&self, voucher: VoucherId, delta: i64, key: &str) -> Reply {
        self.ask(adjustment(voucher, delta).header("idempotency-key", key))
            .await
    }

    /// One unit, please; however that ends.
    pub async fn try_buy(
        &self,
        voucher: VoucherId,
        buyer: BuyerId,
        quantity: u32,
        key: Option<&str>,
    ) -> Result<Purchase, Lost> {
        let mut call = Call::post(format!("/v1/vouchers/{voucher}/purchases")).by(buyer);
        if quantity != 1 {
            call = call.json(&json!({"quantity": quantity}));
        }
        if let Some(key) = key {
            call = call.header("idempotency-key", key);
        }
        let begun = self.history.now();
        let answer = self.send(call).await.map(|reply| Purchase::read(&reply));
        let told = match &answer {
            Ok(answer) => Told::Purchase(answer.clone()),
            Err(_) => Told::Nothing,
        };
        let asked = Asked::Purchase {
            voucher,
            quantity,
            key: key.map(ToOwned::to_owned),
        };
        self.history.record(begun, buyer, asked, told);
        answer
    }

    /// One unit, please.
    pub async fn buy(&self, voucher: VoucherId, buyer: BuyerId) -> Purchase {
        self.buy_some(voucher, buyer, 1, None).await
    }

    /// Some units, please, perhaps under a key.
    pub async fn buy_some(
        &self,
        voucher: VoucherId,
        buyer: BuyerId,
        quantity: u32,
        key: Option<&str>,
    ) -> Purchase {
        self.try_buy(voucher, buyer, quantity, key)
            .await
            .unwrap_or_else(|lost| panic!("{lost}, to a purchase of {voucher}"))
    }

    /// A buyer's order.
    pub async fn try_order(&self, order: OrderId, buyer: BuyerId) -> Result<Reply, Lost> {
        let call = Call::get(format!("/v1/orders/{order}")).by(buyer);
        self.about_order(call, Asked::Look { order }, buyer).await
    }

    /// A buyer's order.
    pub async fn order(&self, order: OrderId, buyer: BuyerId) -> Reply {
        self.try_order(order, buyer)
            .await
            .unwrap_or_else(|lost| panic!("{lost}, to a look at order {order}"))
    }

    /// A buyer's order, once the ledger has it and it is not in one of these stages.
    pub async fn order_past(
        &self,
        order: OrderId,
        buyer: BuyerId,
        stages: &[OrderStatus],
    ) -> Reply {
        let what = format!("order {order} is past {stages:?}");
        eventually(&what, SETTLED_WITHIN, async || {
            let reply = self.order(order, buyer).await;
            if reply.status == 200 && !stages.contains(&reply.order_status()) {
                return Ok(reply);
            }
            Err(reply.text)
        })
        .await
    }

    /// A buyer's order, once the ledger has it.
    pub async fn settled(&self, order: OrderId, buyer: BuyerId) -> Reply {
        self.order_past(order, buyer, &[OrderStatus::Queued]).await
    }

    /// Buys one unit, as soon as the gate has the sale, and waits until the ledger has the order.
    pub async fn buy_settled(&self, voucher: VoucherId, buyer: BuyerId) -> OrderId {
        let bought = eventually("the gate has the sale", SETTLED_WITHIN, async || match self
            .buy(voucher, buyer)
            .await
        {
            Purchase::Refused { status: 503, code } => Err(code),
            bought => Ok(bought),
        });
        let order = bought.await.expect_granted();
        let reply = self.settled(order, buyer).await;
        assert_eq!(reply.order_status(), OrderStatus::PendingPayment);
        order
    }

    /// Pays, with a payment of that name for this order; however that ends.
    pub async fn try_pay(
        &self,
        order: OrderId,
        buyer: BuyerId,
        payment: &str,
    ) -> Result<Reply, Lost> {
        let call = Call::post(format!("/v1/orders/{order}/payments"))
            .by(buyer)
            .json(&json!({"payment_id": payment_id(order, payment)}));
        let asked = Asked::Pay {
            order,
            payment: payment.to_owned(),
        };
        self.about_order(call, asked, buyer).await
    }

    /// Pays.
    pub async fn pay(&self, order: OrderId, buyer: BuyerId, payment: &str) -> Reply {
        self.try_pay(order, buyer, payment)
            .await
            .unwrap_or_else(|lost| panic!("{lost}, to a payment of {order}"))
    }

    /// Gives an order up; however that ends.
    pub async fn try_cancel(&self, order: OrderId, buyer: BuyerId) -> Result<Reply, Lost> {
        let call = Call::post(format!("/v1/orders/{order}/cancellation")).by(buyer);
        self.about_order(call, Asked::Cancel { order }, buyer).await
    }

    /// Gives an order up.
    pub async fn cancel(&self, order: OrderId, buyer: BuyerId) -> Reply {
        self.try_cancel(order, buyer)
            .await
            .unwrap_or_else(|lost| panic!("{lost}, to a cancellation of {order}"))
    }

    async fn about_order(&self, call: Call, asked: Asked, buyer: BuyerId) -> Result<Reply, Lost> {
        let begun = self.history.now();
        let answer = self.send(call).await;
        let told = match &answer {
            Ok(reply) if reply.status == 200 => Told::Order(reply.order_status()),
            Ok(reply) => Told::Refused {
                status: reply.status,
                code: reply.code().to_owned(),
            },
            Err(_) => Told::Nothing,
        };
        self.history.record(begun, buyer, asked, told);
        answer
    }

    /// A buyer's place on a waitlist.
    pub async fn place(&self, voucher: VoucherId, buyer: BuyerId) -> Reply {
        self.ask(Call::get(format!("/v1/vouchers/{voucher}/waitlist/me")).by(buyer))
            .await
    }

    /// Leaves a waitlist; however that ends.
    pub async fn try_leave(&self, voucher: VoucherId, buyer: BuyerId) -> Result<Reply, Lost> {
        let begun = self.history.now();
        let call = Call::new("DELETE", format!("/v1/vouchers/{voucher}/waitlist/me"));
        let answer = self.send(call.by(buyer)).await;
        let told = match &answer {
            Ok(reply) if reply.status == 204 => Told::Done,
            Ok(reply) => Told::Refused {
                status: reply.status,
                code: reply.code().to_owned(),
            },
            Err(_) => Told::Nothing,
        };
        let asked = Asked::Leave { voucher };
        self.history.record(begun, buyer, asked, told);
        answer
    }

    /// Leaves a waitlist.
    pub async fn leave(&self, voucher: VoucherId, buyer: BuyerId) -> Reply {
        self.try_leave(voucher, buyer)
            .await
            .unwrap_or_else(|lost| panic!("{lost}, to leaving the waitlist of {voucher}"))
    }

    /// The voucher as anybody sees it.
    pub async fn voucher(&self, voucher: VoucherId) -> Reply {
        self.ask(Call::get(format!("/v1/vouchers/{voucher}"))).await
    }

    /// Where the units are.
    pub async fn balance(&self, voucher: VoucherId) -> Balance {
        let path = format!("/v1/admin/vouchers/{voucher}/balance");
        Balance::read(&self.ask(Call::get(path).by_admin()).await)
    }

    /// Where the units are, once nothing is on its way; it must add up.
    pub async fn balanced(&self, voucher: VoucherId) -> Balance {
        let what = format!("the balance of {voucher} holds at rest");
        eventually(&what, SETTLED_WITHIN, async || {
            let balance = self.balance(voucher).await;
            if balance.holds && balance.tally.in_flight == 0 {
                return Ok(balance);
            }
            Err(format!("{balance:?}"))
        })
        .await
    }

    /// The value of a metric without labels, or the sum over all labels; `None` if it is absent.
    pub async fn metric(&self, name: &str) -> Option<f64> {
        let reply = self.ask(Call::get("/metrics")).await;
        reply.assert_status(200);
        let values: Vec<f64> = reply
            .text
            .lines()
            .filter_map(|line| line.strip_prefix(name))
            .filter(|rest| rest.starts_with([' ', '{']))
            .filter_map(|rest| rest.rsplit(' ').next()?.parse().ok())
            .collect();
        (!values.is_empty()).then(|| values.iter().sum())
    }
}

/// The provider's id of a payment, which is the name that a test gives it and the order that it is
/// for: providers never give two payments the same id.
pub fn payment_id(order: OrderId, name: &str) -> String {
    format!("{name}.{order}")
}

fn adjustment(voucher: VoucherId, delta: i64) -> Call {
    let path = format!("/v1/admin/vouchers/{voucher}/stock-adjustments");
    let body = json!({"delta": delta, "reason": "counted again"});
    Call::post(path).by_admin().json(&body)
}
