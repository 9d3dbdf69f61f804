//! The statements of a batch. Each writes any number of rows.

use std::collections::{BTreeMap, HashMap};

use seckill_application::ports::PartitionHead;
use seckill_domain::{Epoch, OrderId, PartitionId, Timestamp};
use serde::Serialize;

use super::plan::{Move, NewOrder, Park, Plan, Settled};
use super::slice::Slice;
use crate::events;
use crate::fault::Trouble;
use crate::json_rows::{json_ids, json_parts, wanted_ids};
use crate::row::{get, get_time};
use crate::session::{Session, Statement, statement};

/// What a batch of grants runs, so that sessions may have it prepared.
pub(crate) const EVERY_BATCH: [&str; 7] = [
    ADVANCE,
    INSERT_ORDERS,
    DEADLINES,
    HOLD,
    events::APPEND,
    events::TO_BE_TOLD,
    TAKE,
];

const ADVANCE: &str = "UPDATE partitions SET applied_seq = ?, applied_ms = ?, applied_no = ? \
     WHERE partition_id = ? AND fence = ? AND epoch = ? \
       AND applied_seq = ? AND applied_ms = ? AND applied_no = ?";

/// Moves the partition's position, if it is where the slice says. This is the fence: the row is
/// locked until the end of the transaction, and whoever knows an older fence, epoch or position
/// finds nothing to move.
pub(super) async fn advance(session: &mut Session, slice: &Slice<'_>) -> Result<bool, Trouble> {
    let position = |statement: Statement<'static>, head: &PartitionHead| {
        statement
            .bind(head.applied.get())
            .bind(head.entry.millis)
            .bind(head.entry.counter)
    };
    let update = position(statement(ADVANCE), &slice.to)
        .bind(slice.partition.get())
        .bind(slice.from.fence.get())
        .bind(slice.from.epoch.get());
    let update = position(update, &slice.from);
    Ok(session.execute(update).await?.rows_affected() == 1)
}

/// Writes a plan. Returns the ends of the payment windows that begin; `None` if a row was not written
/// that should be.
pub(super) async fn write(
    session: &mut Session,
    partition: PartitionId,
    epoch: Epoch,
    plan: &Plan<'_>,
) -> Result<Option<Vec<(OrderId, Timestamp)>>, Trouble> {
    let Some(due) = rows(session, plan).await? else {
        return Ok(None);
    };
    let all = park(session, partition, epoch, &plan.parked).await? && stock(session, plan).await?;
    Ok(all.then_some(due))
}

/// Writes the rows of a plan that nobody else wants: orders, holdings, events. Returns as
/// [`write`].
pub(super) async fn rows(
    session: &mut Session,
    plan: &Plan<'_>,
) -> Result<Option<Vec<(OrderId, Timestamp)>>, Trouble> {
    let Some(mut windows) = insert_orders(session, &plan.orders).await? else {
        return Ok(None);
    };
    if !(move_orders(session, &plan.moves).await? && hold(session, plan).await?) {
        return Ok(None);
    }
    let moved = plan.moves.iter().filter(|order| order.is_due());
    windows.extend(moved.map(|order| vec![OrderId::new(order.id)]));
    let due = deadlines(session, windows).await?;
    events::append(session, &plan.events).await?;
    Ok(Some(due))
}

/// Takes the units of a plan out of the stock, last, since its rows are the ones that other
/// transactions wait for. `false` if there are not enough.
pub(super) async fn stock(session: &mut Session, plan: &Plan<'_>) -> Result<bool, Trouble> {
    Ok(take(session, plan).await? && settle(session, &plan.settled).await?)
}

const DEADLINES: &str = concat!(
    "SELECT o.id, o.expires_at FROM ",
    wanted_ids!(),
    "STRAIGHT_JOIN orders o ON o.id = wanted.id WHERE o.expires_at IS NOT NULL"
);

/// Orders whose payment windows end at the same moment.
type Window = Vec<OrderId>;

/// When the orders of these windows have to be paid, as the database has just written it down. One
/// order of each is asked for.
async fn deadlines(
    session: &mut Session,
    windows: Vec<Window>,
) -> Result<Vec<(OrderId, Timestamp)>, Trouble> {
    let firsts = windows
        .iter()
        .enumerate()
        .filter_map(|(at, window)| Some((*window.first()?, at)));
    let firsts: HashMap<OrderId, usize> = firsts.collect();
    if firsts.is_empty() {
        return Ok(Vec::new());
    }
    let ids = json_ids(firsts.keys().map(|order| order.get()));
    let mut due = Vec::with_capacity(windows.iter().map(Vec::len).sum());
    for row in session.rows(statement(DEADLINES).bind(ids)).await? {
        let end = get_time(&row, "expires_at")?;
        let window = firsts.get(&OrderId::new(get(&row, "id")?));
        let window = window.and_then(|at| windows.get(*at));
        due.extend(window.into_iter().flatten().map(|order| (*order, end)));
    }
    Ok(due)
}

