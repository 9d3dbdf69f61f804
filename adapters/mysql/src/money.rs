//! Payments that were notified, and refunds.

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{MoneyMovements, Page, PaymentOutcome, PaymentRecord};
use seckill_domain::{Money, OrderId, Refund, RefundReason};
use sqlx::mysql::MySqlRow;

use crate::fault::{Trouble, at_most};
use crate::page::{all, highest, page};
use crate::row::{currency, get, get_text, get_time, need, words};
use crate::session::statement;
use crate::store::Store;

const REFUNDS_MAX: usize = 100;

words!(
    /// The word for what became of a payment.
    outcome_word, read_outcome, PaymentOutcome {
        Paid = "paid",
        RefundedTooLate = "refunded_too_late",
        RefundedSecond = "refunded_second",
        RefundedWrongAmount = "refunded_wrong_amount",
        RefundedUnknownOrder = "refunded_unknown_order",
        RefundedTooEarly = "refunded_too_early",
    }
);

words!(
    /// The word for why money goes back.
    refund_word, read_refund, RefundReason {
        TooLate = "too_late",
        SecondPayment = "second_payment",
        WrongAmount = "wrong_amount",
        UnknownOrder = "unknown_order",
        Requested = "requested",
        TooEarly = "too_early",
    }
);

/// The columns of a refund, for [`refund`].
macro_rules! select_refund {
    () => {
        "SELECT r.id, r.order_id, r.payment_id, r.amount_minor, r.currency, r.reason, r.sent, \
         r.created_at FROM refunds r "
    };
}

fn amount(row: &MySqlRow) -> Result<Money, Trouble> {
    Ok(Money {
        minor: get(row, "amount_minor")?,
        currency: currency(row)?,
    })
}

/// Reads a payment.
pub(crate) fn payment(row: &MySqlRow) -> Result<PaymentRecord, Trouble> {
    Ok(PaymentRecord {
        payment: need(get_text(row, "payment_id")?, "payment_id")?,
        order: OrderId::new(get(row, "order_id")?),
        amount: amount(row)?,
        outcome: read_outcome(get(row, "outcome")?)?,
    })
}

fn refund(row: &MySqlRow) -> Result<Refund, Trouble> {
    Ok(Refund {
        id: get(row, "id")?,
        order: OrderId::new(get(row, "order_id")?),
        payment: need(get_text(row, "payment_id")?, "payment_id")?,
        amount: amount(row)?,
        reason: read_refund(get(row, "reason")?)?,
        sent: get::<u8>(row, "sent")? != 0,
        created_at: get_time(row, "created_at")?,
    })
}

#[async_trait]
impl MoneyMovements for Store {
    async fn refunds(&self, before: Option<u64>, limit: usize) -> Result<Page<Refund>, Fault> {
        const PORT: &str = "money_movements.refunds";
        const SQL: &str = concat!(
            select_refund!(),
            "WHERE r.id <= ? ORDER BY r.id DESC LIMIT ?"
        );
        at_most(PORT, limit, REFUNDS_MAX)?;
        let read = || statement(SQL).bind(highest(before)).bind(limit as u64 + 1);
        let rows = self.read(PORT, read).await?;
        page(PORT, &rows, limit, refund, |refund| refund.id)
    }

    async fn unsent(&self, max: usize) -> Result<Vec<Refund>, Fault> {
        const PORT: &str = "money_movements.unsent";
        const SQL: &str = concat!(
            select_refund!(),
            "FORCE INDEX (refunds_by_state) WHERE r.sent = 0 ORDER BY r.id LIMIT ?"
        );
        at_most(PORT, max, REFUNDS_MAX)?;
        let rows = self.read(PORT, || statement(SQL).bind(max as u64)).await?;
        all(PORT, &rows, refund)
    }

    async fn sent(&self, refund: u64) -> Result<(), Fault> {
        const SQL: &str = "UPDATE refunds SET sent = 1, updated_at = UTC_TIMESTAMP(3) \
             WHERE id = ? AND sent = 0";
        let write = || statement(SQL).bind(refund);
        self.write("money_movements.sent", write).await.map(drop)
    }
}
