//! Where every unit of a voucher is.

use std::sync::Arc;
use std::time::Duration;

use seckill_domain::invariants::{self, Tally};
use seckill_domain::{GateVersion, Sequence, VoucherId};

use crate::Fault;
use crate::ports::{Clock, GateTally, HotPath, Ledger, LedgerPorts, LedgerTally, PurchaseGate};

/// A voucher's units, read from ledger and gate at one position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Balance {
    /// Where the units are.
    pub tally: Tally,
    /// Whether nothing moved while it was read, conservation (I1) and never-oversold (I2) hold, and
    /// the ledger agrees with itself.
    pub holds: bool,
    /// Units by which the ledger's stock is off from what its own total and orders leave. Then the
    /// ledger is damaged, and refuses what the gate grants, or has units that nobody sells.
    pub stock_drift: i64,
    /// Whether nothing moved while it was read.
    pub at_rest: bool,
    /// Whether the gate had the voucher; if not, all its free units are the ledger's.
    pub at_gate: bool,
    /// The last decision of the partition that the ledger had applied.
    pub watermark: Sequence,
}

impl Balance {
    /// Units by which conservation is off; `None` if something moved while it was read.
    pub fn drift(&self) -> Option<i64> {
        self.at_rest.then(|| self.tally.drift())
    }
}

/// How often the balance is read when something moves in between.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(5);

/// Reads balances: ledger, gate, ledger again.
pub struct ReadBalance {
    gate: Arc<dyn PurchaseGate>,
    ledger: Arc<dyn Ledger>,
    clock: Arc<dyn Clock>,
}

impl ReadBalance {
    /// Over these ports.
    pub fn new(hot: &HotPath, ledger: &LedgerPorts, clock: Arc<dyn Clock>) -> Self {
        Self {
            gate: hot.gate.clone(),
            ledger: ledger.ledger.clone(),
            clock,
        }
    }

    /// The balance of a voucher; `None` if there is no such voucher.
    pub async fn run(&self, voucher: VoucherId) -> Result<Option<Balance>, Fault> {
        for tried in 1.. {
            let Some((balance, moved)) = self.read(voucher).await? else {
                return Ok(None);
            };
            if !moved || tried == TRIES {
                return Ok(Some(Balance {
                    holds: balance.holds && !moved,
                    at_rest: !moved,
                    ..balance
                }));
            }
            self.clock.sleep(PAUSE).await;
        }
        Ok(None)
    }

    async fn read(&self, voucher: VoucherId) -> Result<Option<(Balance, bool)>, Fault> {
        let Some(before) = self.ledger.tally(voucher, GateVersion::default()).await? else {
            return Ok(None);
        };
        let gate = self.gate.tally(voucher, before.head.entry).await?;
        let version = gate.map_or(before.version, |gate| gate.version);
        let Some(after) = self.ledger.tally(voucher, version).await? else {
            return Ok(None);
        };
        let wrong_epoch = gate.is_some_and(|gate| gate.epoch != after.head.epoch);
        let moved = wrong_epoch || !same_position(&before, &after);
        Ok(Some((Self::balance(gate, &after), moved)))
    }

    fn balance(gate: Option<GateTally>, ledger: &LedgerTally) -> Balance {
        let wide = |units: u64| i64::try_from(units).unwrap_or(i64::MAX);
        // A voucher that is not at the gate has all its free units in the ledger.
        let (free, in_flight) = gate.map_or((ledger.stock, 0), |gate| {
            (
                gate.free,
                wide(gate.units_after) + wide(ledger.units_returned_after),
            )
        });
        let by_itself = ledger.by_itself();
        let tally = Tally {
            free: i64::from(free),
            in_flight,
            ..by_itself
        };
        let sound = invariants::conserved(&tally) && invariants::never_oversold(&tally);
        Balance {
            tally,
            holds: sound && invariants::conserved(&by_itself),
            stock_drift: by_itself.drift(),
            at_rest: true,
            at_gate: gate.is_some(),
            watermark: ledger.head.applied,
        }
    }
}

fn same_position(before: &LedgerTally, after: &LedgerTally) -> bool {
    let units_returned_after = before.units_returned_after;
    *before
        == LedgerTally {
            units_returned_after,
            ..*after
        }
}
