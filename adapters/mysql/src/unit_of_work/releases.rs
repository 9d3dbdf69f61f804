//! Units that come back, and what the gate is told.

use std::collections::BTreeMap;

use seckill_application::ports::Release;
use seckill_domain::{GateChange, GateUpdate, GateVersion, VoucherId};

use crate::fault::Trouble;
use crate::json_rows::json_parts;
use crate::session::{Session, statement};
use crate::wire;

pub(super) async fn release(
    session: &mut Session,
    voucher: VoucherId,
    releases: &[Release],
) -> Result<GateVersion, Trouble> {
    const HOLDINGS: &str = "UPDATE JSON_TABLE(?, '$[*]' COLUMNS ( \
             buyer BIGINT UNSIGNED PATH '$[0]', units BIGINT PATH '$[1]')) back \
           STRAIGHT_JOIN holdings h ON h.voucher_id = ? AND h.user_id = back.buyer \
         SET h.units = h.units - back.units";
    let mut by_buyer: BTreeMap<u64, u64> = BTreeMap::new();
    for release in releases {
        *by_buyer.entry(release.buyer.get()).or_default() += u64::from(release.quantity);
    }
    let buyers = by_buyer.len() as u64;
    let units = by_buyer.values().sum();
    let mut found = 0;
    for part in json_parts(by_buyer.into_iter())? {
        let holdings = statement(HOLDINGS).bind(part.text).bind(voucher.get());
        found += session.execute(holdings).await?.rows_affected();
    }
    if found != buyers {
        return Err(Trouble::broken(
            "units come back from a buyer who holds none",
        ));
    }
    let version = return_units(session, voucher, units).await?;
    let changes: Vec<GateChange> = releases.iter().map(change).collect();
    write_update(session, voucher, version, changes).await?;
    Ok(version)
}

fn change(release: &Release) -> GateChange {
    GateChange::Release {
        order: release.order,
        buyer: release.buyer,
        quantity: release.quantity,
    }
}

/// Units of the voucher are stock again, and its version rises.
pub(crate) async fn return_units(
    session: &mut Session,
    voucher: VoucherId,
    units: u64,
) -> Result<GateVersion, Trouble> {
    const SQL: &str = "UPDATE voucher_stock SET stock_units = stock_units + ?, \
           gate_version = LAST_INSERT_ID(gate_version + 1) \
         WHERE voucher_id = ?";
    let update = statement(SQL).bind(units).bind(voucher.get());
    let done = session.execute(update).await?;
    new_version(&done)
}

/// The version that an update has drawn with `LAST_INSERT_ID`.
pub(super) fn new_version(done: &sqlx::mysql::MySqlQueryResult) -> Result<GateVersion, Trouble> {
    if done.rows_affected() == 1 {
        Ok(GateVersion::new(done.last_insert_id()))
    } else {
        Err(Trouble::broken("the voucher is unknown"))
    }
}

/// Locks a voucher's counters. `false` if there is no such voucher.
pub(crate) async fn lock_stock(session: &mut Session, voucher: VoucherId) -> Result<bool, Trouble> {
    const SQL: &str = "SELECT voucher_id FROM voucher_stock WHERE voucher_id = ? FOR UPDATE";
    let found = session.row(statement(SQL).bind(voucher.get())).await?;
    Ok(found.is_some())
}

/// Raises a voucher's version and writes these changes for the gate.
pub(crate) async fn push_update(
    session: &mut Session,
    voucher: VoucherId,
    changes: &[GateChange],
) -> Result<GateVersion, Trouble> {
    let version = return_units(session, voucher, 0).await?;
    write_update(session, voucher, version, changes.to_vec()).await?;
    Ok(version)
}

/// Writes down what the gate has to follow; the version was drawn in this transaction.
pub(crate) async fn write_update(
    session: &mut Session,
    voucher: VoucherId,
    version: GateVersion,
    changes: Vec<GateChange>,
) -> Result<(), Trouble> {
    const SQL: &str = "INSERT INTO gate_updates \
           (voucher_id, version, units_returned, payload, created_at) \
         VALUES (?, ?, ?, ?, UTC_TIMESTAMP(3))";
    let update = GateUpdate {
        voucher,
        version,
        changes,
    };
    let insert = statement(SQL)
        .bind(voucher.get())
        .bind(version.get())
        .bind(update.units_returned())
        .bind(wire::write_changes(&update.changes)?);
    session.execute(insert).await.map(drop)
}
