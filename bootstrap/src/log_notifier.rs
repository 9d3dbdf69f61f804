//! Events, for those who read the log.

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::Notifier;
use seckill_domain::Event;

/// Writes every event to the log, at debug: a sale has one for every step of every order.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LogNotifier;

#[async_trait]
impl Notifier for LogNotifier {
    async fn notify(&self, events: &[Event]) -> Result<(), Fault> {
        for event in events {
            let what = event.what;
            let order = what.order.map(|(order, _)| order.get());
            tracing::debug!(event = event.id.get(), kind = ?what.kind, voucher = %what.voucher,
                order, at_ms = event.at.as_millis(), "happened");
        }
        Ok(())
    }
}
