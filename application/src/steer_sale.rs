//! An administrator publishes, pauses, resumes, closes or amends a voucher.

use std::sync::Arc;
use std::time::Duration;

use seckill_domain::{
    Amendment, EventKind, GateVersion, NewEvent, Transition, Voucher, VoucherId, VoucherRefusal,
};

use crate::ports::{Clock, HotPath, Ledger, LedgerPorts, PurchaseGate};
use crate::retrying::retrying;
use crate::{Fault, LoadSale, Loaded, RelayUpdates, Relayed};

/// What an administrator wants of a voucher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SteerCommand {
    /// Put a draft on sale.
    Publish,
    /// Stop purchases for now.
    Pause,
    /// Go on.
    Resume,
    /// End the sale for good.
    Close,
    /// Change settings.
    Amend(Amendment),
}

impl SteerCommand {
    fn event(&self) -> EventKind {
        match self {
            Self::Publish => EventKind::VoucherPublished,
            Self::Pause => EventKind::VoucherPaused,
            Self::Resume => EventKind::VoucherResumed,
            Self::Close => EventKind::VoucherClosed,
            Self::Amend(_) => EventKind::VoucherAmended,
        }
    }
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SteerReply {
    /// Ledger and gate have it.
    Done(Voucher),
    /// There is no such voucher.
    NotFound,
    /// Not possible; nothing changed.
    Refused(VoucherRefusal),
}

/// How long a command waits for the gate to follow.
const GATE_PATIENCE: Duration = Duration::from_secs(3);
const GATE_PAUSE: Duration = Duration::from_millis(20);

/// Changes a voucher in the ledger and has the gate follow before it answers.
pub struct SteerSale {
    gate: Arc<dyn PurchaseGate>,
    ledger: Arc<dyn Ledger>,
    relay: Arc<RelayUpdates>,
    load: Arc<LoadSale>,
    clock: Arc<dyn Clock>,
}

impl SteerSale {
    /// Over these ports.
    pub fn new(
        hot: &HotPath,
        ledger: &LedgerPorts,
        relay: Arc<RelayUpdates>,
        load: Arc<LoadSale>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            gate: hot.gate.clone(),
            ledger: ledger.ledger.clone(),
            relay,
            load,
            clock,
        }
    }

    /// Carries a command out. Repeatable. Faults with an unknown effect if the ledger has it and the
    /// gate does not follow in time: it will.
    pub async fn run(&self, id: VoucherId, command: SteerCommand) -> Result<SteerReply, Fault> {
        let reply = retrying(&*self.clock, || self.store(id, &command)).await?;
        if let SteerReply::Done(voucher) = &reply {
            self.followed(voucher).await?;
            if command == SteerCommand::Close {
                self.relay.promote(id).await.map_err(gate_lags)?;
            }
        }
        Ok(reply)
    }

    async fn store(&self, id: VoucherId, command: &SteerCommand) -> Result<SteerReply, Fault> {
        let mut unit = self.ledger.begin().await?;
        let Some(mut voucher) = unit.lock_voucher(id).await? else {
            return Ok(SteerReply::NotFound);
        };
        let outcome = match command {
            SteerCommand::Publish => voucher.publish(unit.now().await?),
            SteerCommand::Pause => voucher.pause(),
            SteerCommand::Resume => voucher.resume(),
            SteerCommand::Close => voucher.close(),
            SteerCommand::Amend(change) => voucher.amend(change),
        };
        match outcome {
            Err(refusal) => Ok(SteerReply::Refused(refusal)),
            Ok(Transition::AlreadyApplied) => Ok(SteerReply::Done(voucher)),
            Ok(Transition::Applied) => {
                voucher.version = unit.save_voucher(&voucher, voucher.is_at_gate()).await?;
                let event = NewEvent::of_voucher(id, command.event());
                unit.append_events(&[event]).await?;
                unit.commit().await?;
                Ok(SteerReply::Done(voucher))
            }
        }
    }

    /// Returns once the gate is at the voucher's version.
    pub(crate) async fn followed(&self, voucher: &Voucher) -> Result<(), Fault> {
        if !voucher.is_at_gate() {
            return Ok(());
        }
        let deadline = self.clock.monotonic() + GATE_PATIENCE;
        while !self.follow_once(voucher.id, voucher.version).await? {
            if self.clock.monotonic() >= deadline {
                let waiting = "the ledger has it; the gate follows later";
                return Err(Fault::unknown("steer_sale", waiting));
            }
            self.clock.sleep(GATE_PAUSE).await;
        }
        Ok(())
    }

    async fn follow_once(&self, id: VoucherId, version: GateVersion) -> Result<bool, Fault> {
        let relayed = self.relay.run(id).await.map_err(gate_lags)?;
        let facts = self.gate.facts(&[id]).await.map_err(gate_lags)?;
        if let Some(facts) = facts.into_iter().next().flatten() {
            return Ok(relayed == Relayed::UpToDate && facts.pulse.version >= version);
        }
        let loaded = self.load.run(id, Duration::ZERO).await.map_err(gate_lags)?;
        Ok(loaded == Loaded::Loaded)
    }
}

/// The ledger has committed: whatever fails afterwards leaves the command done in part.
fn gate_lags(fault: Fault) -> Fault {
    Fault::unknown("steer_sale", fault)
}
