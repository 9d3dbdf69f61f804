//! The statements of a batch. Each writes any number of rows, which travel as one JSON parameter:
//! one text, prepared once per connection, whatever the size of the batch.

use seckill_application::ports::PartitionHead;
use seckill_domain::{Epoch, PartitionId};
use serde::Serialize;

use super::plan::{Hold, Move, NewOrder, Park, Plan, Settled, Take};
use super::slice::Slice;
use crate::fault::Trouble;
use crate::session::{Session, Statement, statement};
use crate::unit_of_work::rows_json;

/// Whether every row was written that should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    All,
    NotAll,
}

/// Moves the partition's position, if it is where the slice says. This is the fence: the row is
/// locked until the end of the transaction, and whoever knows an older fence, epoch or position
/// finds nothing to move.
pub(super) async fn advance(session: &mut Session, slice: &Slice<'_>) -> Result<bool, Trouble> {
    const SQL: &str = "UPDATE partitions SET applied_seq = ?, applied_ms = ?, applied_no = ? \
         WHERE partition_id = ? AND fence = ? AND epoch = ? \
           AND applied_seq = ? AND applied_ms = ? AND applied_no = ?";
    let position = |statement: Statement<'static>, head: &PartitionHead| {
        statement
            .bind(head.applied.get())
            .bind(head.entry.millis)
            .bind(head.entry.counter)
    };
    let update = position(statement(SQL), &slice.to)
        .bind(slice.partition.get())
        .bind(slice.from.fence.get())
        .bind(slice.from.epoch.get());
    let update = position(update, &slice.from);
    Ok(session.execute(update).await?.rows_affected() == 1)
}

/// Writes a plan: orders, holdings, what is parked, and last the stock, whose rows are the ones that
/// other transactions wait for.
pub(super) async fn write(
    session: &mut Session,
    partition: PartitionId,
    epoch: Epoch,
    plan: &Plan<'_>,
) -> Result<Written, Trouble> {
    let all = insert_orders(session, &plan.orders).await?
        && move_orders(session, &plan.moves).await?
        && hold(session, plan.holds()).await?
        && park(session, partition, epoch, &plan.parked).await?
        && take(session, plan.takes()).await?
        && settle(session, &plan.settled).await?;
    Ok(if all { Written::All } else { Written::NotAll })
}

/// Runs a statement over rows, its last parameter; `true` if it found at least as many. (An upsert
/// counts two for a row that was there.)
async fn run<T: Serialize>(
    session: &mut Session,
    statement: Statement<'static>,
    rows: impl Iterator<Item = T>,
) -> Result<bool, Trouble> {
    let mut count = 0;
    let rows = rows_json(rows.inspect(|_| count += 1))?;
    if count == 0 {
        return Ok(true);
    }
    let done = session.execute(statement.bind(rows)).await?;
    Ok(done.rows_affected() >= count)
}

