//! Orders within a transaction.

use std::collections::BTreeSet;

use seckill_domain::{Order, OrderId, OrderStatus, Stage, Timestamp};

use crate::fault::Trouble;
use crate::json_rows::{json_parts, wanted_ids};
use crate::row::{self, get_time, order_columns, reason_word, status_word};
use crate::session::{Session, statement};

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

/// In the order of their ids, as everybody who locks several does.
pub(super) async fn lock_many(
    session: &mut Session,
    ids: &[OrderId],
) -> Result<Vec<Order>, Trouble> {
    const SQL: &str = concat!(
        "SELECT ",
        order_columns!(),
        " FROM ",
        wanted_ids!(),
        "STRAIGHT_JOIN orders o ON o.id = wanted.id FOR UPDATE"
    );
    let ids: BTreeSet<u64> = ids.iter().map(|id| id.get()).collect();
    let mut orders = Vec::with_capacity(ids.len());
    for part in json_parts(ids.into_iter())? {
        let rows = session.rows(statement(SQL).bind(part.text)).await?;
        for row in &rows {
            orders.push(row::order(row)?);
        }
    }
    orders.sort_unstable_by_key(|order| order.id);
    Ok(orders)
}

/// In the order of the index, so that no more rows are locked than are returned.
pub(super) async fn lock_overdue(session: &mut Session, max: usize) -> Result<Vec<Order>, Trouble> {
    const SQL: &str = concat!(
        "SELECT ",
        order_columns!(),
        " FROM orders o FORCE INDEX (orders_by_deadline) \
         WHERE o.status = 'pending_payment' AND o.expires_at <= UTC_TIMESTAMP(3) \
         ORDER BY o.expires_at, o.id LIMIT ? FOR UPDATE SKIP LOCKED"
    );
    let rows = session.rows(statement(SQL).bind(max as u64)).await?;
    rows.iter().map(row::order).collect()
}

/// Id, status, reason and payment of an order.
fn stage(order: &Order) -> (u64, &'static str, Option<&'static str>, Option<&str>) {
    let (reason, payment) = match &order.stage {
        Stage::Paid { payment } | Stage::Refunded { payment } => (None, Some(payment.as_str())),
        Stage::Rejected { reason } => (Some(reason_word(*reason)), None),
        _ => (None, None),
    };
    (order.id.get(), status_word(order.status()), reason, payment)
}

/// The old stage is part of the condition: the client counts rows that were found, changed or not.
pub(super) async fn save(
    session: &mut Session,
    from: OrderStatus,
    orders: &[Order],
) -> Result<usize, Trouble> {
    const SQL: &str = "UPDATE JSON_TABLE(?, '$[*]' COLUMNS ( \
             id BIGINT UNSIGNED PATH '$[0]', \
             status VARCHAR(16) CHARACTER SET ascii PATH '$[1]', \
             reason VARCHAR(16) CHARACTER SET ascii PATH '$[2]', \
             payment VARCHAR(64) CHARACTER SET ascii PATH '$[3]')) new \
           STRAIGHT_JOIN orders o ON o.id = new.id \
         SET o.status = new.status, o.reason = new.reason, o.payment_id = new.payment, \
             o.updated_at = UTC_TIMESTAMP(3) \
         WHERE o.status = ?";
    let mut found = 0;
    for part in json_parts(orders.iter().map(stage))? {
        let save = statement(SQL).bind(part.text).bind(status_word(from));
        found += session.execute(save).await?.rows_affected();
    }
    usize::try_from(found).map_err(|error| Trouble::Broken(Box::new(error)))
}
