//! How often sales were loaded into the gate. A row of its own per voucher, which no order and no
//! setting locks.

use seckill_application::Fault;
use seckill_application::ports::Report;
use seckill_domain::VoucherId;

use crate::fault::{Trouble, at_most};
use crate::json_rows::{json_ids, json_parts, wanted_ids};
use crate::page::all;
use crate::row::get;
use crate::session::{Session, statement};
use crate::store::Store;

const VOUCHERS_MAX: usize = 1_000;

/// Counts a load. Returns whether it was not the first.
pub(super) async fn note(store: &Store, voucher: VoucherId) -> Result<bool, Fault> {
    const SQL: &str = "INSERT INTO gate_loads (voucher_id, loads, told) VALUES (?, 1, 1) \
         ON DUPLICATE KEY UPDATE loads = loads + 1";
    /// Rows that the servers count for a row that was there.
    const UPDATED: u64 = 2;
    let write = || statement(SQL).bind(voucher.get());
    let rows = store.write("reconciliations.note_load", write).await?;
    Ok(rows == UPDATED)
}

/// Loads that no report has told of.
pub(super) async fn untold(
    store: &Store,
    vouchers: &[VoucherId],
) -> Result<Vec<(VoucherId, u32)>, Fault> {
    const PORT: &str = "reconciliations.reloads";
    const SQL: &str = concat!(
        "SELECT l.voucher_id, l.loads - l.told AS untold FROM ",
        wanted_ids!(),
        "STRAIGHT_JOIN gate_loads l ON l.voucher_id = wanted.id AND l.loads > l.told"
    );
    at_most(PORT, vouchers.len(), VOUCHERS_MAX)?;
    let ids = json_ids(vouchers.iter().map(|voucher| voucher.get()));
    let rows = store.read(PORT, || statement(SQL).bind(&ids)).await?;
    all(PORT, &rows, |row| {
        let untold: u64 = get(row, "untold")?;
        let voucher = VoucherId::new(get(row, "voucher_id")?);
        Ok((voucher, u32::try_from(untold).unwrap_or(u32::MAX)))
    })
}

/// A report tells of loads.
pub(super) async fn tell(session: &mut Session, report: &Report) -> Result<(), Trouble> {
    const SQL: &str = "UPDATE gate_loads l \
         JOIN JSON_TABLE(?, '$[*]' COLUMNS ( \
             voucher BIGINT UNSIGNED PATH '$[0]', \
             reloads INT UNSIGNED PATH '$[1]')) new \
           ON new.voucher = l.voucher_id \
         SET l.told = LEAST(l.told + new.reloads, l.loads)";
    let told = report.vouchers.iter().filter(|found| found.reloads > 0);
    for part in json_parts(told.map(|found| (found.voucher.get(), found.reloads)))? {
        session.execute(statement(SQL).bind(part.text)).await?;
    }
    Ok(())
}
