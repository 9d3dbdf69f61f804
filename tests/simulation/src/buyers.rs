//! Buyers: they press the button, again if nobody answers; they pay, give up, wait, go away.

use std::sync::Arc;
use std::time::Duration;

use seckill_application::ports::{Clock as _, PaymentOutcome};
use seckill_application::{
    CancelReply, HearReply, LeavePlace, PayReply, PaymentNotice, Purchase, PurchaseRequest,
};
use seckill_domain::{BuyerId, Money, Order, OrderId, PaymentId};

use crate::coverage::Seen;
use crate::note;
use crate::promises::{Outcome, Wish};
use crate::sales::PRICE_MINOR;
use crate::site::{NoAnswer, Site};
use crate::stores::now;

/// A buyer with what he knows.
pub struct Buyer {
    site: Arc<Site>,
    id: BuyerId,
    orders: Vec<(OrderId, u32)>,
    wishes: Vec<Wish>,
    keys: u32,
    payments: u32,
}

impl Buyer {
    /// Knows nothing yet.
    pub fn new(site: Arc<Site>, id: u64) -> Self {
        Self {
            site,
            id: BuyerId::new(id),
            orders: Vec::new(),
            wishes: Vec::new(),
            keys: 0,
            payments: 0,
        }
    }

    /// Who he is.
    pub fn id(&self) -> BuyerId {
        self.id
    }

    /// Whoever wants what this order wants asks for it again, and leaves it at one answer.
    pub async fn asks_again(site: Arc<Site>, order: &Order) {
        let wish = Wish {
            voucher: order.voucher,
            buyer: order.buyer,
            quantity: order.quantity,
            key: None,
        };
        let mut buyer = Self::new(site, order.buyer.get());
        buyer.asks(&wish);
        let _ = buyer.ask(&wish).await;
    }

    /// Does a few things within a time.
    pub async fn act(&mut self, within: Duration) {
        let nature = self.site.nature.clone();
        let actions = nature.dice.count(1..=6);
        let millis = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
        for _ in 0..actions {
            nature
                .sleep(nature.dice.millis(0..=millis / u64::from(actions)))
                .await;
            self.act_once().await;
        }
    }

    async fn act_once(&mut self) {
        match self.site.nature.dice.below(100) {
            0..50 => self.buy().await,
            50..60 => self.pay().await,
            60..68 => self.at_last(true).await,
            68..77 => self.cancel().await,
            77..80 => self.at_last(false).await,
            80..86 => self.leave().await,
            86..92 => self.look().await,
            _ => self.money_moves().await,
        }
    }

    async fn buy(&mut self) {
        let Some(wish) = self.next_wish() else { return };
        self.asks(&wish);
        let tries = self.site.nature.dice.count(1..=5);
        for _ in 0..tries {
            match self.ask(&wish).await {
                Ok(Purchase::Unavailable) | Err(NoAnswer) => {}
                Ok(_) => break,
            }
            if wish.key.is_none() {
                // Each call without a key below the limit may be another purchase.
                self.asks(&wish);
            }
            self.site
                .nature
                .sleep(self.site.nature.dice.millis(5..=400))
                .await;
        }
        self.wishes.push(wish);
    }

    fn asks(&self, wish: &Wish) {
        let when = self.site.nature.clock.monotonic();
        self.site.promises.asks(wish, when);
    }

    fn next_wish(&mut self) -> Option<Wish> {
        let dice = &self.site.nature.dice;
        if dice.chance(200)
            && let Some(again) = dice.pick(&self.wishes)
        {
            return Some(again.clone());
        }
        let voucher = *dice.pick(&self.site.on_sale())?;
        let quantity = if dice.chance(700) {
            1
        } else {
            dice.count(1..=3)
        };
        let key = dice.chance(500).then(|| {
            self.keys += 1;
            format!("b{}-{}", self.id, self.keys)
        });
        Some(Wish {
            voucher,
            buyer: self.id,
            quantity,
            key,
        })
    }

    async fn ask(&mut self, wish: &Wish) -> Result<Purchase, NoAnswer> {
        let site = self.site.clone();
        let request = PurchaseRequest {
            voucher: wish.voucher,
            buyer: wish.buyer,
            quantity: wish.quantity,
            key: wish.key.as_ref().map(|key| key.parse().expect("a key")),
        };
        note!(site.nature.trace, "b{} asks for {wish:?}", self.id);
        if site.watch.is_shut(wish.voucher).is_some() {
            site.nature.coverage.saw(Seen::AskedWhileShut);
        }
        let asked = site.ask(site.any_process(), |node| async move {
            node.purchase.run(request).await
        });
        let (by, answer) = asked.await?;
        // A fault is answered as unavailable; it may have happened.
        let answer = answer.map_err(|_| NoAnswer)?;
        let when = site.nature.clock.monotonic();
        note!(site.nature.trace, "b{} is told {answer:?}", self.id);
        site.promises.purchase(wish, by, when, &answer);
        site.excuse_the_dead();
        match &answer {
            Purchase::Granted { order, .. } | Purchase::Waitlisted { order, .. } => {
                if self.orders.iter().any(|(known, _)| known == order) {
                    site.nature.coverage.saw(Seen::KeyReplay);
                } else {
                    self.orders.push((*order, wish.quantity));
                }
            }
            _ => {}
        }
        Ok(answer)
    }

    fn any_order(&self) -> Option<(OrderId, u32)> {
        self.site.nature.dice.pick(&self.orders).copied()
    }

