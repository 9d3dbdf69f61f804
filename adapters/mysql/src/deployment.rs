//! What a deployment is bound to: its namespace and its gate.

use std::time::Duration;

use seckill_application::Fault;
use sqlx::Row as _;

use crate::session::statement;
use crate::store::MySqlLedger;

/// The gate of a deployment, as the ledger has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateOnRecord {
    /// The name that the gate carries.
    pub name: String,
    /// For how long nobody has confirmed it, by the database's clock.
    pub quiet: Duration,
}

impl MySqlLedger {
    /// Binds the deployment to the namespace of its gate's keys. Returns the one in force;
    /// `namespace` (at most 64 bytes of ASCII) is recorded if there is none yet. Only after the
    /// number of partitions was settled.
    pub async fn settle_namespace(&self, namespace: &str) -> Result<String, Fault> {
        const PORT: &str = "ledger.settle_namespace";
        const RECORD: &str =
            "UPDATE deployment SET namespace = ? WHERE id = 1 AND namespace IS NULL";
        const READ: &str = "SELECT namespace FROM deployment WHERE id = 1";
        let record = || statement(RECORD).bind(namespace);
        self.store.write(PORT, record).await?;
        let row = self.store.read_row(PORT, || statement(READ)).await?;
        let row = row.ok_or_else(|| Fault::broken(PORT, "no number of partitions"))?;
        row.try_get(0).map_err(|error| Fault::broken(PORT, error))
    }

    /// The gate on record; `None` before the first.
    pub async fn gate(&self) -> Result<Option<GateOnRecord>, Fault> {
        const PORT: &str = "ledger.gate";
        const READ: &str = "SELECT gate, COALESCE(GREATEST(0, \
               TIMESTAMPDIFF(MICROSECOND, gate_seen_at, UTC_TIMESTAMP(3))), 0) \
             FROM deployment WHERE id = 1 AND gate IS NOT NULL";
        let row = self.store.read_row(PORT, || statement(READ)).await?;
        let Some(row) = row else {
            return Ok(None);
        };
        let broken = |error| Fault::broken(PORT, error);
        let quiet_us: i64 = row.try_get(1).map_err(broken)?;
        Ok(Some(GateOnRecord {
            name: row.try_get(0).map_err(broken)?,
            quiet: Duration::from_micros(quiet_us.unsigned_abs()),
        }))
    }

    /// Notes that the gate on record was seen just now. `false` if it is another one.
    pub async fn confirm_gate(&self, name: &str) -> Result<bool, Fault> {
        const PORT: &str = "ledger.confirm_gate";
        const CONFIRM: &str =
            "UPDATE deployment SET gate_seen_at = UTC_TIMESTAMP(3) WHERE id = 1 AND gate = ?";
        let confirm = || statement(CONFIRM).bind(name);
        Ok(self.store.write(PORT, confirm).await? == 1)
    }

    /// Puts a gate (32 bytes of ASCII) on record, if the one that is there still is `seen` and
    /// nobody has confirmed it for as long as `quiet`. Whether it is on record now.
    pub async fn adopt_gate(
        &self,
        seen: Option<&str>,
        name: &str,
        quiet: Duration,
    ) -> Result<bool, Fault> {
        const PORT: &str = "ledger.adopt_gate";
        const ADOPT: &str = "UPDATE deployment \
             SET gate = ?, gate_seen_at = UTC_TIMESTAMP(3) \
             WHERE id = 1 AND gate <=> ? AND (gate_seen_at IS NULL \
               OR TIMESTAMPDIFF(MICROSECOND, gate_seen_at, UTC_TIMESTAMP(3)) >= ?)";
        let quiet_us = u64::try_from(quiet.as_micros()).unwrap_or(u64::MAX);
        let adopt = || statement(ADOPT).bind(name).bind(seen).bind(quiet_us);
        self.store.write(PORT, adopt).await?;
        let on_record = self.gate().await?;
        Ok(on_record.is_some_and(|gate| gate.name == name))
    }
}
