//! Money within a transaction.

use seckill_application::ports::PaymentRecord;
use seckill_domain::{Money, OrderId, PaymentId, RefundReason};

use crate::fault::Trouble;
use crate::money::{self, outcome_word, refund_word};
use crate::session::{Session, statement};

/// The primary key finds an earlier notice. One that another transaction is writing is waited for.
pub(super) async fn record_payment(
    session: &mut Session,
    payment: &PaymentRecord,
) -> Result<Option<PaymentRecord>, Trouble> {
    const WRITE: &str = "INSERT INTO payments \
           (payment_id, order_id, amount_minor, currency, outcome, created_at) \
         VALUES (?, ?, ?, ?, ?, UTC_TIMESTAMP(3))";
    const FIRST: &str = "SELECT payment_id, order_id, amount_minor, currency, outcome \
         FROM payments WHERE payment_id = ?";
    let write = statement(WRITE)
        .bind(payment.payment.as_str())
        .bind(payment.order.get())
        .bind(payment.amount.minor)
        .bind(payment.amount.currency.as_str())
        .bind(outcome_word(payment.outcome));
    match session.execute(write).await {
        Ok(_) => return Ok(None),
        Err(trouble) if trouble.is_duplicate() => {}
        Err(trouble) => return Err(trouble),
    }
    let first = statement(FIRST).bind(payment.payment.as_str());
    let first = session.row(first).await?;
    let first = first.ok_or_else(|| Trouble::broken("a payment that is there is gone"))?;
    money::payment(&first).map(Some)
}

pub(super) async fn record_refund(
    session: &mut Session,
    order: OrderId,
    payment: &PaymentId,
    amount: Money,
    reason: RefundReason,
) -> Result<(), Trouble> {
    const SQL: &str = "INSERT INTO refunds \
           (payment_id, order_id, amount_minor, currency, reason, created_at, updated_at) \
         VALUES (?, ?, ?, ?, ?, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3)) \
         ON DUPLICATE KEY UPDATE id = id";
    let write = statement(SQL)
        .bind(payment.as_str())
        .bind(order.get())
        .bind(amount.minor)
        .bind(amount.currency.as_str())
        .bind(refund_word(reason));
    session.execute(write).await.map(drop)
}
