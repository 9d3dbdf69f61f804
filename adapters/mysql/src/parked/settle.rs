//! Settling a message: one transaction, in which nobody else settles it or writes to its partition.

use seckill_application::ports::ParkedState;

use super::{Row, row, select_parked};
use crate::fault::Trouble;
use crate::session::{Session, statement};

/// A message, locked, and its partition's position before it, as everybody does: until the end of
/// the transaction no order writer commits orders. `None` if there is none of this number.
pub(super) async fn lock(session: &mut Session, id: u64) -> Result<Option<Row>, Trouble> {
    const PARTITION: &str = "SELECT p.partition_id FROM partitions p \
         WHERE p.partition_id = (SELECT m.partition_id FROM parked_messages m WHERE m.id = ?) \
         FOR UPDATE";
    const MESSAGE: &str = concat!(select_parked!(), "WHERE p.id = ? FOR UPDATE");
    let partition = session.row(statement(PARTITION).bind(id)).await?;
    if partition.is_none() {
        return Ok(None);
    }
    let message = session.row(statement(MESSAGE).bind(id)).await?;
    message.as_ref().map(row).transpose()
}

/// Puts the units that were taken out of the stock for a message back. The voucher's row is locked by now.
pub(super) async fn give_back(session: &mut Session, row: &Row) -> Result<(), Trouble> {
    const SQL: &str = "UPDATE voucher_stock SET stock_units = stock_units + ? WHERE voucher_id = ?";
    let (Some(voucher), units @ 1..) = (row.message.voucher, row.held) else {
        return Ok(());
    };
    let update = statement(SQL).bind(units).bind(voucher.get());
    match session.execute(update).await?.rows_affected() {
        1 => Ok(()),
        _ => Err(Trouble::broken("units are parked of no voucher")),
    }
}

/// Writes down how a message was settled.
pub(super) async fn note(
    session: &mut Session,
    id: u64,
    state: &ParkedState,
) -> Result<(), Trouble> {
    const SQL: &str = "UPDATE parked_messages \
         SET state = ?, discarded_because = ?, updated_at = UTC_TIMESTAMP(3) \
         WHERE id = ? AND state = 'parked'";
    let (word, because) = match state {
        ParkedState::Parked => ("parked", None),
        ParkedState::Replayed => ("replayed", None),
        ParkedState::Discarded(because) => ("discarded", Some(because.as_str())),
    };
    let note = statement(SQL).bind(word).bind(because).bind(id);
    match session.execute(note).await?.rows_affected() {
        1 => Ok(()),
        _ => Err(Trouble::broken("a message was settled under its lock")),
    }
}
