//! Orders within a transaction.

use seckill_domain::{Order, OrderId, OrderStatus, Stage, Timestamp};
use serde::Serialize;

use crate::fault::Trouble;
use crate::row::{self, get_time, order_columns, reason_word, status_word};
use crate::session::{Session, statement};

/// Most orders of one sweep.
const OVERDUE_MAX: usize = 1_000;

pub(super) async fn now(session: &mut Session) -> Result<Timestamp, Trouble> {
    let row = session
        .row(statement("SELECT UTC_TIMESTAMP(3) AS now"))
        .await?;
    let row = row.ok_or_else(|| Trouble::broken("no time"))?;
    get_time(&row, "now")
}

pub(super) async fn lock(session: &mut Session, id: OrderId) -> Result<Option<Order>, Trouble> {
    const SQL: &str = concat!(
        "SELECT ",
        order_columns!(),
        " FROM orders o WHERE o.id = ? FOR UPDATE"
    );
    let row = session.row(statement(SQL).bind(id.get())).await?;
    row.as_ref().map(row::order).transpose()
}

pub(super) async fn lock_overdue(session: &mut Session, max: usize) -> Result<Vec<Order>, Trouble> {
    const SQL: &str = concat!(
        "SELECT ",
        order_columns!(),
        " FROM orders o WHERE o.status = 'pending_payment' AND o.expires_at <= UTC_TIMESTAMP(3) \
         ORDER BY o.expires_at, o.id LIMIT ? FOR UPDATE SKIP LOCKED"
    );
    let max = max.clamp(1, OVERDUE_MAX) as u64;
    let rows = session.rows(statement(SQL).bind(max)).await?;
    rows.iter().map(row::order).collect()
}

#[derive(Serialize)]
struct NewStage<'o> {
    id: u64,
    status: &'static str,
    reason: Option<&'static str>,
    payment: Option<&'o str>,
}

impl<'o> NewStage<'o> {
    fn of(order: &'o Order) -> Self {
        let (reason, payment) = match &order.stage {
            Stage::Paid { payment } | Stage::Refunded { payment } => (None, Some(payment.as_str())),
            Stage::Rejected { reason } => (Some(reason_word(*reason)), None),
            _ => (None, None),
        };
        Self {
            id: order.id.get(),
            status: status_word(order.status()),
            reason,
            payment,
        }
    }
}

/// The old stage is part of the condition: the client counts rows that were found, changed or not.
pub(super) async fn save(
    session: &mut Session,
    from: OrderStatus,
    orders: &[Order],
) -> Result<usize, Trouble> {
    const SQL: &str = "UPDATE JSON_TABLE(?, '$[*]' COLUMNS ( \
             id BIGINT UNSIGNED PATH '$.id', \
             status VARCHAR(16) CHARACTER SET ascii PATH '$.status', \
             reason VARCHAR(16) CHARACTER SET ascii PATH '$.reason', \
             payment VARCHAR(64) CHARACTER SET ascii PATH '$.payment')) new \
           STRAIGHT_JOIN orders o ON o.id = new.id \
         SET o.status = new.status, o.reason = new.reason, o.payment_id = new.payment, \
             o.updated_at = UTC_TIMESTAMP(3) \
         WHERE o.status = ?";
    if orders.is_empty() {
        return Ok(0);
    }
    let stages = rows_json(orders.iter().map(NewStage::of))?;
    let found = session
        .execute(statement(SQL).bind(stages).bind(status_word(from)))
        .await?
        .rows_affected();
    usize::try_from(found).map_err(|error| Trouble::Broken(Box::new(error)))
}

/// Rows of a statement's parameter, as a JSON list.
pub(crate) fn rows_json<T: Serialize>(rows: impl Iterator<Item = T>) -> Result<String, Trouble> {
    let rows: Vec<T> = rows.collect();
    serde_json::to_string(&rows).map_err(|error| Trouble::Broken(Box::new(error)))
}