/// Runs a statement over rows, its last parameter; `true` if it found at least as many. (An upsert
/// counts two for a row that was there.)
async fn run<T: Serialize>(
    session: &mut Session,
    statement: impl Fn() -> Statement<'static>,
    rows: impl Iterator<Item = T>,
) -> Result<bool, Trouble> {
    for part in json_parts(rows)? {
        let done = session.execute(statement().bind(part.text)).await?;
        if done.rows_affected() < part.count {
            return Ok(false);
        }
    }
    Ok(true)
}

const INSERT_ORDERS: &str = "INSERT INTO orders \
       (id, voucher_id, user_id, quantity, amount_minor, currency, status, reason, ticket, \
        idempotency_key, joined_seq, settled_seq, created_at, expires_at, updated_at) \
     SELECT new.id, v.id, new.buyer, new.quantity, v.price_minor * new.quantity, v.currency, \
        new.status, new.reason, COALESCE(new.ticket, 0), new.idempotency_key, new.joined, \
        new.settled, \
        COALESCE(TIMESTAMPADD(MICROSECOND, new.created * 1000, '1970-01-01 00:00:00'), \
                 UTC_TIMESTAMP(3)), \
        IF(new.status = 'pending_payment', \
           TIMESTAMPADD(SECOND, v.payment_window_s, UTC_TIMESTAMP(3)), NULL), \
        UTC_TIMESTAMP(3) \
     FROM JSON_TABLE(?, '$[*]' COLUMNS ( \
         id BIGINT UNSIGNED PATH '$[0]', \
         voucher BIGINT UNSIGNED PATH '$[1]', \
         buyer BIGINT UNSIGNED PATH '$[2]', \
         quantity INT UNSIGNED PATH '$[3]', \
         status VARCHAR(16) CHARACTER SET ascii PATH '$[4]', \
         settled BIGINT UNSIGNED PATH '$[5]', \
         created BIGINT PATH '$[6]', \
         idempotency_key VARCHAR(64) CHARACTER SET ascii PATH '$[7]', \
         joined BIGINT UNSIGNED PATH '$[8]', \
         ticket BIGINT UNSIGNED PATH '$[9]', \
         reason VARCHAR(16) CHARACTER SET ascii PATH '$[10]')) new \
       STRAIGHT_JOIN vouchers v ON v.id = new.voucher \
     WHERE v.status <> 'draft'";

