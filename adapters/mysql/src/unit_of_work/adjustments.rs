//! Changes of stock within a transaction.

use seckill_application::ports::{Adjustment, AdjustmentReply, AdjustmentState, NewAdjustment};
use seckill_domain::{AdjustmentId, GateChange, GateVersion, VoucherId};
use sqlx::mysql::MySqlRow;

use super::releases::{new_version, write_update};
use crate::fault::Trouble;
use crate::row::{get, read_adjustment};
use crate::session::{Session, statement};

fn adjustment(row: &MySqlRow) -> Result<Adjustment, Trouble> {
    Ok(Adjustment {
        id: AdjustmentId::new(get(row, "id")?),
        delta: get(row, "delta")?,
        state: read_adjustment(get(row, "state")?)?,
    })
}

pub(super) async fn find(
    session: &mut Session,
    id: AdjustmentId,
) -> Result<Option<Adjustment>, Trouble> {
    const SQL: &str = "SELECT id, delta, state FROM stock_adjustments WHERE id = ?";
    let row = session.row(statement(SQL).bind(id.get())).await?;
    row.as_ref().map(adjustment).transpose()
}

/// The unique key finds an earlier use; nothing is selected first.
pub(super) async fn record(
    session: &mut Session,
    new: &NewAdjustment,
) -> Result<AdjustmentReply, Trouble> {
    const SQL: &str = "INSERT INTO stock_adjustments \
           (voucher_id, delta, reason, idempotency_key, state, created_at, updated_at) \
         VALUES (?, ?, ?, ?, 'pending', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3)) \
         ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)";
    let insert = statement(SQL)
        .bind(new.voucher.get())
        .bind(new.delta)
        .bind(new.reason.as_str())
        .bind(new.key.as_ref().map(|key| key.as_str().to_owned()));
    let id = AdjustmentId::new(session.execute(insert).await?.last_insert_id());
    let stored = find(session, id)
        .await?
        .ok_or_else(|| Trouble::broken("an adjustment is gone in the transaction that made it"))?;
    Ok(if stored.delta == new.delta {
        AdjustmentReply::Recorded(stored)
    } else {
        AdjustmentReply::KeyReused
    })
}

pub(super) async fn add_units(
    session: &mut Session,
    voucher: VoucherId,
    adjustment: AdjustmentId,
    units: u32,
) -> Result<GateVersion, Trouble> {
    const STOCK: &str = "UPDATE voucher_stock SET total_units = total_units + ?, \
           stock_units = stock_units + ?, gate_version = LAST_INSERT_ID(gate_version + 1) \
         WHERE voucher_id = ?";
    const STATE: &str = "UPDATE stock_adjustments SET state = 'applied', \
           updated_at = UTC_TIMESTAMP(3) \
         WHERE id = ? AND voucher_id = ? AND delta = ? AND state = 'pending'";
    let stock = statement(STOCK).bind(units).bind(units).bind(voucher.get());
    let version = new_version(&session.execute(stock).await?)?;
    let state = statement(STATE)
        .bind(adjustment.get())
        .bind(voucher.get())
        .bind(units);
    if session.execute(state).await?.rows_affected() != 1 {
        return Err(Trouble::broken("the adjustment is not pending"));
    }
    write_update(
        session,
        voucher,
        version,
        vec![GateChange::AddUnits { units }],
    )
    .await?;
    Ok(version)
}

pub(super) async fn refuse(session: &mut Session, id: AdjustmentId) -> Result<(), Trouble> {
    const SQL: &str = "UPDATE stock_adjustments SET state = 'refused', \
           updated_at = UTC_TIMESTAMP(3) \
         WHERE id = ? AND state = 'pending'";
    if session
        .execute(statement(SQL).bind(id.get()))
        .await?
        .rows_affected()
        == 1
    {
        return Ok(());
    }
    match find(session, id).await?.map(|stored| stored.state) {
        Some(AdjustmentState::Refused) => Ok(()),
        _ => Err(Trouble::broken("the adjustment is not pending")),
    }
}
