//! The outbox of gate updates.

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::GateUpdates;
use seckill_domain::{GateUpdate, GateVersion, VoucherId};
use sqlx::mysql::MySqlRow;

use crate::fault::Trouble;
use crate::row::get;
use crate::session::statement;
use crate::store::Store;
use crate::wire;

/// Most updates, and most vouchers, of one call.
const UPDATES_MAX: usize = 100;
const VOUCHERS_MAX: usize = 1_000;

#[async_trait]
impl GateUpdates for Store {
    async fn after(
        &self,
        voucher: VoucherId,
        after: GateVersion,
        max: usize,
    ) -> Result<Vec<GateUpdate>, Fault> {
        const PORT: &str = "gate_updates.after";
        const SQL: &str = "SELECT version, payload FROM gate_updates \
             WHERE voucher_id = ? AND version > ? ORDER BY version LIMIT ?";
        let read = || {
            statement(SQL)
                .bind(voucher.get())
                .bind(after.get())
                .bind(max.clamp(1, UPDATES_MAX) as u64)
        };
        let rows = self.read(PORT, read).await?;
        rows.iter()
            .map(|row| update(voucher, row))
            .collect::<Result<_, _>>()
            .map_err(|trouble| trouble.before_commit(PORT))
    }

    async fn waiting(&self, max: usize) -> Result<Vec<VoucherId>, Fault> {
        const PORT: &str = "gate_updates.waiting";
        const SQL: &str = "SELECT voucher_id FROM gate_updates GROUP BY voucher_id \
             ORDER BY MIN(created_at), voucher_id LIMIT ?";
        let read = || statement(SQL).bind(max.clamp(1, VOUCHERS_MAX) as u64);
        let rows = self.read(PORT, read).await?;
        rows.iter()
            .map(|row| get(row, "voucher_id").map(VoucherId::new))
            .collect::<Result<_, _>>()
            .map_err(|trouble| trouble.before_commit(PORT))
    }

    async fn forget(&self, voucher: VoucherId, up_to: GateVersion) -> Result<(), Fault> {
        const SQL: &str = "DELETE FROM gate_updates WHERE voucher_id = ? AND version <= ?";
        let write = || statement(SQL).bind(voucher.get()).bind(up_to.get());
        self.write("gate_updates.forget", write).await.map(drop)
    }
}

fn update(voucher: VoucherId, row: &MySqlRow) -> Result<GateUpdate, Trouble> {
    Ok(GateUpdate {
        voucher,
        version: GateVersion::new(get(row, "version")?),
        changes: wire::read_changes(get(row, "payload")?)?,
    })
}
