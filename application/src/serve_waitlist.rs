//! Whoever's turn it is, is served.

use seckill_domain::VoucherId;

use crate::Fault;
use crate::ports::PurchaseGate;

/// Calls of one round: at 128 promotions each, more than any waitlist takes.
const ROUNDS_MAX: usize = 10_000;

/// Serves the waitlist with what is free, or drains it when the sale is over, until there is
/// nothing to do.
pub(crate) async fn serve_waitlist(
    gate: &dyn PurchaseGate,
    voucher: VoucherId,
) -> Result<(), Fault> {
    for _ in 0..ROUNDS_MAX {
        if !gate.promote(voucher).await? {
            break;
        }
    }
    Ok(())
}

/// The same after something else was done, which stays done: a fault is only logged, since the
/// sweep of the gate comes by.
pub(crate) async fn nudge_waitlist(gate: &dyn PurchaseGate, voucher: VoucherId) {
    if let Err(fault) = serve_waitlist(gate, voucher).await {
        tracing::warn!(fault = fault.chain(), %voucher, "the waitlist is served later");
    }
}
