//! A message is given up.

use seckill_application::Fault;
use seckill_application::ports::{AdjustmentState, EntryId, ParkedReply, ParkedState};
use seckill_domain::{
    AdjustmentId, Claim, Decision, GateChange, NewEvent, Order, OrderStatus, RejectReason,
    VoucherId,
};

use super::Row;
use super::settle::{give_back, lock, note};
use crate::events::{self, of_claim};
use crate::fault::Trouble;
use crate::row::{self, adjustment_word, moment, order_columns, reason_word, status_word};
use crate::session::{Session, give_up, statement};
use crate::store::Store;
use crate::unit_of_work::releases::{lock_stock, return_units, write_update};

const PORT: &str = "parked_messages.discard";

/// Gives a message up: its units return, its order says why, and the gate lets go of what it took.
pub(super) async fn discard(store: &Store, id: u64, reason: &str) -> Result<ParkedReply, Fault> {
    let mut session = store.begin(PORT).await?;
    match work(&mut session, id, reason).await {
        Ok(Ok(())) => {
            let committed = session.commit().await;
            committed.map_err(|trouble| trouble.at_commit(PORT))?;
            Ok(ParkedReply::Settled)
        }
        Ok(Err(reply)) => Ok(reply),
        Err(trouble) => Err(give_up(session, PORT, trouble).await),
    }
}

/// `Err` is an answer with which nothing changes.
async fn work(
    session: &mut Session,
    id: u64,
    reason: &str,
) -> Result<Result<(), ParkedReply>, Trouble> {
    let Some(row) = lock(session, id).await? else {
        return Ok(Err(ParkedReply::NotFound));
    };
    match &row.message.state {
        ParkedState::Parked => {}
        ParkedState::Replayed => return Ok(Err(ParkedReply::Conflict)),
        ParkedState::Discarded(_) => return Ok(Err(ParkedReply::Settled)),
    }
    give_in(session, &row).await?;
    note(session, id, &ParkedState::Discarded(reason.to_owned())).await?;
    Ok(Ok(()))
}

/// Ends what the message is about, and has the gate release just as many units as the ledger had
/// put aside, or counted off its stock, for it.
async fn give_in(session: &mut Session, row: &Row) -> Result<(), Trouble> {
    let Some(decision) = &row.decision else {
        return Ok(());
    };
    if let Some(claim) = decision.claim()
        && !reject(session, row.message.entry, claim).await?
    {
        return give_back(session, row).await;
    }
    match decision.undone_by(row.held + row.unheld) {
        Some(change) => release(session, decision.voucher(), change, row.held).await?,
        None => give_back(session, row).await?,
    }
    match decision {
        Decision::Withdrawn { adjustment, .. } => refuse(session, *adjustment).await,
        _ => Ok(()),
    }
}

/// Units are stock again, and the gate is told. A voucher that is not there has neither.
async fn release(
    session: &mut Session,
    voucher: VoucherId,
    change: GateChange,
    units: u32,
) -> Result<(), Trouble> {
    if !lock_stock(session, voucher).await? {
        return Ok(());
    }
    let version = return_units(session, voucher, units.into()).await?;
    write_update(session, voucher, version, vec![change]).await
}

/// Refuses an adjustment that is pending.
async fn refuse(session: &mut Session, adjustment: AdjustmentId) -> Result<(), Trouble> {
    const SQL: &str = "UPDATE stock_adjustments SET state = ?, updated_at = UTC_TIMESTAMP(3) \
         WHERE id = ? AND state = ?";
    let refuse = statement(SQL)
        .bind(adjustment_word(AdjustmentState::Refused))
        .bind(adjustment.get())
        .bind(adjustment_word(AdjustmentState::Pending));
    session.execute(refuse).await.map(drop)
}

/// Rejects the order of a claim, writing it first if there is none. `false` if the order lives
/// after all, and its units with it.
async fn reject(session: &mut Session, entry: EntryId, claim: &Claim) -> Result<bool, Trouble> {
    const LOCK: &str = concat!(
        "SELECT ",
        order_columns!(),
        " FROM orders o WHERE o.id = ? FOR UPDATE"
    );
    let known = session.row(statement(LOCK).bind(claim.order.get())).await?;
    let rejected = match known.as_ref().map(row::order).transpose()? {
        None => claim.quantity > 0 && insert(session, entry, claim).await?,
        Some(order) if !is_claimed(&order, claim) => return Ok(true),
        Some(order) if order.status() == OrderStatus::Waiting => {
            end_wait(session, &order).await?;
            true
        }
        Some(order) => return Ok(!order.status().is_live()),
    };
    if rejected {
        let event: NewEvent = of_claim(claim, OrderStatus::Rejected);
        events::append(session, &[event]).await?;
    }
    Ok(true)
}

fn is_claimed(order: &Order, claim: &Claim) -> bool {
    (order.voucher, order.buyer) == (claim.voucher, claim.buyer)
}

async fn end_wait(session: &mut Session, order: &Order) -> Result<(), Trouble> {
    const SQL: &str = "UPDATE orders SET status = ?, reason = ?, updated_at = UTC_TIMESTAMP(3) \
         WHERE id = ? AND status = 'waiting'";
    let end = statement(SQL)
        .bind(status_word(OrderStatus::Rejected))
        .bind(reason_word(RejectReason::Discarded))
        .bind(order.id.get());
    match session.execute(end).await?.rows_affected() {
        1 => Ok(()),
        _ => Err(Trouble::broken("an order moved under its lock")),
    }
}

/// Writes a rejected order. Its key is left out if another order has it. `false` if its voucher is
/// not there.
async fn insert(session: &mut Session, entry: EntryId, claim: &Claim) -> Result<bool, Trouble> {
    const SQL: &str = "INSERT INTO orders \
           (id, voucher_id, user_id, quantity, amount_minor, currency, status, reason, \
            idempotency_key, created_at, updated_at) \
         SELECT ?, v.id, ?, ?, v.price_minor * ?, v.currency, ?, ?, \
            IF(EXISTS (SELECT 1 FROM orders k WHERE k.user_id = ? AND k.voucher_id = v.id \
                 AND k.idempotency_key = ?), NULL, ?), \
            COALESCE(?, UTC_TIMESTAMP(3)), UTC_TIMESTAMP(3) \
         FROM vouchers v WHERE v.id = ?";
    let key = claim.key.as_ref().map(ToString::to_string);
    let insert = statement(SQL)
        .bind(claim.order.get())
        .bind(claim.buyer.get())
        .bind(claim.quantity)
        .bind(claim.quantity)
        .bind(status_word(OrderStatus::Rejected))
        .bind(reason_word(RejectReason::Discarded))
        .bind(claim.buyer.get())
        .bind(key.clone())
        .bind(key)
        .bind(moment(entry.written_at()))
        .bind(claim.voucher.get());
    Ok(session.execute(insert).await?.rows_affected() == 1)
}
