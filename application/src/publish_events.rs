//! Events leave the outbox.

use std::sync::Arc;
use std::time::Duration;

use seckill_domain::EventId;

use crate::Fault;
use crate::ports::{EventOutbox, LeaseOwner, LedgerPorts, Notifier};

/// Most events of one round.
const BATCH_MAX: usize = 500;
/// How long a claim lasts; a relay that dies has its events published by another then.
const CLAIM_HOLD: Duration = Duration::from_secs(10);
/// How long published events are kept for those who reconnect.
const KEPT: Duration = Duration::from_hours(24);

/// Relays events to every notifier: at least once, oldest first.
pub struct PublishEvents {
    outbox: Arc<dyn EventOutbox>,
    notifiers: Vec<Arc<dyn Notifier>>,
    owner: LeaseOwner,
}

impl PublishEvents {
    /// Over these ports; `owner` is unique per relay.
    pub fn new(ledger: &LedgerPorts, notifiers: Vec<Arc<dyn Notifier>>, owner: LeaseOwner) -> Self {
        Self {
            outbox: ledger.events.clone(),
            notifiers,
            owner,
        }
    }

    /// One round. Returns how many events were published.
    pub async fn run(&self) -> Result<usize, Fault> {
        let events = self
            .outbox
            .claim(&self.owner, BATCH_MAX, CLAIM_HOLD)
            .await?;
        if events.is_empty() {
            return Ok(0);
        }
        for notifier in &self.notifiers {
            notifier.notify(&events).await?;
        }
        let ids: Vec<EventId> = events.iter().map(|event| event.id).collect();
        self.outbox.published(&ids).await?;
        Ok(ids.len())
    }

    /// Removes events that nobody will ask for any more. Bounded.
    pub async fn prune(&self) -> Result<usize, Fault> {
        self.outbox.prune(KEPT).await
    }
}
