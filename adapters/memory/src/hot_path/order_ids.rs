//! Order ids.

use std::sync::PoisonError;

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::OrderIds;
use seckill_domain::OrderId;

use super::store::Shared;

const NEXT: &str = "order_ids.next";

/// One generator per store. Everybody who could issue an id under its worker number shares it, and
/// it is no hot data, so losing the store repeats no id.
#[async_trait]
impl OrderIds for Shared {
    async fn next(&self) -> Result<OrderId, Fault> {
        let call = self.chaos.enter(NEXT)?;
        let now = self.clock.now();
        let id = self
            .ids
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .next(now)
            .map_err(|behind| Fault::unavailable(NEXT, behind))?;
        call.answer(id)
    }
}