    fn next_payment(&mut self) -> PaymentId {
        self.payments += 1;
        format!("pay-{}-{}", self.id, self.payments)
            .parse()
            .expect("a payment")
    }

    /// Pays at the very end of the payment window, or gives up then; or a moment too late.
    async fn at_last(&mut self, pays: bool) {
        let Some((order, _)) = self.any_order() else {
            return;
        };
        let nature = self.site.nature.clone();
        let stored = now(self.site.stores.ledger.ledger.order(order));
        if let Some(end) = stored.and_then(|order| order.expires_at) {
            let early = nature.dice.millis(0..=8);
            let left = nature.clock.now().until(end);
            nature.sleep(left.saturating_sub(early)).await;
            if nature.clock.now() >= end {
                nature.coverage.saw(Seen::TooLate);
            }
        }
        if pays {
            self.pay_for(order).await;
        } else {
            self.cancel_it(order).await;
        }
    }

    async fn pay(&mut self) {
        if let Some((order, _)) = self.any_order() {
            self.pay_for(order).await;
        }
    }

    async fn pay_for(&mut self, order: OrderId) {
        let (site, buyer, payment) = (self.site.clone(), self.id, self.next_payment());
        site.promises.pays(&payment, site.nature.clock.now(), None);
        for _ in 0..2 {
            let payment = payment.clone();
            let asked = site.ask(site.any_process(), move |node| async move {
                let reply = node.pay.run(order, buyer, &payment).await;
                (reply, payment)
            });
            let Ok((_, (Ok(reply), payment))) = asked.await else {
                continue;
            };
            note!(site.nature.trace, "b{buyer} pays {order}: {reply:?}");
            if let PayReply::Paid(order) = reply {
                site.nature.coverage.saw(Seen::Payment);
                site.promises.end(order.id, order.status());
                site.promises.payment(&payment, order.id, Outcome::Paid);
            }
            return;
        }
    }

    async fn cancel(&mut self) {
        if let Some((order, _)) = self.any_order() {
            self.cancel_it(order).await;
        }
    }

    async fn cancel_it(&mut self, order: OrderId) {
        let (site, buyer) = (self.site.clone(), self.id);
        site.promises.cancels(order, site.nature.clock.now());
        let asked = site.ask(site.any_process(), move |node| async move {
            node.cancel.run(order, buyer).await
        });
        let Ok((_, Ok(reply))) = asked.await else {
            return;
        };
        note!(site.nature.trace, "b{buyer} cancels {order}: {reply:?}");
        if let CancelReply::Cancelled(order) = reply {
            site.nature.coverage.saw(Seen::Cancellation);
            site.promises.end(order.id, order.status());
        }
    }

    async fn leave(&mut self) {
        let (site, buyer) = (self.site.clone(), self.id);
        let Some(voucher) = site.nature.dice.pick(&site.on_sale()).copied() else {
            return;
        };
        let asked = site.ask(site.any_process(), move |node| async move {
            node.place.leave(voucher, buyer).await
        });
        let Ok((_, Ok(reply))) = asked.await else {
            return;
        };
        note!(
            site.nature.trace,
            "b{buyer} leaves the list of {voucher}: {reply:?}"
        );
        if reply == LeavePlace::NotWaiting {
            site.nature.coverage.saw(Seen::Left);
        }
    }

    async fn look(&mut self) {
        let Some((order, _)) = self.any_order() else {
            return;
        };
        let (site, buyer) = (self.site.clone(), self.id);
        let asked = site.ask(site.any_process(), move |node| async move {
            node.orders.find(order, buyer).await
        });
        let Ok((_, Ok(Some(view)))) = asked.await else {
            return;
        };
        note!(
            site.nature.trace,
            "b{buyer} sees {order}: {:?}",
            view.order.stage
        );
        if view.order.status().is_final() {
            site.promises.end(order, view.order.status());
        }
    }

    /// So much money, or now and then another amount.
    fn some_money(&self, minor: u64) -> Money {
        let dice = &self.site.nature.dice;
        let currency = |code: &str| code.parse().expect("a currency");
        let (minor, code) = match dice.below(8) {
            0 => (minor / 2, "CNY"),
            1 => (minor + 1, "CNY"),
            2 => (minor, "USD"),
            _ => (minor, "CNY"),
        };
        Money {
            minor,
            currency: currency(code),
        }
    }

    /// The provider says that money came, perhaps for an order that is long over; it says so until
    /// it is answered.
    async fn money_moves(&mut self) {
        let Some((order, quantity)) = self.any_order() else {
            return;
        };
        let (site, payment) = (self.site.clone(), self.next_payment());
        let amount = self.some_money(PRICE_MINOR * u64::from(quantity));
        let notice = PaymentNotice {
            payment: payment.clone(),
            order,
            amount,
        };
        let when = site.nature.clock.now();
        site.promises.pays(&payment, when, Some(amount));
        for _ in 0..4 {
            let notice = notice.clone();
            let asked = site.ask(site.any_process(), move |node| async move {
                node.hear_of(notice).await
            });
            if let Ok((_, Ok(HearReply::Settled(outcome)))) = asked.await {
                note!(site.nature.trace, "money for {order}: {outcome:?}");
                if outcome == PaymentOutcome::RefundedWrongAmount {
                    site.nature.coverage.saw(Seen::WrongAmount);
                }
                let outcome = Outcome::from(outcome);
                if outcome == Outcome::Refunded {
                    site.nature.coverage.saw(Seen::LateMoney);
                }
                site.promises.payment(&payment, order, outcome);
                return;
            }
            site.nature.sleep(site.nature.dice.millis(50..=500)).await;
        }
    }
}
