//! An administrator settles parked messages.

use std::sync::Arc;

use crate::ports::{Clock, LedgerPorts, Page, ParkedMessage, ParkedMessages, ParkedReply};
use crate::retrying::retrying;
use crate::{Fault, RelayUpdates};

/// Lists, replays and discards parked messages.
pub struct SettleParked {
    parked: Arc<dyn ParkedMessages>,
    relay: Arc<RelayUpdates>,
    clock: Arc<dyn Clock>,
}

impl SettleParked {
    /// Over these ports.
    pub fn new(ledger: &LedgerPorts, relay: Arc<RelayUpdates>, clock: Arc<dyn Clock>) -> Self {
        Self {
            parked: ledger.parked.clone(),
            relay,
            clock,
        }
    }

    /// Messages, newest first; `limit` 1 to 100.
    pub async fn list(
        &self,
        waiting: bool,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Page<ParkedMessage>, Fault> {
        self.parked.list(waiting, before, limit).await
    }

    /// Applies a message after all. Repeatable.
    pub async fn replay(&self, id: u64) -> Result<ParkedReply, Fault> {
        retrying(&*self.clock, || self.parked.replay(id)).await
    }

    /// Gives a message up, and lets the gate follow. Repeatable.
    pub async fn discard(&self, id: u64, reason: &str) -> Result<ParkedReply, Fault> {
        let reply = retrying(&*self.clock, || self.parked.discard(id, reason)).await?;
        if reply == ParkedReply::Settled {
            self.relay.sweep().await?;
        }
        Ok(reply)
    }
}