/// Returns the payment windows that begin: the clock stands still for a statement, so all orders of a
/// voucher that one inserts have the same. `None` if not all were inserted.
async fn insert_orders(
    session: &mut Session,
    orders: &[NewOrder<'_>],
) -> Result<Option<Vec<Window>>, Trouble> {
    let rows = orders.iter().map(|new| {
        (
            new.id,
            new.voucher,
            new.buyer,
            new.quantity,
            new.status,
            new.settled,
            new.created,
            new.key,
            new.joined,
            new.ticket,
            new.reason,
        )
    });
    let (mut windows, mut rest) = (Vec::new(), orders);
    for part in json_parts(rows)? {
        let insert = statement(INSERT_ORDERS).bind(part.text);
        if session.execute(insert).await?.rows_affected() < part.count {
            return Ok(None);
        }
        let count = usize::try_from(part.count).unwrap_or(usize::MAX);
        let (inserted, others) = rest.split_at(count.min(rest.len()));
        windows.extend(windows_of(inserted));
        rest = others;
    }
    Ok(Some(windows))
}

/// The windows that begin with orders of one statement.
fn windows_of(inserted: &[NewOrder<'_>]) -> impl Iterator<Item = Window> {
    let mut windows: BTreeMap<u64, Window> = BTreeMap::new();
    for order in inserted.iter().filter(|order| order.is_due()) {
        let window = windows.entry(order.voucher).or_default();
        window.push(OrderId::new(order.id));
    }
    windows.into_values()
}

async fn move_orders(session: &mut Session, moves: &[Move]) -> Result<bool, Trouble> {
    const SQL: &str = "UPDATE JSON_TABLE(?, '$[*]' COLUMNS ( \
             id BIGINT UNSIGNED PATH '$[0]', \
             voucher BIGINT UNSIGNED PATH '$[1]', \
             buyer BIGINT UNSIGNED PATH '$[2]', \
             quantity INT UNSIGNED PATH '$[3]', \
             was VARCHAR(16) CHARACTER SET ascii PATH '$[4]', \
             status VARCHAR(16) CHARACTER SET ascii PATH '$[5]', \
             reason VARCHAR(16) CHARACTER SET ascii PATH '$[6]', \
             joined BIGINT UNSIGNED PATH '$[7]', \
             settled BIGINT UNSIGNED PATH '$[8]')) new \
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
    let rows = moves.iter().map(|new| {
        (
            new.id,
            new.voucher,
            new.buyer,
            new.quantity,
            new.was,
            new.status,
            new.reason,
            new.joined,
            new.settled,
        )
    });
    run(session, || statement(SQL), rows).await
}

const HOLD: &str = "INSERT INTO holdings (voucher_id, user_id, units, unit_limit) \
     SELECT v.id, new.buyer, new.units, v.per_buyer_limit \
     FROM JSON_TABLE(?, '$[*]' COLUMNS ( \
         voucher BIGINT UNSIGNED PATH '$[0]', \
         buyer BIGINT UNSIGNED PATH '$[1]', \
         units BIGINT PATH '$[2]')) new \
       STRAIGHT_JOIN vouchers v ON v.id = new.voucher \
     ON DUPLICATE KEY UPDATE units = holdings.units + new.units";

async fn hold(session: &mut Session, plan: &Plan<'_>) -> Result<bool, Trouble> {
    let rows = plan
        .holds
        .iter()
        .map(|((voucher, buyer), units)| (voucher.get(), buyer.get(), *units));
    run(session, || statement(HOLD), rows).await
}

const TAKE: &str = "UPDATE JSON_TABLE(?, '$[*]' COLUMNS ( \
         voucher BIGINT UNSIGNED PATH '$[0]', \
         units BIGINT PATH '$[1]', \
         withdrawn BIGINT PATH '$[2]')) taken \
       STRAIGHT_JOIN voucher_stock s ON s.voucher_id = taken.voucher \
     SET s.stock_units = s.stock_units - taken.units, \
         s.total_units = s.total_units - taken.withdrawn \
     WHERE s.stock_units >= taken.units";

async fn take(session: &mut Session, plan: &Plan<'_>) -> Result<bool, Trouble> {
    let rows = plan.takes.iter().map(|(voucher, units)| {
        let withdrawn = plan.withdrawn.get(voucher).copied().unwrap_or(0);
        (voucher.get(), *units, withdrawn)
    });
    run(session, || statement(TAKE), rows).await
}

async fn settle(session: &mut Session, settled: &[Settled]) -> Result<bool, Trouble> {
    const SQL: &str = "UPDATE JSON_TABLE(?, '$[*]' COLUMNS ( \
             id BIGINT UNSIGNED PATH '$[0]', \
             state VARCHAR(16) CHARACTER SET ascii PATH '$[1]', \
             sequence BIGINT UNSIGNED PATH '$[2]')) new \
           STRAIGHT_JOIN stock_adjustments a ON a.id = new.id \
         SET a.state = new.state, a.settled_seq = new.sequence, a.updated_at = UTC_TIMESTAMP(3)";
    let rows = settled.iter().map(|new| (new.id, new.state, new.sequence));
    run(session, || statement(SQL), rows).await
}

async fn park(
    session: &mut Session,
    partition: PartitionId,
    epoch: Epoch,
    parked: &[Park],
) -> Result<bool, Trouble> {
    const SQL: &str = "INSERT INTO parked_messages \
           (partition_id, epoch, seq, entry_ms, entry_no, voucher_id, order_id, units, unheld_units, \
            reason, payload, state, created_at, updated_at) \
         SELECT ?, ?, new.seq, new.millis, new.counter, new.voucher, new.claimed, new.units, \
            new.unheld, new.reason, new.payload, 'parked', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) \
         FROM JSON_TABLE(?, '$[*]' COLUMNS ( \
             seq BIGINT UNSIGNED PATH '$[0]', \
             millis BIGINT UNSIGNED PATH '$[1]', \
             counter BIGINT UNSIGNED PATH '$[2]', \
             voucher BIGINT UNSIGNED PATH '$[3]', \
             claimed BIGINT UNSIGNED PATH '$[4]', \
             units INT UNSIGNED PATH '$[5]', \
             unheld INT UNSIGNED PATH '$[6]', \
             reason VARCHAR(16) CHARACTER SET ascii PATH '$[7]', \
             payload TEXT CHARACTER SET utf8mb4 PATH '$[8]')) new \
         ON DUPLICATE KEY UPDATE parked_messages.id = parked_messages.id";
    let insert = || statement(SQL).bind(partition.get()).bind(epoch.get());
    let rows = parked.iter().map(|new| {
        (
            new.seq,
            new.millis,
            new.counter,
            new.voucher,
            new.order,
            new.units,
            new.unheld,
            new.reason,
            new.payload.as_str(),
        )
    });
    run(session, insert, rows).await
}