async fn insert_orders(session: &mut Session, orders: &[NewOrder<'_>]) -> Result<bool, Trouble> {
    const SQL: &str = "INSERT INTO orders \
           (id, voucher_id, user_id, quantity, amount_minor, currency, status, reason, ticket, \
            idempotency_key, joined_seq, settled_seq, created_at, expires_at, updated_at) \
         SELECT new.id, v.id, new.buyer, new.quantity, v.price_minor * new.quantity, v.currency, \
            new.status, new.reason, new.ticket, new.idempotency_key, new.joined, new.settled, \
            COALESCE(TIMESTAMPADD(MICROSECOND, new.created * 1000, '1970-01-01 00:00:00'), \
                     UTC_TIMESTAMP(3)), \
            IF(new.status = 'pending_payment', \
               TIMESTAMPADD(SECOND, v.payment_window_s, UTC_TIMESTAMP(3)), NULL), \
            UTC_TIMESTAMP(3) \
         FROM JSON_TABLE(?, '$[*]' COLUMNS ( \
             id BIGINT UNSIGNED PATH '$.id', \
             voucher BIGINT UNSIGNED PATH '$.voucher', \
             buyer BIGINT UNSIGNED PATH '$.buyer', \
             quantity INT UNSIGNED PATH '$.quantity', \
             status VARCHAR(16) CHARACTER SET ascii PATH '$.status', \
             reason VARCHAR(16) CHARACTER SET ascii PATH '$.reason', \
             ticket BIGINT UNSIGNED PATH '$.ticket', \
             idempotency_key VARCHAR(64) CHARACTER SET ascii PATH '$.key', \
             joined BIGINT UNSIGNED PATH '$.joined', \
             settled BIGINT UNSIGNED PATH '$.settled', \
             created BIGINT PATH '$.created')) new \
           STRAIGHT_JOIN vouchers v ON v.id = new.voucher \
         WHERE v.status <> 'draft'";
    run(session, statement(SQL), orders.iter()).await
}

async fn move_orders(session: &mut Session, moves: &[Move]) -> Result<bool, Trouble> {
    const SQL: &str = "UPDATE JSON_TABLE(?, '$[*]' COLUMNS ( \
             id BIGINT UNSIGNED PATH '$.id', \
             voucher BIGINT UNSIGNED PATH '$.voucher', \
             buyer BIGINT UNSIGNED PATH '$.buyer', \
             quantity INT UNSIGNED PATH '$.quantity', \
             was VARCHAR(16) CHARACTER SET ascii PATH '$.was', \
             status VARCHAR(16) CHARACTER SET ascii PATH '$.status', \
             reason VARCHAR(16) CHARACTER SET ascii PATH '$.reason', \
             joined BIGINT UNSIGNED PATH '$.joined', \
             settled BIGINT UNSIGNED PATH '$.settled')) new \
           STRAIGHT_JOIN orders o ON o.id = new.id \
           STRAIGHT_JOIN vouchers v ON v.id = o.voucher_id \
         SET o.status = new.status, o.reason = new.reason, \
             o.joined_seq = COALESCE(new.joined, o.joined_seq), \
             o.settled_seq = COALESCE(new.settled, o.settled_seq), \
             o.expires_at = IF(new.was = 'waiting' AND new.status = 'pending_payment', \
               TIMESTAMPADD(SECOND, v.payment_window_s, UTC_TIMESTAMP(3)), o.expires_at), \
             o.updated_at = UTC_TIMESTAMP(3) \
         WHERE o.status = new.was AND o.voucher_id = new.voucher AND o.user_id = new.buyer \
           AND o.quantity = new.quantity";
    run(session, statement(SQL), moves.iter()).await
}

async fn hold(session: &mut Session, holds: impl Iterator<Item = Hold>) -> Result<bool, Trouble> {
    const SQL: &str = "INSERT INTO holdings (voucher_id, user_id, units, unit_limit) \
         SELECT v.id, new.buyer, new.units, v.per_buyer_limit \
         FROM JSON_TABLE(?, '$[*]' COLUMNS ( \
             voucher BIGINT UNSIGNED PATH '$.voucher', \
             buyer BIGINT UNSIGNED PATH '$.buyer', \
             units BIGINT PATH '$.units')) new \
           STRAIGHT_JOIN vouchers v ON v.id = new.voucher \
         ON DUPLICATE KEY UPDATE units = holdings.units + new.units";
    run(session, statement(SQL), holds).await
}

async fn take(session: &mut Session, takes: impl Iterator<Item = Take>) -> Result<bool, Trouble> {
    const SQL: &str = "UPDATE JSON_TABLE(?, '$[*]' COLUMNS ( \
             voucher BIGINT UNSIGNED PATH '$.voucher', \
             units BIGINT PATH '$.units', \
             withdrawn BIGINT PATH '$.withdrawn')) taken \
           STRAIGHT_JOIN voucher_stock s ON s.voucher_id = taken.voucher \
         SET s.stock_units = s.stock_units - taken.units, \
             s.total_units = s.total_units - taken.withdrawn \
         WHERE s.stock_units >= taken.units";
    run(session, statement(SQL), takes).await
}

async fn settle(session: &mut Session, settled: &[Settled]) -> Result<bool, Trouble> {
    const SQL: &str = "UPDATE JSON_TABLE(?, '$[*]' COLUMNS ( \
             id BIGINT UNSIGNED PATH '$.id', \
             state VARCHAR(16) CHARACTER SET ascii PATH '$.state', \
             settled BIGINT UNSIGNED PATH '$.settled')) new \
           STRAIGHT_JOIN stock_adjustments a ON a.id = new.id \
         SET a.state = new.state, a.settled_seq = new.settled, a.updated_at = UTC_TIMESTAMP(3)";
    run(session, statement(SQL), settled.iter()).await
}

async fn park(
    session: &mut Session,
    partition: PartitionId,
    epoch: Epoch,
    parked: &[Park],
) -> Result<bool, Trouble> {
    const SQL: &str = "INSERT INTO parked_messages \
           (partition_id, epoch, seq, entry_ms, entry_no, voucher_id, order_id, units, reason, \
            payload, state, created_at, updated_at) \
         SELECT ?, ?, new.seq, new.millis, new.counter, new.voucher, new.claimed, new.units, \
            new.reason, new.payload, 'parked', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) \
         FROM JSON_TABLE(?, '$[*]' COLUMNS ( \
             seq BIGINT UNSIGNED PATH '$.seq', \
             millis BIGINT UNSIGNED PATH '$.millis', \
             counter BIGINT UNSIGNED PATH '$.counter', \
             voucher BIGINT UNSIGNED PATH '$.voucher', \
             claimed BIGINT UNSIGNED PATH '$.order', \
             units INT UNSIGNED PATH '$.units', \
             reason VARCHAR(16) CHARACTER SET ascii PATH '$.reason', \
             payload TEXT CHARACTER SET utf8mb4 PATH '$.payload')) new \
         ON DUPLICATE KEY UPDATE parked_messages.id = parked_messages.id";
    let insert = statement(SQL).bind(partition.get()).bind(epoch.get());
    run(session, insert, parked.iter()).await
}
