//! The ways into a sale: the use cases of this process, or a server's REST API.

use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use seckill_application::ports::NewVoucher;
use seckill_application::{
    CancelReply, Fault, PayReply, Purchase, PurchaseRequest, SteerCommand, SteerReply,
};
use seckill_domain::invariants::Tally;
use seckill_domain::{
    BuyerId, Currency, Forbidden, GateVersion, IdempotencyKey, Money, OrderId, OrderStatus,
    PaymentId, SaleWindow, Ticket, Timestamp, VoucherId, VoucherTerms,
};

use super::plan::Plan;
use super::remote::Remote;
use crate::wiring::System;

/// How the crowd comes in.
pub(super) enum Door {
    Here(Arc<System>),
    Remote(Box<Remote>),
}

/// What a buyer was told about a purchase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    Granted(OrderId),
    Waitlisted(OrderId),
    AlreadyHeld(OrderId),
    /// Turned away; the word of the API.
    Refused(&'static str),
    /// No answer, or a failure; the word of the API.
    Failed(&'static str),
}

/// What became of a payment or a cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Done {
    Yes,
    NotYet,
    Refused(&'static str),
    Failed(&'static str),
}

/// An order as its buyer sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) status: OrderStatus,
    pub(super) quantity: u32,
    /// The turn it had on the waitlist, where that can be seen.
    pub(super) ticket: Option<Ticket>,
    pub(super) expires_at: Option<Timestamp>,
}

/// Where every unit is, and whether the system itself says that this is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Weighed {
    pub(super) tally: Tally,
    pub(super) holds: bool,
}

/// A sale that lasts longer than any crowd.
const SALE: Duration = Duration::from_hours(24);
const PRICE_MINOR: u64 = 8_000;
const FACE_VALUE_MINOR: u64 = 10_000;
/// Most orders of a buyer that are looked at.
const ORDERS_MAX: usize = 100;

impl Door {
    /// The sale that the crowd comes for.
    pub(super) async fn put_on_sale(&self, plan: &Plan) -> anyhow::Result<VoucherId> {
        let new = new_voucher(plan, self.now())?;
        match self {
            Self::Here(system) => {
                let drafted = system.draft.run(&new).await?;
                let voucher = drafted?.id;
                let published = system.steer.run(voucher, SteerCommand::Publish).await;
                match published? {
                    SteerReply::Done(_) => Ok(voucher),
                    other => bail!("the voucher was not published: {other:?}"),
                }
            }
            Self::Remote(remote) => remote.put_on_sale(&new).await,
        }
    }

    pub(super) async fn buy(
        &self,
        voucher: VoucherId,
        buyer: BuyerId,
        key: Option<&IdempotencyKey>,
    ) -> Told {
        match self {
            Self::Here(system) => {
                let request = PurchaseRequest {
                    voucher,
                    buyer,
                    quantity: 1,
                    key: key.cloned(),
                };
                told(system.purchase.run(request).await)
            }
            Self::Remote(remote) => remote.buy(voucher, buyer, key).await,
        }
    }

    pub(super) async fn pay(&self, buyer: BuyerId, order: OrderId) -> Done {
        match self {
            Self::Here(system) => {
                let Ok(payment) = payment(order).parse::<PaymentId>() else {
                    return Done::Refused("payment_id");
                };
                match system.pay.run(order, buyer, &payment).await {
                    Ok(PayReply::Paid(_)) => Done::Yes,
                    Ok(PayReply::NotFound) => Done::Refused("order_not_found"),
                    Ok(PayReply::Refused(refused)) => forbidden(refused),
                    Ok(PayReply::Declined(_)) => Done::Refused("payment_declined"),
                    Ok(PayReply::PaymentUsed) => Done::Refused("payment_used"),
                    Err(_) => Done::Failed("unavailable"),
                }
            }
            Self::Remote(remote) => remote.pay(buyer, order).await,
        }
    }

    pub(super) async fn cancel(&self, buyer: BuyerId, order: OrderId) -> Done {
        match self {
            Self::Here(system) => match system.cancel.run(order, buyer).await {
                Ok(CancelReply::Cancelled(_)) => Done::Yes,
                Ok(CancelReply::NotFound) => Done::Refused("order_not_found"),
                Ok(CancelReply::Refused(refused)) => forbidden(refused),
                Err(_) => Done::Failed("unavailable"),
            },
            Self::Remote(remote) => remote.cancel(buyer, order).await,
        }
    }

    /// A buyer's order; `None` if it is not there or could not be read.
    pub(super) async fn order(&self, buyer: BuyerId, order: OrderId) -> Option<Seen> {
        match self {
            Self::Here(system) => {
                let view = system.orders.find(order, buyer).await.ok()??;
                Some(seen(&view.order))
            }
            Self::Remote(remote) => remote.order(buyer, order).await,
        }
    }

