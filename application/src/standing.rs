//! Where a voucher stands that the gate does not have.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use seckill_domain::{SaleStatus, VoucherId};

use crate::Fault;
use crate::patience::{LOOK_PATIENCE, within};
use crate::ports::{Clock, Ledger};

/// How long it is remembered where a voucher stands.
const LOOKED_UP_FOR: Duration = Duration::from_secs(1);
const LOOKED_UP_MAX: usize = 10_000;

/// What the ledger says of a voucher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// There is none that buyers may know.
    Unknown,
    /// The gate should have it.
    AtGate,
    /// It has left the gate for good.
    Retired,
}

/// Asks the ledger, and remembers what it said for a moment: a crowd in front of a closed gate must
/// not become a crowd in front of the ledger.
pub(crate) struct Standings {
    ledger: Arc<dyn Ledger>,
    clock: Arc<dyn Clock>,
    known: Mutex<HashMap<VoucherId, Known>>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    standing: Standing,
    until: Duration,
}

impl Standings {
    pub(crate) fn new(ledger: Arc<dyn Ledger>, clock: Arc<dyn Clock>) -> Self {
        Self {
            ledger,
            clock,
            known: Mutex::default(),
        }
    }

    /// Where the voucher stands. Asks the ledger at most about once a second.
    pub(crate) async fn of(&self, voucher: VoucherId) -> Result<Standing, Fault> {
        if let Some(known) = self.recall(voucher) {
            return Ok(known);
        }
        let look = self.ledger.voucher(voucher);
        let standing = match within(&*self.clock, LOOK_PATIENCE, "ledger.voucher", look).await? {
            Some(found) if found.retired => Standing::Retired,
            Some(found) if found.status != SaleStatus::Draft => Standing::AtGate,
            Some(_) | None => Standing::Unknown,
        };
        self.remember(voucher, standing);
        Ok(standing)
    }

    fn recall(&self, voucher: VoucherId) -> Option<Standing> {
        let now = self.clock.monotonic();
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .get(&voucher)
            .filter(|known| now < known.until)
            .map(|known| known.standing)
    }

    fn remember(&self, voucher: VoucherId, standing: Standing) {
        let now = self.clock.monotonic();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= LOOKED_UP_MAX {
            known.retain(|_, it| now < it.until);
        }
        if known.len() < LOOKED_UP_MAX {
            let until = now + LOOKED_UP_FOR;
            known.insert(voucher, Known { standing, until });
        }
    }
}