    /// A buyer's orders of a voucher that the ledger has.
    pub(super) async fn orders(
        &self,
        buyer: BuyerId,
        voucher: VoucherId,
    ) -> anyhow::Result<Vec<(OrderId, Seen)>> {
        match self {
            Self::Here(system) => {
                let page = system.orders.list(buyer, None, ORDERS_MAX).await;
                let items = page?.items.into_iter();
                let items = items.filter(|view| view.order.voucher == voucher);
                Ok(items
                    .map(|view| (view.order.id, seen(&view.order)))
                    .collect())
            }
            Self::Remote(remote) => remote.orders(buyer, voucher).await,
        }
    }

    pub(super) async fn balance(&self, voucher: VoucherId) -> Option<Weighed> {
        match self {
            Self::Here(system) => {
                let balance = system.balance.run(voucher).await.ok()??;
                Some(Weighed {
                    tally: balance.tally,
                    holds: balance.holds,
                })
            }
            Self::Remote(remote) => remote.balance(voucher).await,
        }
    }

    /// Whether nothing is on its way between gate and ledger: I8.
    pub(super) async fn is_at_rest(&self, voucher: VoucherId) -> bool {
        let still = |weighed: Weighed| weighed.holds && weighed.tally.in_flight == 0;
        if !self.balance(voucher).await.is_some_and(still) {
            return false;
        }
        let Self::Here(system) = self else {
            return true;
        };
        let partition = system.partitions.of(voucher);
        let backlog = system.hot.stream.backlog(partition).await;
        let updates = system
            .ledger
            .updates
            .after(voucher, GateVersion::default(), 1);
        system.remembered.is_empty()
            && backlog.is_ok_and(|backlog| backlog.decisions == 0)
            && updates.await.is_ok_and(|updates| updates.is_empty())
    }

    pub(super) fn monotonic(&self) -> Duration {
        match self {
            Self::Here(system) => system.clock.monotonic(),
            Self::Remote(remote) => remote.clock().monotonic(),
        }
    }

    fn now(&self) -> Timestamp {
        match self {
            Self::Here(system) => system.clock.now(),
            Self::Remote(remote) => remote.clock().now(),
        }
    }

    pub(super) async fn sleep(&self, pause: Duration) {
        match self {
            Self::Here(system) => system.clock.sleep(pause).await,
            Self::Remote(remote) => remote.clock().sleep(pause).await,
        }
    }
}

pub(super) fn payment(order: OrderId) -> String {
    format!("simulated-{order}")
}

fn new_voucher(plan: &Plan, now: Timestamp) -> anyhow::Result<NewVoucher> {
    let currency: Currency = "CNY".parse()?;
    let money = |minor| Money { minor, currency };
    Ok(NewVoucher {
        terms: VoucherTerms {
            title: "A simulated sale".to_owned(),
            description: None,
            face_value: money(FACE_VALUE_MINOR),
            price: money(PRICE_MINOR),
            per_buyer_limit: plan.limit,
            window: SaleWindow {
                // The clocks of others may be behind.
                opens_at: Timestamp::from_millis(now.as_millis() - 60_000),
                closes_at: now.plus(SALE),
            },
            payment_window: plan.payment_window(),
            waitlist_capacity: plan.waitlist,
        },
        total_units: plan.units,
    })
}

fn told(purchase: Result<Purchase, Fault>) -> Told {
    match purchase {
        Ok(Purchase::Granted { order, .. }) => Told::Granted(order),
        Ok(Purchase::Waitlisted { order, .. }) => Told::Waitlisted(order),
        Ok(Purchase::AlreadyHeld { orders }) => match orders.first() {
            Some(first) => Told::AlreadyHeld(*first),
            None => Told::Failed("already_held without an order"),
        },
        Ok(Purchase::LimitExceeded { .. }) => Told::Refused("limit_exceeded"),
        Ok(Purchase::KeyReused) => Told::Refused("idempotency_key_reused"),
        Ok(Purchase::NotOpen { .. }) => Told::Refused("not_open"),
        Ok(Purchase::Paused) => Told::Refused("paused"),
        Ok(Purchase::Closed) => Told::Refused("closed"),
        Ok(Purchase::SoldOut) => Told::Refused("sold_out"),
        Ok(Purchase::VoucherNotFound) => Told::Refused("voucher_not_found"),
        Ok(Purchase::Unavailable) | Err(_) => Told::Failed("unavailable"),
    }
}

fn forbidden(refused: Forbidden) -> Done {
    match refused {
        Forbidden::Queued => Done::NotYet,
        Forbidden::Expired => Done::Refused("order_expired"),
        Forbidden::Cancelled => Done::Refused("order_cancelled"),
        Forbidden::Paid => Done::Refused("order_paid"),
        _ => Done::Refused("refused"),
    }
}

fn seen(order: &seckill_domain::Order) -> Seen {
    Seen {
        status: order.status(),
        quantity: order.quantity,
        ticket: order.ticket,
        expires_at: order.expires_at,
    }
}
